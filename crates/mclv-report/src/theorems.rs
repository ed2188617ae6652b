//! Lays out the statements of the paper for one model and one stopping set: measured values beside
//! exact ones.

use crate::page::{Block, Cell, Column, Table};
use mclv::theorems::{Compared, Needed, Theorems, risk, tours_needed};

/// A table with a title above it and a note below it. The first column is text; the others are
/// numbers.
pub struct Sheet {
    /// The statement.
    pub title: String,
    /// The names of the columns.
    pub header: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// What to conclude.
    pub note: String,
}

/// Returns the statements as tables, in the order of the paper.
pub fn sheets(of: &Theorems) -> Vec<Sheet> {
    let mut sheets = vec![cut(of), cut_energy(of), tail(of), moments(of), needed(&of.needed), lengths(of)];
    sheets.extend(gradient(of));
    sheets.extend(starts(of));
    sheets.push(cd(of));
    // Columns of exact values are left out if the model was not enumerated.
    if of.set_probability.exact.is_none() {
        sheets.iter_mut().for_each(drop_empty_columns);
    }
    sheets.retain(|sheet| sheet.header.len() > 1 && !sheet.rows.is_empty());
    sheets
}

/// The statements as blocks of a page.
pub fn blocks(of: &Theorems) -> Vec<Block> {
    let block = |sheet: Sheet| {
        let mut header: Vec<Column> = sheet.header.iter().map(|name| Column::number(*name)).collect();
        header[0] = Column::text(sheet.header[0]);
        // Numbers are aligned to the right; the first column is text.
        let cell =
            |(k, text): (usize, String)| if k == 0 { Cell::text(text) } else { Cell::number(0.0, text) };
        let rows =
            sheet.rows.into_iter().map(|row| row.into_iter().enumerate().map(cell).collect()).collect();
        let table = Table { header, rows, sortable: false, runs: Vec::new() };
        [Block::Note(sheet.title), Block::Table(table), Block::Note(sheet.note)]
    };
    sheets(of).into_iter().flat_map(block).collect()
}

const NONE: &str = "–";

/// A number with this many significant digits.
fn significant(x: f64, digits: i32) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { NONE.into() };
    }
    let size = x.abs().log10().floor() as i32;
    if !(-5..9).contains(&size) {
        return format!("{x:.*e}", (digits - 1).max(0) as usize);
    }
    format!("{x:.*}", (digits - 1 - size).clamp(0, 12) as usize)
}

fn exact(x: Option<f64>) -> String {
    x.map_or(NONE.into(), |x| significant(x, 5))
}

/// A value with its standard error, both with the digits that the error allows.
fn measured(of: Compared) -> String {
    let Some(x) = of.measured else { return NONE.into() };
    if !(x.std_err.is_finite() && x.std_err > 0.0) {
        return significant(x.value, 5);
    }
    let digits = (1 - x.std_err.log10().floor() as i32).clamp(0, 12) as usize;
    format!("{:.digits$} ± {:.digits$}", x.value, x.std_err)
}

fn drop_empty_columns(sheet: &mut Sheet) {
    for k in (1..sheet.header.len()).rev() {
        if sheet.rows.iter().all(|row| row[k] == NONE) {
            sheet.header.remove(k);
            sheet.rows.iter_mut().for_each(|row| _ = row.remove(k));
        }
    }
}

fn cut(of: &Theorems) -> Sheet {
    let row = |row: &mclv::theorems::CutRow| {
        vec![
            row.k.to_string(),
            measured(row.returned),
            exact(row.returned.exact),
            measured(row.completed),
            exact(row.completed.exact),
            exact(row.completed_bound),
            measured(row.started),
            exact(row.started.exact),
        ]
    };
    let from = match of.set_probability.exact {
        Some(_) => "The bound is exact.",
        None => "Z and the bound come from the complete tours of this run: they are empirical.",
    };
    Sheet {
        title: "Theorem 1: estimates of Z from tours that are cut after K steps, divided by Z (1 is right)."
            .into(),
        header: vec![
            "K",
            "returned",
            "exactly",
            "over completed",
            "exactly",
            "error at most",
            "over started",
            "exactly",
        ],
        rows: of.cut.iter().map(row).collect(),
        note: format!(
            "Over completed tours: the estimate of Theorem 1, low because long tours are missing. Over all started \
             tours: low by exactly Z_S·Σ p(ξ>k) over k ≥ K. {from}"
        ),
    }
}

fn cut_energy(of: &Theorems) -> Sheet {
    let row = |row: &mclv::theorems::CutRow| {
        vec![row.k.to_string(), measured(row.energy), exact(row.energy.exact), exact(row.energy_bound)]
    };
    let mut rows: Vec<Vec<String>> = of.cut.iter().map(row).collect();
    let all = vec!["all".into(), measured(of.mean_energy), exact(of.mean_energy.exact), "0".into()];
    rows.push(all);
    Sheet {
        title: "Theorem 1 for the energy: the sum over completed tours, times Z_S/Z.".into(),
        header: vec!["K", "over completed", "exactly", "error at most"],
        rows,
        note: format!(
            "The last line is the mean energy of the model. No energy exceeds B = {}, the sum of the weights and biases \
             of one sign; the bound is B times that of the table above.",
            significant(of.energy_bound, 5)
        ),
    }
}

fn tail(of: &Theorems) -> Sheet {
    let row = |row: &mclv::theorems::TailRow| {
        let seen = row.measured.map_or(NONE.into(), |p| {
            format!("{} ({} to {})", significant(p.p, 3), significant(p.low, 3), significant(p.high, 3))
        });
        vec![row.k.to_string(), seen, exact(row.exact), exact(row.rate_bound), exact(row.epsilon_bound)]
    };
    let rates = match (of.epsilon, of.tail_rate.exact) {
        (Some(epsilon), Some(rate)) => format!(
            "ε = {}: every step ends a tour with at least this probability. ρ = {}: the spectral radius of the chain \
             off the set. The condition of the theorem holds for every finite RBM; its rate is what matters.",
            significant(epsilon, 4),
            significant(rate, 6)
        ),
        _ => match of.tail_rate.measured {
            Some(fit) => format!(
                "ε and ρ are known only for small models. A fit to the longest tours gives the rate {:.5} ± {:.5}. It \
                 is empirical: nothing is guaranteed beyond the longest tour.",
                fit.value, fit.std_err
            ),
            None => "ε and ρ are known only for small models, and too few tours are long for a fit.".into(),
        },
    };
    Sheet {
        title: "Theorem 2: p(ξ > k) falls geometrically.".into(),
        header: vec!["k", "measured (95 % limits)", "exactly", "p(ξ>1)·ρ^(k−1)", "(1−ε)^k"],
        rows: of.tail.iter().map(row).collect(),
        note: rates,
    }
}

fn moments(of: &Theorems) -> Sheet {
    let row = |name: &str, of: Compared, bound: Option<f64>| {
        vec![name.to_owned(), measured(of), exact(of.exact), exact(bound)]
    };
    let gap = of.spectral_gap.map_or(String::new(), |gap| {
        format!("The spectral gap of the hidden chain is δ = {}. ", significant(gap, 4))
    });
    Sheet {
        title: "Theorem 3: the second moment of tour lengths decides the error of Ẑ.".into(),
        header: vec!["", "measured", "exactly", "at most"],
        rows: vec![
            row("Z_S/Z", of.set_probability, None),
            row("E[ξ²]", of.second_moment, of.second_moment_bound),
        ],
        note: format!(
            "{gap}The bound is the corrected one, Z/Z_S + 2(1 − Z_S/Z)(Z/Z_S)²/δ; the printed one is false."
        ),
    }
}

fn needed(of: &Needed) -> Sheet {
    let row = |name: &str, cv2: Option<f64>| {
        let tours = cv2.map(|cv2| significant(tours_needed(cv2, of.precision), 4));
        let alpha = cv2.map(|cv2| significant(risk(cv2, of.n_tours, of.precision.error), 3));
        vec![
            name.to_owned(),
            cv2.map_or(NONE.into(), |x| significant(x, 4)),
            tours.unwrap_or(NONE.into()),
            alpha.unwrap_or(NONE.into()),
        ]
    };
    let declined =
        of.declined.as_ref().map_or(String::new(), |why| format!(" No value from the pilot: {why}."));
    let mut rows = Vec::new();
    if of.cv2_exact.is_some() {
        rows.push(row("exact variance", of.cv2_exact));
        rows.push(row("bound of Theorem 3", of.cv2_bound));
    }
    rows.push(row("these tours as a pilot (empirical)", of.cv2_pilot));
    Sheet {
        title: format!(
            "Chebyshev: tours for an error of Ẑ below {} % with probability {} %.",
            significant(100.0 * of.precision.error, 3),
            significant(100.0 * (1.0 - of.precision.alpha), 3)
        ),
        header: vec!["variance from", "var ξ / E[ξ]²", "tours that are enough", "α of these tours"],
        rows,
        note: format!(
            "α: a bound of the probability that {} tours miss by more. Chebyshev's inequality asks for many more tours \
             than are usually needed. A pilot misses a tail that it has not seen.{declined}",
            of.n_tours
        ),
    }
}

fn lengths(of: &Theorems) -> Sheet {
    let row = |row: &mclv::theorems::LengthRow| {
        vec![
            row.length.to_string(),
            measured(row.share),
            exact(row.share.exact),
            measured(row.of_z),
            exact(row.of_z.exact),
            measured(row.energy),
            exact(row.energy.exact),
        ]
    };
    Sheet {
        title: "Lemma 1 and Corollary 3: tours of one length.".into(),
        header: vec!["length", "share of tours", "exactly", "share of Z", "exactly", "mean energy", "exactly"],
        rows: of.lengths.iter().map(row).collect(),
        note: "The states of tours of one length have one law, whatever K is. Cutting tours only decides which lengths \
               are seen."
            .into(),
    }
}

fn gradient(of: &Theorems) -> Option<Sheet> {
    let of = of.gradient.as_ref()?;
    let row = |part: &mclv::theorems::LengthPart| {
        let lengths =
            if part.from == part.to { part.from.to_string() } else { format!("{}–{}", part.from, part.to) };
        vec![
            lengths,
            part.n_tours.to_string(),
            format!("{:.2} %", 100.0 * part.of_steps),
            format!("{:.2} %", 100.0 * part.of_gradient),
            format!("{:.4}", part.cosine_up_to),
        ]
    };
    let reference = if of.is_exact { "the exact gradient" } else { "the gradient from all these tours" };
    Some(Sheet {
        title: "Corollary 3: the part of the gradient that tours of different lengths contribute.".into(),
        header: vec!["lengths", "tours", "share of steps", "share of gradient", "cosine up to here"],
        rows: of.parts.iter().map(row).collect(),
        note: format!(
            "A negative share points the other way. Cosine: the gradient from all tours up to this length (LVS-K) with \
             {reference}."
        ),
    })
}

fn starts(of: &Theorems) -> Option<Sheet> {
    let of = of.starts.as_ref()?;
    let plain = |x: Option<f64>| exact(x);
    let line = |name: &str, measured: String, exact: String| vec![name.to_owned(), measured, exact];
    Some(Sheet {
        title: "The starts of contrastive divergence, h ~ p(h|v) of a row, beside those of tours, π_S."
            .into(),
        header: vec!["", "measured", "exactly"],
        rows: vec![
            line("starts of CD that lie in S", measured(of.in_set), plain(of.in_set.exact)),
            line(
                "mean log p*(h), starts of CD",
                measured(of.log_weight_of_cd),
                plain(of.log_weight_of_cd.exact),
            ),
            line("mean log p*(h), starts of tours", NONE.into(), significant(of.log_weight_of_tours, 6)),
            line(
                "states that tours start at: 1/Σπ²",
                NONE.into(),
                format!("{} of {}", significant(of.effective_starts, 4), of.n_states),
            ),
            line("distance CD – tours", NONE.into(), plain(of.cd_from_tours)),
            line("distance CD – model", NONE.into(), plain(of.cd_from_model)),
            line("distance tours – model", NONE.into(), plain(of.tours_from_model)),
        ],
        note:
            "Distances are total variations of the laws of h: 0 if they are equal, 1 if they share no state."
                .into(),
    })
}

fn cd(of: &Theorems) -> Sheet {
    let row = |row: &mclv::theorems::CdRow| {
        vec![
            row.k.to_string(),
            exact(row.cd),
            exact(row.cd_from_pi),
            exact(row.keep),
            exact(row.drop.exact),
            measured(row.drop),
        ]
    };
    let mut rows: Vec<Vec<String>> = of.cd.iter().map(row).collect();
    let all = |x: String| vec!["model".into(), x.clone(), x.clone(), x.clone(), x, measured(of.mean_energy)];
    rows.push(all(exact(of.mean_energy.exact)));
    Sheet {
        title: "CD-K and LVS-K: the mean energy, with one difference at a time.".into(),
        header: vec!["K", "CD-K", "(i) from π_S", "(ii, iii) tours, keep", "(iv) tours, drop", "drop, measured"],
        rows,
        note: "(i) starts from π_S instead of the data; (ii) the chain ends in the set; (iii) all states count instead \
               of the last one; (iv) unfinished tours are left out. The last line is the model's mean energy."
            .into(),
    }
}
