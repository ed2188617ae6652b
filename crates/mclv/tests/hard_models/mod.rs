//! Models whose `log Z` is known and which mislead estimates of it: modes far apart, modes that the data do not show,
//! strong weights, rare escapes. Some easy ones stand beside them.

use mclv::bits::BitRows;
use mclv::data::{self, DataSpec, Rows};
use mclv::partition;
use mclv::progress::Silent;
use mclv::rng::{Purpose, Reader, stream};
use mclv::settings::Settings;
use mclv::train::Training;
use mclv::{Rbm, sample};

/// A model with its `log Z`, and rows of data or none.
pub(crate) struct Case {
    /// Models of one kind share this name.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) rbm: Rbm,
    pub(crate) log_z: f64,
    pub(crate) rows: Option<Rows>,
    /// Whether an interval is expected nearly always.
    pub(crate) is_easy: bool,
}

/// Which models: those that the methods were made with, or others of the same kinds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Choice {
    HeldIn,
    Fresh,
}

pub(crate) fn reader(index: u64) -> Reader {
    stream(77, Purpose::SelfTest, index).reader()
}

/// All cases.
pub(crate) fn all(choice: Choice) -> Vec<Case> {
    let mut cases = two_modes(choice);
    cases.extend(strong_weights(choice));
    cases.extend(rare_escapes(choice));
    cases.extend(trained(choice));
    cases.extend(blocks(choice));
    cases.extend(easy(choice));
    cases
}

/// An RBM whose two modes have the same weight, moved to random places by turning units over.
pub(crate) struct TwoModes {
    pub(crate) rbm: Rbm,
    pub(crate) log_z: f64,
    /// `log_p[k]` is the log weight of all states with `k` visible units on, before units are
    /// flipped.
    log_p: Vec<f64>,
    flipped: Vec<bool>,
}

impl TwoModes {
    pub(crate) fn new(n_visible: usize, n_hidden: usize, w: f64, rng: &mut Reader) -> Self {
        let (n, m) = (n_visible as f64, n_hidden as f64);
        let (b, a) = (-w * m / 2.0, -w * n / 2.0);
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let mut log_choose = 0.0;
        let log_p: Vec<f64> = (0..=n_visible)
            .map(|k| {
                if k > 0 {
                    log_choose += ((n_visible - k + 1) as f64 / k as f64).ln();
                }
                log_choose + b * k as f64 + m * softplus(a + w * k as f64)
            })
            .collect();
        let mut weights = vec![w; n_visible * n_hidden];
        let (mut visible, mut hidden) = (vec![b; n_visible], vec![a; n_hidden]);
        let mut shift = 0.0;
        let mut flip = |n: usize| -> Vec<bool> { (0..n).map(|_| rng.next_u32() & 1 == 1).collect() };
        let (flipped, flipped_h) = (flip(n_visible), flip(n_hidden));
        for i in (0..n_visible).filter(|&i| flipped[i]) {
            shift += visible[i];
            visible[i] = -visible[i];
            for j in 0..n_hidden {
                hidden[j] += weights[i * n_hidden + j];
                weights[i * n_hidden + j] *= -1.0;
            }
        }
        for j in (0..n_hidden).filter(|&j| flipped_h[j]) {
            shift += hidden[j];
            hidden[j] = -hidden[j];
            for i in 0..n_visible {
                visible[i] += weights[i * n_hidden + j];
                weights[i * n_hidden + j] *= -1.0;
            }
        }
        let single = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let rbm =
            Rbm::new(n_visible, n_hidden, &single(&weights), &single(&visible), &single(&hidden)).unwrap();
        // Flipping units leaves a constant of the energy out, so `log_z` falls by `shift`.
        Self { rbm, log_z: log_sum_exp(&log_p) - shift, log_p, flipped }
    }

    /// Rows drawn from the model, of one mode or of both.
    fn rows(&self, n_rows: usize, both: bool, rng: &mut Reader) -> Rows {
        let n = self.flipped.len();
        let numbers = if both { 0..n + 1 } else { 0..n / 2 };
        let total = log_sum_exp(&self.log_p[numbers.clone()]);
        let mut rows = BitRows::zeros(n_rows, n);
        for r in 0..n_rows {
            let mut u = rng.uniform();
            let mut k = numbers.start;
            while k + 1 < numbers.end && u >= (self.log_p[k] - total).exp() {
                u -= (self.log_p[k] - total).exp();
                k += 1;
            }
            // Each unit in turn, with the probability that keeps all subsets equally likely.
            let mut left = k;
            for i in 0..n {
                let on = rng.below((n - i) as u64) < left as u64;
                left -= usize::from(on);
                rows.set(r, i, on != self.flipped[i]);
            }
        }
        Rows::Bits(rows)
    }
}

fn log_sum_exp(x: &[f64]) -> f64 {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
}

pub(crate) fn two_modes(choice: Choice) -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes: [(usize, usize, f64); 4] = match choice {
        Choice::HeldIn => [(60, 64, 0.15), (60, 64, 0.3), (48, 48, 0.12), (48, 48, 0.4)],
        Choice::Fresh => [(40, 70, 0.14), (80, 50, 0.2), (56, 40, 0.15), (64, 64, 0.5)],
    };
    for (k, (n_visible, n_hidden, w)) in sizes.into_iter().enumerate() {
        let mut rng = reader(k as u64 + if choice == Choice::HeldIn { 0 } else { 50 });
        let model = TwoModes::new(n_visible, n_hidden, w, &mut rng);
        for (kind, rows) in [
            ("two modes, rows of both", Some(model.rows(500, true, &mut rng))),
            ("two modes, rows of one", Some(model.rows(500, false, &mut rng))),
            ("two modes, no rows", None),
        ] {
            cases.push(Case {
                kind,
                name: format!("{n_visible} × {n_hidden}, w {w}"),
                rbm: model.rbm.clone(),
                log_z: model.log_z,
                rows,
                is_easy: false,
            });
        }
    }
    cases
}

fn exact(rbm: &Rbm) -> f64 {
    partition::exact(rbm, &Default::default(), &Silent).unwrap().value
}

pub(crate) fn strong_weights(choice: Choice) -> Vec<Case> {
    let mut cases = Vec::new();
    let scales = match choice {
        Choice::HeldIn => [6.0, 10.0],
        Choice::Fresh => [5.0, 8.0],
    };
    for scale in scales {
        for (n_visible, n_hidden) in [(20, 10), (30, 12)] {
            for index in 0..10 {
                let number = 1000 * scale as u64 + 100 * n_visible as u64 + index;
                let mut rng = reader(number);
                let mut uniform = |n: usize| {
                    (0..n).map(|_| (scale * (2.0 * rng.uniform() - 1.0)) as f32).collect::<Vec<f32>>()
                };
                let (w, b, a) = (uniform(n_visible * n_hidden), uniform(n_visible), uniform(n_hidden));
                let rbm = Rbm::new(n_visible, n_hidden, &w, &b, &a).unwrap();
                let rows = sample::exact(&rbm, 500, number, &Default::default(), &Silent).unwrap();
                let log_z = exact(&rbm);
                for (kind, rows) in [
                    ("strong weights, exact rows", Some(Rows::Bits(rows))),
                    ("strong weights, no rows", None),
                ] {
                    cases.push(Case {
                        kind,
                        name: format!("{n_visible} × {n_hidden}, ±{scale}, {index}"),
                        rbm: rbm.clone(),
                        log_z,
                        rows,
                        is_easy: false,
                    });
                }
            }
        }
    }
    cases
}

/// Two modes between which a chain seldom moves, with rows of one.
pub(crate) fn rare_escapes(choice: Choice) -> Vec<Case> {
    let weights = match choice {
        Choice::HeldIn => [0.45, 0.55, 0.65],
        Choice::Fresh => [0.5, 0.6, 0.7],
    };
    let mut cases = Vec::new();
    for w in weights {
        let mut rng = reader((1000.0 * w) as u64);
        let model = TwoModes::new(16, 16, w, &mut rng);
        cases.push(Case {
            kind: "rare escapes",
            name: format!("16 × 16, w {w}"),
            rows: Some(model.rows(300, false, &mut rng)),
            rbm: model.rbm,
            log_z: model.log_z,
            is_easy: false,
        });
    }
    cases
}

fn load(source: &str) -> Rows {
    data::load(&DataSpec { source: source.into(), ..Default::default() }, &Silent).unwrap().rows
}

fn train(rows: &Rows, n_hidden: usize, epochs: usize, seed: u64) -> Rbm {
    let settings = Settings {
        n_hidden: Some(n_hidden),
        epochs: Some(epochs.into()),
        seed: Some(seed),
        ..Default::default()
    };
    Training::new(settings).fit(rows).unwrap().model
}

fn trained(choice: Choice) -> Vec<Case> {
    let runs: [(&str, usize, usize, u64); 4] = match choice {
        Choice::HeldIn => [
            ("bars-and-stripes:4", 8, 400, 1),
            ("bars-and-stripes:4", 12, 800, 2),
            ("bars-and-stripes:4", 16, 1500, 3),
            ("bars-and-stripes:5", 14, 800, 4),
        ],
        Choice::Fresh => [
            ("bars-and-stripes:4", 10, 600, 11),
            ("bars-and-stripes:4", 14, 1000, 12),
            ("bars-and-stripes:5", 12, 500, 13),
            ("bars-and-stripes:5", 16, 1000, 14),
        ],
    };
    let mut cases = Vec::new();
    for (source, n_hidden, epochs, seed) in runs {
        let rows = load(source);
        let rbm = train(&rows, n_hidden, epochs, seed);
        let log_z = exact(&rbm);
        for (kind, rows) in [("bars and stripes, with rows", Some(rows)), ("bars and stripes, no rows", None)]
        {
            cases.push(Case {
                kind,
                name: format!("{source} × {n_hidden}, {epochs} epochs"),
                rbm: rbm.clone(),
                log_z,
                rows,
                is_easy: false,
            });
        }
    }
    cases
}

/// Small models side by side, whose units are mixed.
pub(crate) fn side_by_side(blocks: &[(Rbm, f64)], rng: &mut Reader) -> (Rbm, f64) {
    let n_visible: usize = blocks.iter().map(|b| b.0.n_visible()).sum();
    let n_hidden: usize = blocks.iter().map(|b| b.0.n_hidden()).sum();
    let mut order = |n: usize| -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).for_each(|k| order.swap(k, rng.below(k as u64 + 1) as usize));
        order
    };
    let (visible, hidden) = (order(n_visible), order(n_hidden));
    let mut w = vec![0.0; n_visible * n_hidden];
    let (mut b, mut a) = (vec![0.0; n_visible], vec![0.0; n_hidden]);
    let (mut first_v, mut first_h) = (0, 0);
    for (rbm, _) in blocks {
        let of_block = rbm.weights();
        for i in 0..rbm.n_visible() {
            b[visible[first_v + i]] = rbm.visible_bias()[i];
            for j in 0..rbm.n_hidden() {
                w[visible[first_v + i] * n_hidden + hidden[first_h + j]] = of_block[i * rbm.n_hidden() + j];
            }
        }
        for j in 0..rbm.n_hidden() {
            a[hidden[first_h + j]] = rbm.hidden_bias()[j];
        }
        first_v += rbm.n_visible();
        first_h += rbm.n_hidden();
    }
    (Rbm::new(n_visible, n_hidden, &w, &b, &a).unwrap(), blocks.iter().map(|b| b.1).sum())
}

pub(crate) fn random(n_visible: usize, n_hidden: usize, scale: f64, rng: &mut Reader) -> (Rbm, f64) {
    let mut uniform =
        |n: usize| (0..n).map(|_| (scale * (2.0 * rng.uniform() - 1.0)) as f32).collect::<Vec<f32>>();
    let (w, b, a) = (uniform(n_visible * n_hidden), uniform(n_visible), uniform(n_hidden));
    let rbm = Rbm::new(n_visible, n_hidden, &w, &b, &a).unwrap();
    let log_z = exact(&rbm);
    (rbm, log_z)
}

fn blocks(choice: Choice) -> Vec<Case> {
    let mut rng = reader(if choice == Choice::HeldIn { 300 } else { 310 });
    let scale = if choice == Choice::HeldIn { 1.0 } else { 0.8 };
    let mut cases = Vec::new();
    for n_hidden in [200, 500] {
        let parts: Vec<(Rbm, f64)> = (0..n_hidden / 10).map(|_| random(12, 10, scale, &mut rng)).collect();
        let (rbm, log_z) = side_by_side(&parts, &mut rng);
        let name = format!("{} × {n_hidden}", rbm.n_visible());
        cases.push(Case { kind: "blocks, no rows", name, rbm, log_z, rows: None, is_easy: false });
    }
    let w = if choice == Choice::HeldIn { 0.9 } else { 1.1 };
    let parts: Vec<(Rbm, f64)> = (0..30)
        .map(|_| {
            let model = TwoModes::new(10, 10, w, &mut rng);
            (model.rbm, model.log_z)
        })
        .collect();
    let (rbm, log_z) = side_by_side(&parts, &mut rng);
    let name = format!("{} × 300, two modes each", rbm.n_visible());
    cases.push(Case { kind: "blocks, no rows", name, rbm, log_z, rows: None, is_easy: false });
    cases
}

/// Models that mix fast, with rows of their own or none, and models of data.
fn easy(choice: Choice) -> Vec<Case> {
    let first = if choice == Choice::HeldIn { 400 } else { 500 };
    let mut cases = Vec::new();
    for (index, (n_visible, n_hidden, scale)) in
        [(8, 5, 1.0), (20, 10, 0.5), (30, 12, 1.0), (64, 16, 0.4), (16, 16, 0.3)].into_iter().enumerate()
    {
        let number = first + index as u64;
        let (rbm, log_z) = random(n_visible, n_hidden, scale, &mut reader(number));
        let rows = sample::exact(&rbm, 2000, number, &Default::default(), &Silent).unwrap();
        for (kind, rows) in [("easy, with rows", Some(Rows::Bits(rows))), ("easy, no rows", None)] {
            let name = format!("{n_visible} × {n_hidden}, ±{scale}");
            cases.push(Case { kind, name, rbm: rbm.clone(), log_z, rows, is_easy: true });
        }
    }
    let digits = load("digits");
    for n_hidden in [8, 16] {
        let rbm = train(&digits, n_hidden, 30, first);
        let log_z = exact(&rbm);
        for (kind, rows) in [("easy, with rows", Some(digits.clone())), ("easy, no rows", None)] {
            let name = format!("digits × {n_hidden}");
            cases.push(Case { kind, name, rbm: rbm.clone(), log_z, rows, is_easy: true });
        }
    }
    cases
}
