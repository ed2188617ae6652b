//! Options of experiments, and the settings of the paper.

use crate::task::ModelOf;
use mclv::chain::VisibleChain;
use mclv::data::DataSpec;
use mclv::settings::{CheckedSettings, EstimatorName, Settings, Starts, TourLength};
use std::path::PathBuf;

/// The user's choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The data; `None` for those of the experiment.
    pub data: Option<String>,
    /// Seeds. They are the same for every method, so that runs can be compared in pairs.
    pub seeds: Vec<u64>,
    /// A tenth of the epochs and tours, and no more than 20 hidden units.
    pub quick: bool,
    /// Starts of tours in training. `fresh` is the paper's; `weighted` has the same distribution in
    /// the limit and is faster. Tours are not carried over here, so `metropolis` is rejected.
    pub starts: Starts,
    /// A folder with models of other packages.
    pub models: Option<PathBuf>,
}

/// The data of the paper.
const PAPER_DATA: &str = "mnist";

impl Options {
    /// The data of experiments of the paper.
    pub(crate) fn data(&self) -> &str {
        self.data.as_deref().unwrap_or(PAPER_DATA)
    }

    /// A tenth for a quick run, but at least `least`.
    pub(crate) fn scaled(&self, full: usize, least: usize) -> usize {
        if self.quick { (full / 10).max(least) } else { full }
    }

    /// Number of hidden units; fewer for a quick run.
    pub(crate) fn hidden(&self, full: usize) -> usize {
        if self.quick { full.min(20) } else { full }
    }

    /// Returns true if results can be compared with the paper's.
    pub(crate) fn is_paper(&self) -> bool {
        !self.quick && self.data() == PAPER_DATA
    }

    /// A model trained with these settings.
    pub(crate) fn run(&self, train: &Settings) -> ModelOf {
        let data = DataSpec { source: self.data().into(), ..DataSpec::default() };
        ModelOf::new(data, decided(train))
    }

    /// A model trained by the paper's protocol.
    pub(crate) fn paper(&self, method: &str, n_hidden: usize, learning_rate: f64, seed: u64) -> ModelOf {
        let method = Settings { preset: Settings::paper().preset, ..self.method(method) };
        let full = decided(&method);
        let epochs = self.scaled(full.epochs, 4);
        self.run(&Settings {
            n_hidden: Some(n_hidden),
            learning_rate: Some(learning_rate),
            epochs: Some(epochs.into()),
            // The same share of them.
            warm_up_epochs: Some((full.warm_up_epochs() * epochs).div_ceil(full.epochs)),
            seed: Some(seed),
            ..method
        })
    }

    /// `CD-10`, `PCD-1`, `LVS-3`: the paper's methods by name.
    ///
    /// # Panics
    /// If there is no such method.
    fn method(&self, method: &str) -> Settings {
        let (name, k) = method.split_once('-').expect("a method and its K");
        let gradient: EstimatorName = name.to_lowercase().parse().expect("an estimator");
        let k = TourLength::Steps(k.parse().expect("a number of steps"));
        let starts = (gradient == EstimatorName::Lvs).then_some(self.starts);
        Settings { gradient: Some(gradient), k: Some(k), starts, ..Settings::default() }
    }
}

/// Checks settings. Experiments set epochs and the share of rows, so nothing depends on the number
/// of rows.
///
/// # Panics
/// If an experiment has settings that exclude each other.
pub(crate) fn decided(settings: &Settings) -> CheckedSettings {
    settings.check_without_rows().unwrap_or_else(|error| panic!("{error}"))
}

/// The same training, with the model's own Gibbs chain instead of the mean-field chain.
pub(crate) fn true_gibbs(model: &ModelOf) -> ModelOf {
    model.with(Settings { visible: Some(VisibleChain::Sampled), ..Settings::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_the_papers() {
        let options =
            Options { data: None, seeds: vec![0], quick: false, starts: Starts::Fresh, models: None };
        let run = options.paper("LVS-3", 32, 0.1, 5);
        let k = Some(TourLength::Steps(3));
        let paper = Settings { n_hidden: Some(32), seed: Some(5), k, ..Settings::paper() };
        assert_eq!(run.train, paper.check(55_000).unwrap());
        let pcd = options.paper("PCD-10", 25, 0.01, 1).train;
        assert_eq!(
            (pcd.warm_up.clone(), pcd.learning_rate, pcd.epochs, pcd.centred),
            (None, 0.01, 100, false)
        );
        assert_eq!(pcd.gradient.name(), "PCD-10, mean field");
        let quick = Options { quick: true, ..options }.paper("LVS-1", 25, 0.1, 0).train;
        assert_eq!((quick.epochs, quick.warm_up_epochs()), (10, 2));
        let gibbs = true_gibbs(&run).train;
        assert_eq!((gibbs.gradient.name().as_str(), gibbs.warm_up_epochs()), ("LVS-3 drop", 15));
        assert_eq!(gibbs.warm_up.map(|(_, warm_up)| warm_up.name()), Some("CD-1".into()));
    }
}
