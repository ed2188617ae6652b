//! Say how much of the paper's work to do, and what its settings are.

use mclv::data::DataSpec;
use mclv::gradient::{Gradient, Lvs, Starts, TourLength, Unfinished, VisibleChain};
use mclv::train::{RunInput, TrainSettings};

/// What the user chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The data.
    pub data: String,
    /// Seeds; the same for every method, so that runs are pairs.
    pub seeds: Vec<u64>,
    /// A tenth of the epochs and tours, and no more than 20 hidden units.
    pub quick: bool,
    /// Starts of tours in training: `fresh` is the paper's, `weighted` has the same law in the limit and is faster.
    pub starts: Starts,
}

impl Options {
    /// A tenth if in a hurry, but no less than `least`.
    pub(crate) fn scaled(&self, full: usize, least: usize) -> usize {
        if self.quick { (full / 10).max(least) } else { full }
    }

    /// Hidden units; few if in a hurry.
    pub(crate) fn hidden(&self, full: usize) -> usize {
        if self.quick { full.min(20) } else { full }
    }

    /// Whether results may be set beside the paper's.
    pub(crate) fn is_paper(&self) -> bool {
        !self.quick && self.data == "mnist"
    }

    /// A run.
    pub(crate) fn run(&self, train: TrainSettings) -> RunInput {
        RunInput { weights: None, data: DataSpec { source: self.data.clone(), ..DataSpec::default() }, train }
    }

    /// A run of the paper's protocol.
    pub(crate) fn paper(&self, method: &str, n_hidden: usize, learning_rate: f64, seed: u64) -> RunInput {
        let paper = TrainSettings::paper(self.gradient(method));
        let epochs = self.scaled(paper.epochs, 4);
        self.run(TrainSettings {
            n_hidden,
            learning_rate,
            epochs,
            // The same share of them.
            warm_up_epochs: (paper.warm_up_epochs * epochs).div_ceil(paper.epochs),
            seed,
            ..paper
        })
    }

    /// `CD-10`, `PCD-1`, `LVS-3`: the paper's methods by name.
    ///
    /// # Panics
    /// If there is no such method.
    pub(crate) fn gradient(&self, method: &str) -> Gradient {
        let (name, k) = method.split_once('-').expect("a method and its K");
        let k: u32 = k.parse().expect("a number of steps");
        let visible = VisibleChain::MeanField;
        match name {
            "CD" => Gradient::Cd { k: k as usize, visible },
            "PCD" => Gradient::Pcd { k: k as usize, n_chains: 128, visible },
            "LVS" => Gradient::Lvs(Lvs {
                k: TourLength::Steps(k),
                starts: self.starts,
                unfinished: Unfinished::Drop,
                visible,
                ..Lvs::default()
            }),
            _ => panic!("no method is called {method}"),
        }
    }
}

/// The same run with the model's own Gibbs chain in place of the mean-field one.
pub(crate) fn true_gibbs(mut input: RunInput) -> RunInput {
    let sampled = VisibleChain::Sampled;
    for gradient in [&mut input.train.gradient, &mut input.train.warm_up] {
        match gradient {
            Gradient::Cd { visible, .. } | Gradient::Pcd { visible, .. } => *visible = sampled,
            Gradient::Lvs(lvs) => lvs.visible = sampled,
            Gradient::Exact => {}
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_the_papers() {
        let options = Options { data: "mnist".into(), seeds: vec![0], quick: false, starts: Starts::Fresh };
        let run = options.paper("LVS-3", 32, 0.1, 5);
        assert_eq!(run.train, TrainSettings { n_hidden: 32, seed: 5, ..TrainSettings::paper_lvs(3) });
        assert!(run.train.check().is_ok());
        let pcd = options.paper("PCD-10", 25, 0.01, 1).train;
        assert_eq!((pcd.warm_up_epochs, pcd.learning_rate, pcd.epochs, pcd.centred), (0, 0.01, 100, false));
        let quick = Options { quick: true, ..options }.paper("LVS-1", 25, 0.1, 0).train;
        assert_eq!((quick.epochs, quick.warm_up_epochs), (10, 2));
    }
}
