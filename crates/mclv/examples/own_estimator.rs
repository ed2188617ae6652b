//! Write an estimator of your own: chains that begin at new random states in every update.
//!
//! `cargo run --release --example own_estimator`

#![allow(clippy::print_stdout)] // An example prints its results.

use mclv::Result;
use mclv::bits::BitRows;
use mclv::data::{self, DataSpec, Rows};
use mclv::gradient::{Estimator, Gradient, Update};
use mclv::progress::Silent;
use mclv::settings::{EstimatorName, Settings};
use mclv::train::Training;

/// Runs `k` Gibbs steps from fair coin flips, for `n_chains` chains.
struct FromCoins {
    k: u32,
    n_chains: usize,
}

impl Estimator for FromCoins {
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        let rbm = update.rbm();
        // Each chain has its own stream: the same seed gives the same model on any number of
        // threads.
        let streams: Vec<_> = (0..self.n_chains as u32).map(|chain| update.stream(chain)).collect();
        let mut v = BitRows::zeros(self.n_chains, rbm.n_visible());
        for (chain, stream) in streams.iter().enumerate() {
            let mut coins = stream.reader();
            (0..rbm.n_visible()).for_each(|i| v.set(chain, i, coins.uniform() < 0.5));
        }
        let mut v = Rows::Bits(v);
        for step in 1..=self.k {
            // The reader took the numbers of step 0.
            let h = rbm.sample_h_from_v(&v, |chain| streams[chain].at(2 * step))?;
            v = Rows::Bits(rbm.sample_v_from_h(&Rows::Bits(h), |chain| streams[chain].at(2 * step + 1))?);
        }
        gradient.subtract_mean(&v, &rbm.mean_h_from_v(&v)?);
        Ok(true)
    }
}

fn main() -> Result<()> {
    let source = "bars-and-stripes:3".to_owned();
    let bars = data::load(&DataSpec { source, ..Default::default() }, &Silent)?;
    let settings = Settings { n_hidden: Some(8), learning_rate: Some(0.1), ..Default::default() };
    let own = Training::new(settings.clone()).estimator(Box::new(FromCoins { k: 10, n_chains: 100 }));
    let cd = Training::new(Settings { gradient: Some(EstimatorName::Cd), ..settings });
    for (name, training) in [("chains from coins", own), ("CD-1", cd)] {
        let trained = training.fit(&bars.rows)?;
        let last = trained.history.last().and_then(|metrics| metrics.train_log_likelihood);
        println!("{name}: {:.3} nats per row (best possible {:.3})", last.unwrap_or(f64::NAN), -(14f64).ln());
    }
    Ok(())
}
