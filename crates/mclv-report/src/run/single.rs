//! The page of one run.

use super::curves::{self, Against, Spectrum};
use super::words::estimator;
use super::{likelihood, watched};
use crate::figure::Figure;
use crate::generated::{self, BesideData};
use crate::log_z;
use crate::modes;
use crate::page::{Block, Cell, Column, Level, Page, Section, Table, Verdict};
use crate::pictures::{self, Reconstructions, Shape};
use crate::tours::{self, Toured};
use mclv::modes::ModeShares;
use mclv::partition::{Agreement, Guarantee, LogZ};
use mclv::settings::Spelling;
use mclv::shell;
use mclv::tour::Extremes;
use mclv::train::{Metrics, RunRecord, Sitting, Warning, WarningHistory};
use mclv::{UnitUse, human_seconds};
use std::path::Path;

/// The part of a page about the model itself.
#[derive(Default)]
pub struct ModelView {
    /// Pictures, if rows are pictures.
    pub pictures: Option<ModelPictures>,
    /// Tours of the model, if there are any.
    pub tours: Option<ModelTours>,
    /// How the training rows use the hidden units, if the rows could be loaded.
    pub units: Option<UnitUse>,
    /// Hidden units with the largest weights, and the columns with their weights, if rows are no
    /// pictures.
    pub columns: Vec<UnitColumns>,
    /// The shares of modes beside those of the training rows, if they could be estimated.
    pub modes: Option<ModeShares>,
    /// Samples beside the rows of the data, if they could be drawn.
    pub beside_data: Option<BesideData>,
    /// The singular values of the weights at some epochs, in order of epochs.
    pub spectra: Vec<Spectrum>,
    /// True while the training runs, which a live page shows.
    pub is_running: bool,
    /// Problems with the parts above, as sentences.
    pub problems: Vec<String>,
}

/// A hidden unit and the columns with its largest weights.
pub struct UnitColumns {
    /// The number of the unit, from 0.
    pub unit: usize,
    /// The names of columns, with the weights between the unit and them.
    pub columns: Vec<(String, f32)>,
}

/// Pictures of a model.
pub struct ModelPictures {
    /// Height and width of each picture.
    pub shape: Shape,
    /// The number of hidden units.
    pub n_hidden: usize,
    /// The weights of hidden units. If there are many units, those with the largest weights.
    pub filters: Vec<Vec<f32>>,
    /// Samples of the model: draws of zeros and ones. Empty if none were drawn.
    pub samples: Vec<Vec<f32>>,
    /// The epoch of the last checkpoint, and `E[v|h]` of its chains.
    pub chains: Option<(usize, Vec<Vec<f32>>)>,
    /// Training rows and their reconstructions.
    pub reconstructions: Option<Reconstructions>,
}

/// Tours of a model.
pub struct ModelTours {
    /// The results of the tours.
    pub toured: Toured,
    /// The shortest and the longest tours, and the shape of pictures, if rows are pictures.
    pub extremes: Option<(Extremes, Shape)>,
}

/// The page of one run, with all estimates of the model's `log Z` and their agreement.
pub fn single_run(
    run: &RunRecord,
    view: &ModelView,
    estimates: &[(String, &LogZ)],
    agreement: Option<&Agreement>,
) -> Page {
    let source = run.input.as_ref().map_or("unknown data".into(), |i| i.data.source.clone());
    let n_hidden = run.metrics.last().map(|m| m.n_hidden).filter(|&n| n > 0);
    let units = n_hidden.map_or(String::new(), |n| format!(", {n} hidden units"));
    let subtitle = format!("{source}{units}, {}", estimator(run));
    let curves_of = |x: Against| likelihood(run, x);
    let tabs = vec![
        ("by epoch".to_owned(), curves_of(Against::Epochs)),
        ("by wall time".to_owned(), curves_of(Against::Seconds)),
    ];
    let likelihoods = Block::Charts { tabs, wide: true, note: likelihood_note(run) };
    let charts = |charts: Vec<(Figure, &'static str)>| {
        charts.into_iter().map(|(figure, note)| Block::chart(figure, note)).collect::<Vec<_>>()
    };
    let tours = view.tours.as_ref().map_or_else(Vec::new, tour_blocks);
    let log_z = log_z::blocks(estimates, agreement);
    let modes = view.modes.as_ref().map_or_else(Vec::new, modes::blocks);
    let beside_data = view.beside_data.as_ref().map_or_else(Vec::new, generated::blocks);
    let mut training = charts(watched(run));
    training.push(Block::chart(curves::spectra(&view.spectra), curves::NOTE_ON_SPECTRA));
    let judged = tours.iter().chain(&log_z).chain(&modes).chain(&beside_data);
    let elsewhere = Page::new("", "").with(Section::new("", judged.cloned()));
    let mut summarised = verdicts(run, view);
    let is_worrying = |verdict: &Verdict| verdict.level > Level::Note;
    let worst = elsewhere.verdict().filter(|verdict| is_worrying(verdict));
    if worst.is_none() && !summarised.iter().any(is_worrying) && !run.metrics.is_empty() {
        summarised.insert(0, Verdict::new(Level::Good, no_problems(run, view, !estimates.is_empty())));
    }
    Page::new(&run.name, subtitle)
        .with(Section::new("Summary", [Block::Verdicts(summarised), Block::facts(summary(run))]))
        .with(Section::new("Likelihood", [likelihoods]))
        .with(Section::new("Training", training))
        .with(Section::new("Tours in training", charts(curves::tours_in_training(run))))
        .with(Section::new("Ladders in training", charts(curves::ladders_in_training(run))))
        .with(Section::new("Tours", tours))
        .with(Section::new("Modes", modes))
        .with(Section::new("Generated against data", beside_data))
        .with(Section::new("Pictures", view.pictures.as_ref().map_or_else(Vec::new, picture_blocks)))
        .with(Section::new("Hidden units", unit_blocks(&view.columns)))
        .with(Section::new("log Z", log_z))
        .with(Section::new("Provenance", provenance(run)))
}

fn tour_blocks(tours: &ModelTours) -> Vec<Block> {
    let mut blocks = tours::blocks(std::slice::from_ref(&tours.toured));
    if let Some((extremes, shape)) = &tours.extremes {
        let note = "Above: E[v|h] of the state in which the tour starts. Below: the visible layer after the first step.";
        let grids = tours::picture_grids(extremes, *shape);
        blocks.extend(grids.into_iter().map(|grid| Block::pictures(grid, note)));
    }
    blocks
}

fn picture_blocks(shown: &ModelPictures) -> Vec<Block> {
    let filters = pictures::filters(&shown.filters, shown.n_hidden, shown.shape);
    let mut blocks =
        vec![Block::pictures(filters, "Blue is negative, orange is positive. All filters share one scale.")];
    if !shown.samples.is_empty() {
        let note = "Draws of zeros and ones. Black is 0, white is 1.";
        blocks.push(Block::pictures(pictures::samples(&shown.samples, shown.shape), note));
    }
    if let Some((epoch, means)) = &shown.chains {
        let note = format!(
            "Means of the visible units, given the hidden states of persistent chains or unfinished tours after epoch \
             {epoch}. They are smoother than samples."
        );
        blocks.push(Block::pictures(pictures::chains(means, shown.shape), note));
    }
    if let Some(rows) = &shown.reconstructions {
        let grid = pictures::reconstructions(rows, shown.shape);
        blocks.push(Block::pictures(grid, "E[v | E[h|v]]: one mean-field step."));
    }
    blocks
}

/// The columns that hidden units depend on.
fn unit_blocks(units: &[UnitColumns]) -> Vec<Block> {
    if units.is_empty() {
        return Vec::new();
    }
    let cell = |(column, weight): &(String, f32)| format!("{column} {weight:+.2}");
    let row = |unit: &UnitColumns| {
        let columns: Vec<String> = unit.columns.iter().map(cell).collect();
        vec![Cell::text(format!("h{}", unit.unit)), Cell::text(columns.join(", "))]
    };
    let note = "The hidden units with the largest weights, and the columns with the largest weights of each. If the \
                weight is positive, the unit is on more often in rows where the column is 1.";
    let header = ["unit", "columns with the largest weights"].map(Column::text).into();
    let rows = units.iter().map(row).collect();
    vec![Block::Note(note.into()), Block::Table(Table { header, rows, sortable: false, runs: Vec::new() })]
}

fn likelihood_note(run: &RunRecord) -> String {
    let exact = |m: &Metrics| m.log_z.as_ref().is_some_and(|z| z.guarantee == Guarantee::Exact);
    let evaluated: Vec<&Metrics> = run.metrics.iter().filter(|m| m.log_z.is_some()).collect();
    let band = if evaluated.iter().all(|m| exact(m)) {
        "log Z is exact, so the curves have no error bars."
    } else {
        "Bands show the 95 % limits of log Z, which are the same for all rows."
    };
    let rows = "The training curve uses at most 5,000 rows, the same rows in every epoch.";
    format!("{band} {rows} The training likelihood in the summary uses all rows.")
}

fn summary(run: &RunRecord) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| facts.push((name.into(), value));
    let recorded = run.model.as_ref().and_then(|m| m.provenance.data.as_ref());
    match (recorded, &run.input) {
        (Some(d), _) => {
            add("data", format!("{}: {} rows of {} ({})", d.name, d.n_rows, d.n_columns, d.preparation()))
        }
        (None, Some(input)) => add("data", input.data.source.clone()),
        (None, None) => {}
    }
    if let Some(rbm) = run.rbm() {
        add("model", format!("{} visible × {} hidden units", rbm.n_visible(), rbm.n_hidden()));
    }
    if let Some(t) = &run.settings {
        add("estimator", estimator(run));
        let centred = if t.centred { ", centred" } else { "" };
        add("optimisation", format!("rate {}, {} rows per update{centred}", t.learning_rate, t.batch_size));
        add("seed", t.seed.to_string());
    }
    if let Some(last) = run.metrics.last() {
        let of = run.settings.as_ref().map_or(String::new(), |t| format!(" of {}", t.epochs));
        add("epochs", format!("{}{of}", last.epoch));
        add("time", human_seconds(last.seconds));
    }
    if let Some(m) = run.last_evaluated() {
        let z = m.log_z.as_ref();
        for (name, value) in [
            ("log-likelihood, train", m.train_log_likelihood),
            ("log-likelihood, validation", m.validation_log_likelihood),
        ] {
            if let Some(value) = value {
                let value = z.map_or(format!("{value:.3}"), |z| z.with_error(value, 3));
                add(name, format!("{value} nats per row"));
            }
        }
        if let Some(z) = z {
            let guarantee = match z.guarantee {
                Guarantee::Exact => "exact".into(),
                guarantee => format!("{}; {guarantee}", z.method),
            };
            add("log Z", format!("{} ({guarantee})", z.with_error(z.value, 4)));
        }
        if let Some(error) = m.reconstruction_error {
            add("reconstruction error", format!("{error:.5} (mean square)"));
        }
    }
    if let Some(best) = run.best() {
        let value = best.log_z.with_error(best.log_likelihood, 3);
        let is_last = run.epochs_done() == best.epoch;
        let which = if is_last { "the last model" } else { "best.safetensors" };
        add("best", format!("{value} after epoch {} ({which})", best.epoch));
    }
    facts
}

/// A sentence that there are no problems, with a list of the checks.
fn no_problems(run: &RunRecord, view: &ModelView, has_log_z: bool) -> String {
    let mut checked = vec!["training"];
    checked.extend(run.last_evaluated().map(|_| "the likelihood"));
    checked.extend(view.units.map(|_| "hidden units"));
    checked.extend(view.tours.as_ref().map(|_| "tours and the chain"));
    checked.extend(view.beside_data.as_ref().map(|_| "samples"));
    checked.extend(view.modes.as_ref().filter(|modes| modes.is_judged()).map(|_| "modes"));
    checked.extend(has_log_z.then_some("log Z"));
    format!("No problems found. Checked: {}.", checked.join(", "))
}

/// The warnings, each kind once, and missing parts.
fn verdicts(run: &RunRecord, view: &ModelView) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for problem in run.problems.iter().chain(&view.problems) {
        verdicts.push(Verdict::new(Level::Bad, format!("Missing: {problem}")));
    }
    let warnings = run.warnings();
    for WarningHistory { latest, first_epoch, last_epoch, n_epochs, is_over } in &warnings {
        let when = if *n_epochs == 1 {
            format!("After epoch {first_epoch}")
        } else {
            format!("After {n_epochs} epochs from {first_epoch} to {last_epoch}; the last time")
        };
        let level = if *is_over { Level::Note } else { Level::Warning };
        verdicts.push(Verdict::new(level, format!("{when}: {}", latest.in_words(Spelling::Flags))));
    }
    if let Some(UnitUse { n_hidden, n_dead, n_saturated, n_idle }) = view.units {
        for (n, of_one, of_several) in [
            (n_dead, "is off for every training row", "are off for every training row"),
            (n_saturated, "is on for every training row", "are on for every training row"),
            (
                n_idle,
                "is idle: its probability hardly differs between rows",
                "are idle: their probabilities hardly differ between rows",
            ),
        ] {
            if n > 0 {
                let what = if n == 1 { of_one } else { of_several };
                let text =
                    format!("{n} of {n_hidden} hidden units {what}. Fewer hidden units would be enough.");
                // One unit of many is a note, not a warning.
                let level = if n > 1 || n_hidden <= 10 { Level::Warning } else { Level::Note };
                verdicts.push(Verdict::new(level, text));
            }
        }
    }
    if !run.is_finished && !view.is_running {
        let done = run.epochs_done();
        verdicts.push(Verdict::new(
            Level::Note,
            format!(
                "Training is not finished: it has made {done} epochs. Continue with: mclv train --resume {}",
                shell::path(run.folder.path())
            ),
        ));
    }
    // The warning of overfitting says the same.
    let overfits = warnings.iter().any(|w| matches!(w.latest, Warning::Overfitting { .. }));
    if let Some((epoch, fall)) = run.fall().filter(|_| !overfits) {
        let cure = "use best.safetensors, --patience, or fewer epochs.";
        let text = format!("The likelihood was {fall:.2} nats better after epoch {epoch}; {cure}");
        verdicts.push(Verdict::new(Level::Warning, text));
    }
    verdicts
}

fn provenance(run: &RunRecord) -> Vec<Block> {
    let mut facts: Vec<(String, String)> =
        vec![("run folder".into(), run.folder.path().display().to_string())];
    let mut add = |name: &str, value: String| facts.push((name.into(), value));
    if let Some(p) = run.model.as_ref().map(|m| &m.provenance) {
        add("written by", format!("mclv {}", p.mclv_version));
        if let Some(d) = &p.data {
            add("data file", d.source.clone());
            add("SHA-256 of the data", d.sha256.clone());
            add("preparation", d.preparation().to_owned());
        }
    }
    if let Some(last) = run.metrics.last() {
        let (all, evaluations) = (last.seconds, last.evaluation_seconds);
        let training = human_seconds((all - evaluations).max(0.0));
        add("duration", format!("{training} of training, {} of evaluations", human_seconds(evaluations)));
    }
    add("kernels of this report", mclv::kernels().into());
    let mut blocks = vec![Block::facts(facts)];
    blocks.extend(sittings(&run.sittings));
    if let Some(config) = &run.config {
        let (path, file) = (run.folder.path(), run.folder.config());
        let mut again = path.as_os_str().to_owned();
        again.push("-again");
        let command =
            format!("mclv train --config {} --output {}", shell::path(&file), shell::path(Path::new(&again)));
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        blocks.push(Block::Note(
            "This command repeats the run bit for bit, with any number of threads:".into(),
        ));
        blocks.push(Block::Code(command));
        blocks.push(Block::Details(file.into(), vec![Block::Code(config.clone())]));
    }
    blocks
}

/// A number and its unit, which stay on one line.
fn whole(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// When, on which machine and by which command the run was made.
fn sittings(sittings: &[Sitting]) -> Vec<Block> {
    let row = |sitting: &Sitting| {
        let to = sitting.to_epoch.map_or("?".into(), |epoch| epoch.to_string());
        let ranks =
            if sitting.n_ranks > 1 { format!("{} processes, ", sitting.n_ranks) } else { String::new() };
        vec![
            Cell::text(sitting.date()),
            Cell::text(sitting.seconds().map_or("not recorded".into(), |s| whole(&human_seconds(s as f64)))),
            Cell::text(format!("{} to {to}", sitting.from_epoch)),
            Cell::text(format!("{}, {} cores, {}", sitting.machine, sitting.n_cores, sitting.kernels)),
            Cell::text(format!("{ranks}{}", whole(&format!("{} threads", sitting.n_threads)))),
            Cell::text(sitting.command_line().unwrap_or_else(|| "from a library".into())),
        ]
    };
    let header =
        ["begun", "took", "epochs", "machine", "threads", "command as typed"].map(Column::text).into();
    vec![Block::Table(Table {
        header,
        rows: sittings.iter().map(row).collect(),
        sortable: false,
        runs: Vec::new(),
    })]
}
