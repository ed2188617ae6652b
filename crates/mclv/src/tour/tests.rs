//! Test that tours obey Kac's identity. Each estimate is compared with the exact solution of its
//! model.
//!
//! **False alarms.** Error bars are exact (a linear solve), not estimated, unless noted. The suite
//! tests about 1,000 times whether `|z| < 5.5`; `2(1 − Φ(5.5)) = 3.8e-8`, so correct code with
//! normal means would fail for fewer than one choice of seeds in 10,000. Means of long-tailed
//! lengths are skewed, which raises this rate; the largest `|z|` of the first suite of 470 was 3.2.
//!
//! **Power.** Controls, variants that are wrong, must be rejected by twice the limit.

mod cut;
mod kac;
mod limits;
mod mclv;
mod theory;
mod unbiased;

use super::{HiddenChain, StoppingSet};
use crate::bits::BitRows;
use crate::data::{self, DataSpec, Rows};
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::settings::{EstimatorName, Settings};
use crate::train::Training;

/// The largest `|z|` that is attributed to chance.
const LIMIT: f64 = 5.5;

/// A model, its exact solution, and stopping sets from small to nearly full with `Z_S/Z ≥ 10⁻³`.
struct Case {
    name: String,
    rbm: Rbm,
    chain: HiddenChain,
    sets: Vec<(&'static str, StoppingSet)>,
}

impl Case {
    fn new(name: String, rbm: Rbm, data: &Rows) -> Self {
        let chain = HiddenChain::new(&rbm).unwrap();
        let n = 1u64 << rbm.n_hidden();
        let all: Vec<usize> = (0..data.n_rows()).collect();
        let drawn = |m| StoppingSet::draw(&rbm, data, &all, m, 7, 0).unwrap();
        let of = |states: Vec<u64>| StoppingSet::new(&BitRows::from_words(rbm.n_hidden(), states));
        let mut sets = vec![
            ("m = 1", drawn(1)),
            ("m = 4", drawn(4)),
            ("one state", of(vec![n / 3])),
            ("every fifth", of((0..n).step_by(5).collect())),
            ("all but one", of((1..n).collect())),
        ];
        sets.retain(|(_, set)| chain.tours(set).unwrap().set_probability() >= 1e-3);
        Self { name, rbm, chain, sets }
    }
}

/// A random model with couplings from weak to strong.
fn case(k: usize) -> Case {
    let sizes = [(12, 10), (3, 2), (5, 4), (8, 3), (4, 7), (9, 6), (12, 5), (6, 8), (10, 8), (7, 7)];
    let (n_visible, n_hidden) =
        if k < 10 { sizes[k] } else { (sizes[k - 10].0.min(9), sizes[k - 10].1.min(7)) };
    let scale = [0.3, 1.0, 2.0, 3.0][k % 4];
    let rbm = random_rbm(n_visible, n_hidden, scale, 200 + k as u64);
    let rows = (0..8u64).map(|r| r * 0x9e37 % (1 << n_visible)).collect();
    let data = Rows::Bits(BitRows::from_words(n_visible, rows));
    Case::new(format!("{n_visible} × {n_hidden}, scale {scale}"), rbm, &data)
}

/// Random models, and a trained one.
fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = (0..20).map(case).collect();
    let (rbm, data) = bars_and_stripes();
    cases.push(Case::new("bars and stripes".into(), rbm, &data));
    cases
}

/// The random models that take milliseconds to solve.
fn small_cases() -> Vec<Case> {
    (1..20).map(case).collect()
}

fn bars_and_stripes() -> (Rbm, Rows) {
    let spec = DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() };
    let data = data::load(&spec, &Silent).unwrap().rows;
    let settings = Settings {
        n_hidden: Some(8),
        gradient: Some(EstimatorName::Pcd),
        epochs: Some(2_000.into()),
        batch_size: Some(14),
        seed: Some(3),
        ..Settings::default()
    };
    let rbm = Training::new(settings).unwatched().fit(&data).unwrap().model;
    (rbm, data)
}
