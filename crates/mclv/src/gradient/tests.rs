//! Test that the estimators estimate the gradient. Each is compared with naive enumeration of the
//! joint states.
//!
//! **False alarms.** Every estimate is the mean of independent replicates, and its error bar is
//! their spread. Each component's `|z|` is tested. The whole suite makes fewer than 2,000 such
//! comparisons, and `2(1 − Φ(5.5)) = 3.8e-8`, so correct code would fail for fewer than one choice
//! of seeds in 10,000.
//!
//! **Power.** Each check has a control: a broken or biased variant that the same check must reject,
//! by twice the limit.

mod carry;
mod cd;
mod exact;
pub(crate) mod oracle;
mod pcd;
mod tempered;
mod tours;
mod ucd;

use super::{Estimator, Gradient, Minibatch, PairBlock, Step, Update};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Silent;
use crate::statistics::largest;
use mclv_kernels::tiles::Tiles;

/// The largest `|z|` that is attributed to chance.
const LIMIT: f64 = 5.5;

/// Means and spreads of the differences between estimates and their true values.
#[derive(Default)]
struct Replicates {
    n: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Replicates {
    fn push(&mut self, differences: impl IntoIterator<Item = f64>) {
        self.n += 1.0;
        for (k, d) in differences.into_iter().enumerate() {
            if k == self.sums.len() {
                self.sums.push(0.0);
                self.squares.push(0.0);
            }
            self.sums[k] += d;
            self.squares[k] += d * d;
        }
    }

    fn variance(&self, k: usize) -> f64 {
        (self.squares[k] - self.sums[k] * self.sums[k] / self.n) / (self.n - 1.0)
    }

    /// The largest mean difference, without regard to its error.
    fn max_bias(&self) -> f64 {
        largest(self.sums.iter().map(|sum| (sum / self.n).abs()))
    }

    fn max_z(&self) -> f64 {
        let z = |k: usize| self.sums[k].abs() / (self.n * self.variance(k)).sqrt();
        largest((0..self.sums.len()).map(z))
    }

    fn assert_unbiased(&self, what: &str) {
        let z = self.max_z();
        eprintln!("{what}: max |z| = {z:.2} of {}", self.sums.len());
        assert!(z < LIMIT, "{what}: max |z| = {z:.2}");
    }

    fn assert_caught(&self, what: &str) {
        let z = self.max_z();
        eprintln!("{what} (control): max |z| = {z:.1}");
        assert!(z > 2.0 * LIMIT, "{what} must be caught: max |z| = {z:.2}");
    }

    /// How far the spread of components `range` is from `expected`, in standard errors of a normal
    /// sample's variance.
    fn variance_z(&self, range: std::ops::Range<usize>, expected: impl Fn(usize) -> f64) -> f64 {
        let z = |k: usize| (self.variance(k) / expected(k) - 1.0) / (2.0 / self.n).sqrt();
        largest(range.map(|k| z(k).abs()))
    }
}

/// Update number `update` of a run without end.
fn step(update: u32) -> Step {
    Step { seed: 2018, epoch: 0, update, number: u64::from(update) }
}

/// Gradient as one list: all `v_i h_j`, all `v_i`, all `h_j`.
fn list(moments: &Gradient, scale: f64) -> Vec<f64> {
    let all =
        moments.w.to_rows().into_iter().chain(moments.b.iter().copied()).chain(moments.a.iter().copied());
    all.map(|x| scale * f64::from(x)).collect()
}

/// Runs `work` with an update whose minibatch is all of the data.
fn with_update<R>(rbm: &Rbm, data: &Rows, step: Step, work: impl FnOnce(Update<'_>) -> R) -> R {
    let rows: Vec<usize> = (0..data.n_rows()).collect();
    work(Update::new(Minibatch { rbm, data, rows: &rows, weights: None, step }, &Silent))
}

/// The model's moments, as `estimator` estimates them in this update.
fn negative(estimator: &mut dyn Estimator, rbm: &Rbm, data: &Rows, step: Step) -> Vec<f64> {
    let mut moments = Gradient::zeros(rbm.n_visible(), rbm.n_hidden());
    assert!(with_update(rbm, data, step, |update| estimator.estimate(&update, &mut moments)).unwrap());
    moments.flush();
    list(&moments, -1.0)
}

/// The pairs of the positive phase of `rows`.
fn data_pairs(rbm: &Rbm, rows: &BitRows) -> PairBlock {
    let v = Rows::Bits(rows.clone());
    let means = rbm.mean_h_from_v(&v).unwrap();
    let means = Tiles::from_rows(rows.n_rows(), rbm.n_hidden(), means.values());
    PairBlock::new(v.block(0, rows.n_rows()).states(), rbm.n_visible(), means)
}

pub(crate) fn differences<'a>(estimate: &'a [f64], exact: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    estimate.iter().zip(exact).map(|(e, x)| e - x)
}
