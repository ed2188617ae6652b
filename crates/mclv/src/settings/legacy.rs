//! Reads the settings of version 0.1, which were nested and used zero for `auto` and `off`.
//!
//! ```toml
//! [train]
//! epochs = 0                   # automatic
//! [train.optimizer]
//! rule = "sgd"
//! [train.gradient]
//! estimator = "pcd"
//! n_chains = 0                 # as many as rows in a minibatch
//! [train.warm-up]
//! estimator = "cd"
//! ```

use super::{
    EstimatorName, EstimatorSettings, EvalEvery, LvsSettings, Optimizer, Preset, Schedule, Settings, Starts,
    Statistics, TourLength, Unfinished,
};
use crate::chain::VisibleChain;
use crate::model::Init;
use serde::Deserialize;
use serde_json::Value;

/// Returns true if settings are nested, as in version 0.1.
pub(crate) fn is_old(train: &Value) -> bool {
    ["gradient", "optimizer", "warm-up"].iter().any(|key| train[key].is_object())
}

/// Reads settings of this version or of version 0.1.
///
/// # Errors
/// A text that names the problem and what to do about it.
pub(crate) fn read(train: Value) -> Result<Settings, String> {
    if is_old(&train) {
        let train: Train = serde_json::from_value(train).map_err(|e| e.to_string())?;
        train.settings()
    } else {
        serde_json::from_value(train).map_err(|e| e.to_string())
    }
}

/// The settings of version 0.1, with its defaults.
#[derive(Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct Train {
    n_hidden: usize,
    init: Init,
    epochs: usize,
    batch_size: usize,
    drop_last: bool,
    learning_rate: f64,
    schedule: Schedule,
    l1: f64,
    l2: f64,
    centred: bool,
    offset_rate: f64,
    clip: f64,
    warm_up_epochs: usize,
    redraw_bits: bool,
    eval_every: usize,
    patience: usize,
    seed: u64,
    optimizer: OldOptimizer,
    gradient: Gradient,
    warm_up: Gradient,
}

impl Default for Train {
    fn default() -> Self {
        Self {
            n_hidden: 25,
            init: Init::Data,
            epochs: 0,
            batch_size: 128,
            drop_last: false,
            learning_rate: 0.4,
            schedule: Schedule::Linear,
            l1: 0.0,
            l2: 0.0,
            centred: true,
            offset_rate: 0.01,
            clip: 0.0,
            warm_up_epochs: 0,
            redraw_bits: false,
            eval_every: 0,
            patience: 0,
            seed: 0,
            optimizer: OldOptimizer::Sgd { momentum: 0.0 },
            gradient: Gradient::Pcd { k: 3, n_chains: 0, visible: VisibleChain::Sampled },
            warm_up: Gradient::Cd { k: 1, visible: VisibleChain::Sampled },
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
enum OldOptimizer {
    Sgd {
        #[serde(default)]
        momentum: f64,
    },
    Adam {
        #[serde(default = "beta1")]
        beta1: f64,
        #[serde(default = "beta2")]
        beta2: f64,
        #[serde(default = "epsilon")]
        epsilon: f64,
    },
}

fn beta1() -> f64 {
    0.9
}

fn beta2() -> f64 {
    0.999
}

fn epsilon() -> f64 {
    1e-8
}

#[derive(Deserialize)]
#[serde(tag = "estimator", rename_all = "kebab-case", deny_unknown_fields)]
enum Gradient {
    Cd {
        #[serde(default = "one")]
        k: usize,
        #[serde(default = "sampled")]
        visible: VisibleChain,
    },
    Pcd {
        #[serde(default = "one")]
        k: usize,
        #[serde(default)]
        n_chains: usize,
        #[serde(default = "sampled")]
        visible: VisibleChain,
    },
    Lvs(Lvs),
    Exact,
}

fn one() -> usize {
    1
}

fn sampled() -> VisibleChain {
    VisibleChain::Sampled
}

#[derive(Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct Lvs {
    k: TourLength,
    n_tours: usize,
    samples_per_row: usize,
    row_fraction: f64,
    redraw_every: usize,
    unfinished: Unfinished,
    starts: Starts,
    min_ess: f64,
    statistics: Statistics,
    visible: VisibleChain,
    target_completion: f64,
    max_states: usize,
    max_set_cost: f64,
}

impl Default for Lvs {
    fn default() -> Self {
        Self {
            k: TourLength::Steps(1),
            n_tours: 0,
            samples_per_row: 1,
            row_fraction: 1.0,
            redraw_every: 1,
            unfinished: Unfinished::Carry,
            starts: Starts::Metropolis,
            min_ess: 0.2,
            statistics: Statistics::MeanHidden,
            visible: VisibleChain::Sampled,
            target_completion: 0.0,
            max_states: 1_000_000,
            max_set_cost: 0.0,
        }
    }
}

/// In version 0.1, zero meant "not set".
fn unless_zero<T: Default + PartialEq>(value: T) -> Option<T> {
    Some(value).filter(|value| *value != T::default())
}

impl Train {
    fn settings(self) -> Result<Settings, String> {
        let warm_up_k = match (self.warm_up_epochs, &self.warm_up) {
            (0, _) => None,
            (_, &Gradient::Cd { k, visible }) => {
                let other = self.gradient.visible().is_some_and(|of_gradient| of_gradient != visible);
                if other {
                    return Err(
                        "the warm-up and the estimator have different values of `visible`, which this version \
                                does not support: make them equal, or set `warm-up-epochs = 0`"
                            .into(),
                    );
                }
                Some(k)
            }
            _ => {
                return Err(
                    "the warm-up is not contrastive divergence, and this version supports no other: train \
                            with that estimator first, or set `warm-up-epochs = 0`"
                        .into(),
                );
            }
        };
        // The exact gradient has no chain of its own.
        let visible = self.warm_up.visible().filter(|_| warm_up_k.is_some());
        let others = Settings {
            preset: Some(Preset::Default),
            n_hidden: Some(self.n_hidden),
            init: Some(self.init),
            visible,
            warm_up_epochs: Some(self.warm_up_epochs),
            warm_up_k,
            epochs: Some(unless_zero(self.epochs).into()),
            batch_size: Some(self.batch_size),
            drop_last: Some(self.drop_last),
            learning_rate: Some(self.learning_rate),
            schedule: Some(self.schedule),
            l1: Some(self.l1),
            l2: Some(self.l2),
            clip: Some(unless_zero(self.clip).into()),
            centred: Some(self.centred),
            offset_rate: Some(self.offset_rate),
            redraw_bits: Some(self.redraw_bits),
            eval_every: Some(unless_zero(self.eval_every).map_or(EvalEvery::Auto, EvalEvery::Epochs)),
            patience: Some(unless_zero(self.patience).into()),
            seed: Some(self.seed),
            ..Settings::default()
        };
        let optimizer = match self.optimizer {
            OldOptimizer::Sgd { momentum } => Optimizer::Sgd { momentum },
            OldOptimizer::Adam { beta1, beta2, epsilon } => Optimizer::Adam { beta1, beta2, epsilon },
        };
        Ok(self.gradient.settings().or(Settings::from(&optimizer)).or(others))
    }
}

impl Gradient {
    fn visible(&self) -> Option<VisibleChain> {
        match self {
            Self::Cd { visible, .. } | Self::Pcd { visible, .. } => Some(*visible),
            Self::Lvs(lvs) => Some(lvs.visible),
            Self::Exact => None,
        }
    }

    fn settings(self) -> Settings {
        let estimator = match self {
            Self::Cd { k, visible } => EstimatorSettings::Cd { k, visible },
            Self::Pcd { k, n_chains, visible } => {
                EstimatorSettings::Pcd { k, n_chains: unless_zero(n_chains), visible }
            }
            Self::Lvs(lvs) if lvs.row_fraction == 0.0 => {
                let settings = Self::Lvs(Lvs { row_fraction: 1.0, ..lvs }).settings();
                return Settings { row_fraction: Some(None.into()), ..settings };
            }
            Self::Lvs(lvs) => EstimatorSettings::Lvs(LvsSettings {
                k: lvs.k,
                n_tours: unless_zero(lvs.n_tours),
                unfinished: lvs.unfinished,
                starts: lvs.starts,
                statistics: lvs.statistics,
                visible: lvs.visible,
                samples_per_row: lvs.samples_per_row,
                row_fraction: lvs.row_fraction,
                redraw_every: lvs.redraw_every,
                min_ess: lvs.min_ess,
                target_completion: unless_zero(lvs.target_completion),
                max_states: lvs.max_states,
                max_set_cost: unless_zero(lvs.max_set_cost),
            }),
            Self::Exact => return Settings { gradient: Some(EstimatorName::Exact), ..Settings::default() },
        };
        Settings::from(&estimator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Auto, CheckedSettings, Limit, Rule};
    use crate::train::RunInput;
    use std::path::Path;

    /// A `config.toml` that version 0.1 wrote, for digits: 1,297 training rows.
    macro_rules! old {
        ($name:literal) => {
            checked(include_str!(concat!("../../tests/fixtures/config-0.1/", $name, ".toml")))
        };
    }

    fn checked(text: &str) -> CheckedSettings {
        let input = RunInput::from_toml(text, Path::new("config.toml")).unwrap();
        assert_eq!(input.data.source, "digits");
        let checked = input.train.check(1297).unwrap();
        // Settings that are newer than the file have their defaults.
        assert_eq!(input.train.or(checked.settings()), checked.settings(), "the file is kept word for word");
        checked
    }

    fn refused(text: &str) -> String {
        RunInput::from_toml(text, Path::new("old.toml")).unwrap_err().to_string()
    }

    fn same(old: &CheckedSettings, new: Settings) {
        assert_eq!(*old, Settings { seed: Some(0), ..new }.check(1297).unwrap());
    }

    #[test]
    fn files_of_version_0_1_are_the_same_trainings() {
        let once = Settings { epochs: Some(1.into()), ..Settings::default() };
        same(&old!("default"), once.clone());
        let pcd = Settings {
            gradient: Some(EstimatorName::Pcd),
            k: Some(TourLength::Steps(1)),
            n_chains: Some(50.into()),
            clip: Some(1.0.into()),
            momentum: Some(0.5),
            ..once.clone()
        };
        same(&old!("pcd"), pcd);
        let adam = Settings {
            gradient: Some(EstimatorName::Exact),
            n_hidden: Some(4),
            optimizer: Some(Rule::Adam),
            patience: Some(Limit::At(3)),
            eval_every: Some(EvalEvery::Epochs(2)),
            ..once.clone()
        };
        same(&old!("adam"), adam);
        let lvs = Settings {
            gradient: Some(EstimatorName::Lvs),
            unfinished: Some(Unfinished::Keep),
            target_completion: Some(0.5.into()),
            max_set_cost: Some(2.0.into()),
            visible: Some(VisibleChain::MeanField),
            ..once
        };
        same(&old!("lvs"), lvs);
        let paper = Settings {
            k: Some(TourLength::Dynamic),
            starts: Some(Starts::Weighted),
            epochs: Some(3.into()),
            warm_up_epochs: Some(2),
            ..Settings::paper()
        };
        // The old files do not know which preset they came from.
        let paper = CheckedSettings { preset: Preset::Default, ..paper.check(1297).unwrap() };
        assert_eq!(old!("paper"), paper);
    }

    #[test]
    fn what_a_file_left_out_had_the_defaults_of_version_0_1() {
        let text = "[train]\nepochs = 0\n[train.gradient]\nestimator = \"lvs\"\nrow-fraction = 0\n";
        let train = RunInput::from_toml(text, Path::new("old.toml")).unwrap().train;
        assert_eq!((train.epochs, train.row_fraction), (Some(Auto::Auto), Some(Auto::Auto)));
        let checked = train.check(50_000).unwrap();
        assert_eq!((checked.learning_rate, checked.epochs), (0.4, 100));
        let EstimatorSettings::Lvs(lvs) = checked.gradient else { panic!("{checked:?}") };
        assert_eq!((lvs.k, lvs.row_fraction, lvs.n_tours), (TourLength::Steps(1), 0.03, None));
    }

    #[test]
    fn what_cannot_be_said_any_more_is_refused_with_the_cure() {
        let gradient = "[train.gradient]\nestimator = \"lvs\"\n";
        let other = "[train.warm-up]\nestimator = \"pcd\"\n";
        let text = refused(&format!("[train]\nwarm-up-epochs = 3\n{gradient}{other}"));
        assert!(text.contains("old.toml") && text.contains("warm-up-epochs = 0"), "{text}");
        let chain = "[train.warm-up]\nestimator = \"cd\"\nvisible = \"mean-field\"\n";
        let text = refused(&format!("[train]\nwarm-up-epochs = 3\n{gradient}{chain}"));
        assert!(text.contains("`visible`"), "{text}");
        // Without a warm-up it does not matter.
        RunInput::from_toml(&format!("{gradient}{other}"), Path::new("old.toml")).unwrap();
        assert!(refused("[train.gradient]\nestimator = \"lvs\"\ntours = 3\n").contains("tours"));
        // Files without nested settings are of this version, which gives 0 no meaning.
        let new = RunInput::from_toml("[train]\nepochs = 0\n", Path::new("new.toml")).unwrap();
        assert!(new.train.check(10).unwrap_err().to_string().contains("`auto`"));
    }
}
