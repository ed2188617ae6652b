//! Say how to train.

use super::{Optimizer, Schedule};
use crate::gradient::{Gradient, Lvs, Starts, Statistics, TourLength, Unfinished, VisibleChain};
use crate::model::Init;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Everything that decides the result of training, beside the data.
///
/// ```
/// use mclv::train::TrainSettings;
/// let settings = TrainSettings { n_hidden: 16, epochs: 5, ..TrainSettings::default() };
/// settings.check()?;
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainSettings {
    /// Hidden units.
    pub n_hidden: usize,
    /// How the model begins.
    pub init: Init,
    /// Passes over the data; 0: 100, or as many as make 10,000 updates.
    pub epochs: usize,
    /// Rows per update.
    pub batch_size: usize,
    /// Leave out the last minibatch of an epoch if it is short.
    pub drop_last: bool,
    /// Initial learning rate.
    pub learning_rate: f64,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// Weight decay: absolute values.
    pub l1: f64,
    /// Weight decay: squares.
    pub l2: f64,
    /// Centre the gradient.
    pub centred: bool,
    /// How fast the hidden offsets follow the data: the weight of one minibatch.
    pub offset_rate: f64,
    /// Largest norm of a gradient; 0: no limit.
    pub clip: f64,
    /// Epochs of warm-up with another estimator.
    pub warm_up_epochs: usize,
    /// Draw the bits of grey data anew in each epoch (with `bernoulli` binarisation).
    pub redraw_bits: bool,
    /// Epochs between two evaluations; 0: as often as 5 % of the time allows on a nominal machine.
    pub eval_every: usize,
    /// Stop after this many evaluations without a better validation likelihood; 0: never.
    pub patience: usize,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The rule for steps.
    pub optimizer: Optimizer,
    /// The gradient estimator.
    pub gradient: Gradient,
    /// The estimator of the warm-up.
    pub warm_up: Gradient,
}

/// The most hidden units for which chains are expected to come by a stopping set.
const MOST_FOR_TOURS: usize = 64;

impl Default for TrainSettings {
    /// Centred persistent chains, a rate that falls to zero: good at any size. [`best`](Self::best) is better for small models.
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
            optimizer: Optimizer::default(),
            gradient: Gradient::Pcd { k: 3, n_chains: 0, visible: VisibleChain::Sampled },
            warm_up: Gradient::Cd { k: 1, visible: VisibleChain::Sampled },
        }
    }
}

impl TrainSettings {
    /// The best we know for so many hidden units.
    ///
    /// Up to 64 these are tours that are carried on from update to update, with a small stopping set: a chain that comes by it may
    /// go on from another of its states, and so reach modes that it would not find by itself. In larger models hardly a chain comes
    /// by, and [persistent ones](Self::default) do the same in less time.
    pub fn best(n_hidden: usize) -> Self {
        let chains = Self { n_hidden, ..Self::default() };
        if n_hidden > MOST_FOR_TOURS {
            return chains;
        }
        let tours = Lvs { k: TourLength::Steps(3), row_fraction: 0.0, ..Lvs::default() };
        Self { learning_rate: 0.6, gradient: Gradient::Lvs(tours), ..chains }
    }

    /// The protocol of the paper's code: a mean-field chain, no centring, plateau schedule, 15 epochs of CD-1 before LVS.
    ///
    /// `gradient` is taken with its own `k`; its chain, statistics and policies become the paper's.
    pub fn paper(gradient: Gradient) -> Self {
        let visible = VisibleChain::MeanField;
        let (gradient, warm_up_epochs) = match gradient {
            Gradient::Cd { k, .. } => (Gradient::Cd { k, visible }, 0),
            Gradient::Pcd { k, .. } => (Gradient::Pcd { k, n_chains: 128, visible }, 0),
            Gradient::Lvs(lvs) => {
                let starts = if lvs.starts == Starts::Weighted { Starts::Weighted } else { Starts::Fresh };
                let paper = Lvs {
                    k: lvs.k,
                    n_tours: 128,
                    unfinished: Unfinished::Drop,
                    starts,
                    statistics: Statistics::Sampled,
                    visible,
                    samples_per_row: lvs.samples_per_row,
                    min_ess: lvs.min_ess,
                    ..Lvs::default()
                };
                (Gradient::Lvs(paper), 15)
            }
            Gradient::Exact => (Gradient::Exact, 0),
        };
        Self {
            init: Init::Paper,
            epochs: 100,
            drop_last: true,
            learning_rate: 0.1,
            schedule: Schedule::Plateau,
            centred: false,
            warm_up_epochs,
            gradient,
            warm_up: Gradient::Cd { k: 1, visible },
            ..Self::default()
        }
    }

    /// LVS as the paper has it, cut after `k` steps.
    pub fn paper_lvs(k: u32) -> Self {
        Self::paper(Gradient::Lvs(Lvs { k: TourLength::Steps(k), starts: Starts::Fresh, ..Lvs::default() }))
    }

    /// The same with the number of epochs, and of rows for stopping sets, decided for `n_rows` rows.
    pub fn resolved(mut self, n_rows: usize) -> Self {
        if self.epochs == 0 {
            self.epochs = 10_000usize.div_ceil(n_rows.div_ceil(self.batch_size.max(1)).max(1)).max(100);
        }
        for gradient in [&mut self.gradient, &mut self.warm_up] {
            if let Gradient::Lvs(lvs) = gradient
                && lvs.row_fraction == 0.0
            {
                lvs.row_fraction = (1000.0 / n_rows.max(1) as f64).clamp(0.03, 1.0);
            }
        }
        self
    }

    /// Whether the settings make sense.
    ///
    /// # Errors
    /// Names the setting and what it may be.
    pub fn check(&self) -> Result<()> {
        let positive = "must be a positive number";
        for (name, value) in [("n-hidden", self.n_hidden), ("batch-size", self.batch_size)] {
            if value == 0 {
                return Err(Error::InvalidSetting { name, value: "0".into(), cure: positive });
            }
        }
        if self.batch_size >= 1 << 24 {
            return Err(Error::InvalidSetting {
                name: "batch-size",
                value: self.batch_size.to_string(),
                cure: "fewer than 16,777,216 rows",
            });
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(Error::InvalidSetting {
                name: "learning-rate",
                value: self.learning_rate.to_string(),
                cure: positive,
            });
        }
        for (name, value) in [("l1", self.l1), ("l2", self.l2), ("clip", self.clip)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::InvalidSetting {
                    name,
                    value: value.to_string(),
                    cure: "must be 0 or more",
                });
            }
        }
        if !(self.offset_rate > 0.0 && self.offset_rate <= 1.0) {
            return Err(Error::InvalidSetting {
                name: "offset-rate",
                value: self.offset_rate.to_string(),
                cure: "more than 0, at most 1",
            });
        }
        if self.epochs > 0 && self.warm_up_epochs >= self.epochs {
            return Err(Error::InvalidSetting {
                name: "warm-up-epochs",
                value: self.warm_up_epochs.to_string(),
                cure: "must be fewer than all epochs, or the estimator asked for is never used",
            });
        }
        self.optimizer.check()?;
        self.gradient.check()?;
        self.warm_up.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_models_get_tours_from_enough_rows() {
        let fraction = |n_rows| match TrainSettings::best(64).resolved(n_rows).gradient {
            Gradient::Lvs(lvs) => lvs.row_fraction,
            other => panic!("{other:?}"),
        };
        assert_eq!((fraction(30), fraction(2_000), fraction(55_000)), (1.0, 0.5, 0.03));
        assert_eq!(TrainSettings::best(65), TrainSettings { n_hidden: 65, ..TrainSettings::default() });
        // What is said is left as it is.
        let lvs = Gradient::Lvs(Lvs::default());
        assert_eq!(TrainSettings::paper(lvs.clone()).resolved(55_000), TrainSettings::paper(lvs));
    }
}
