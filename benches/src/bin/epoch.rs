//! Seconds per epoch of every estimator on 55,000 rows of MNIST, minibatches of 128.
//!
//! Run on a quiet machine, MNIST in `MCLV_DATA_DIR`: `cargo run --release -p mclv-benches --bin epoch`. For scikit-learn in the
//! same run: `benches/sklearn_epoch.sh`.

use mclv::data::{self, Binarize, DataSpec, Split};
use mclv::gradient::{Gradient, Lvs, Starts, VisibleChain};
use mclv::progress::Silent;
use mclv::train::{TrainSettings, Trainer};
use mclv_benches::machine;
use std::time::Instant;

fn main() {
    println!("{}", machine());
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![32, 500] } else { sizes };
    let sampled = VisibleChain::Sampled;
    let cd = |k| TrainSettings { gradient: Gradient::Cd { k, visible: sampled }, ..TrainSettings::default() };
    let pcd = |k| TrainSettings {
        gradient: Gradient::Pcd { k, n_chains: 0, visible: sampled },
        ..TrainSettings::default()
    };
    let carry = TrainSettings { gradient: Gradient::Lvs(Lvs::default()), ..TrainSettings::default() };
    let weighted = TrainSettings {
        warm_up_epochs: 1,
        ..TrainSettings::paper(Gradient::Lvs(Lvs { starts: Starts::Weighted, ..Lvs::default() }))
    };
    let fresh = TrainSettings { warm_up_epochs: 1, ..TrainSettings::paper_lvs(1) };
    for (how, binarize) in [("bits", Binarize::Threshold(0.5)), ("grey", Binarize::Grey)] {
        let spec = DataSpec { source: "mnist".into(), split: Split::Train, binarize, ..DataSpec::default() };
        let set = data::load(&spec, &Silent).expect("MNIST");
        for &n_hidden in &sizes {
            let mut cases = vec![("CD-1", cd(1)), ("PCD-1", pcd(1)), ("CD-10", cd(10))];
            if n_hidden <= 64 {
                cases.extend([
                    ("LVS carry", carry.clone()),
                    ("LVS-1 paper, weighted", weighted.clone()),
                    ("LVS-1 paper, fresh", fresh.clone()),
                ]);
            }
            for (name, settings) in cases {
                let settings = TrainSettings { n_hidden, learning_rate: 0.05, ..settings };
                let mut trainer = Trainer::new(settings, &set.rows, None).expect("settings");
                // The first epoch warms up; the best of the next three counts.
                let mut best = f64::INFINITY;
                for epoch in 0..4 {
                    let begun = Instant::now();
                    trainer.epoch(&set.rows, &Silent).expect("an epoch");
                    if epoch > 0 {
                        best = best.min(begun.elapsed().as_secs_f64());
                    }
                }
                println!("{how} 784 × {n_hidden:<4} {name:<22} {best:7.3} s per epoch");
            }
        }
    }
}
