//! Name a piece of work by everything that decides its result.

use crate::options::decided;
use mclv::chain::VisibleChain;
use mclv::data::DataSpec;
use mclv::partition::nominal_seconds;
use mclv::settings::{CheckedSettings, EstimatorSettings, Settings, TourLength};
use mclv::train::RunInput;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A piece of work. Two that are equal are done once, whichever experiments ask for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum Task {
    /// Train a model.
    Train(ModelOf),
    /// Find the likelihood of a trained model.
    Likelihood(LikelihoodOf),
    /// Go on from a trained model, and find the exact likelihood where that leads.
    Ascent(Box<AscentOf>),
    /// Make tours of a trained model.
    Tours(ToursOf),
    /// See which tours a chain is in after some steps.
    Inspection(InspectionOf),
    /// Measure the time of an epoch. Done alone, after everything else.
    Timing(TimingOf),
}

/// A model to be trained.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelOf {
    /// The data.
    pub data: DataSpec,
    /// How it is trained.
    pub train: CheckedSettings,
}

impl ModelOf {
    /// The same with other settings.
    pub(crate) fn with(&self, settings: Settings) -> Self {
        Self { data: self.data.clone(), train: decided(&settings.over(self.train.settings())) }
    }

    /// What its run is made from.
    pub(crate) fn input(&self) -> RunInput {
        RunInput { weights: None, data: self.data.clone(), train: self.train.settings() }
    }
}

/// A likelihood to be found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LikelihoodOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// By enumeration; else by tours, or AIS where they do not return.
    pub exact: bool,
}

/// What comes after a training.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AscentOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// How to go on from there.
    pub then: CheckedSettings,
}

/// Where tours begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToursFrom {
    /// In the stopping set, by `π_S`.
    Pi,
    /// At hidden states drawn from rows.
    Rows,
}

/// Tours to be made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToursOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// The chain.
    pub visible: VisibleChain,
    /// Where they begin.
    pub from: ToursFrom,
    /// Hidden states for each row in the stopping set.
    pub samples_per_row: usize,
    /// How many.
    pub n_tours: usize,
    /// Where they are cut.
    pub max_length: u32,
    /// Pictures of this many shortest and longest tours.
    pub n_pictures: usize,
    /// Seed of stopping set and tours.
    pub seed: u64,
}

/// Chains to be watched.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InspectionOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// Chains; each begins at the state that its row gave to the stopping set.
    pub n_chains: usize,
    /// After how many steps they are looked at.
    pub at: Vec<u32>,
    /// Tours not over by then are booked with this length.
    pub max_length: u32,
    /// Seed of stopping set and chains.
    pub seed: u64,
}

/// An epoch to be timed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TimingOf {
    /// Data and settings. Evaluations are no part of the time.
    pub model: ModelOf,
    /// Rows of the data that are used; 0: all.
    pub n_rows: usize,
    /// Epochs before the clock starts.
    pub n_before: usize,
    /// Epochs timed; the fastest counts.
    pub n_timed: usize,
}

impl Task {
    /// What must be done first.
    pub fn needs(&self) -> Option<Self> {
        let model = match self {
            Self::Train(_) | Self::Timing(_) => return None,
            Self::Ascent(of) => &of.model,
            Self::Likelihood(LikelihoodOf { model, .. })
            | Self::Tours(ToursOf { model, .. })
            | Self::Inspection(InspectionOf { model, .. }) => model,
        };
        Some(Self::Train(model.clone()))
    }

    /// Whether nothing else may run beside it.
    pub fn is_alone(&self) -> bool {
        matches!(self, Self::Timing(_))
    }

    /// A name for people.
    pub fn name(&self) -> String {
        match self {
            Self::Train(input) => format!("train {}", describe(&input.train)),
            Self::Likelihood(of) => {
                format!(
                    "{} likelihood {}",
                    if of.exact { "exact" } else { "estimated" },
                    describe(&of.model.train)
                )
            }
            Self::Ascent(of) => format!("ascent from {}", describe(&of.model.train)),
            Self::Tours(of) => {
                let chain = if of.visible == VisibleChain::Sampled { "Gibbs" } else { "mean-field" };
                format!("{chain} tours m={} {}", of.samples_per_row, describe(&of.model.train))
            }
            Self::Inspection(of) => format!("inspection {}", describe(&of.model.train)),
            Self::Timing(of) => {
                format!(
                    "timing N={} m={} {}",
                    of.n_rows,
                    samples_per_row(&of.model.train),
                    describe(&of.model.train)
                )
            }
        }
    }

    /// A name for files: the people's name and a digest of everything.
    pub fn key(&self) -> String {
        let json = serde_json::to_vec(self).expect("tasks are plain JSON");
        let digest = Sha256::digest(&json);
        let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{digest}", slug(&self.name()))
    }

    /// About how long it takes, in seconds of one core on MNIST. Only for the order of magnitude of what is left.
    pub fn nominal_seconds(&self) -> f64 {
        let width = |train: &CheckedSettings| 0.5 + train.n_hidden as f64 / 50.0;
        match self {
            Self::Train(input) => {
                input.train.epochs.max(1) as f64 * 0.12 * steps(&input.train.gradient) * width(&input.train)
            }
            Self::Likelihood(of) if of.exact => 2.0 + 3.0 * nominal_seconds(784, of.model.train.n_hidden),
            Self::Likelihood(_) => 10.0,
            Self::Ascent(of) => of.then.epochs as f64,
            Self::Tours(of) => 1.0 + of.n_tours as f64 * 1e-4,
            Self::Inspection(of) => of.n_chains as f64 * 1e-3,
            Self::Timing(of) => (of.n_before + of.n_timed) as f64,
        }
    }
}

/// About how many steps of a chain an update's work amounts to, for each row.
fn steps(gradient: &EstimatorSettings) -> f64 {
    match gradient {
        EstimatorSettings::Cd { k, .. } | EstimatorSettings::Pcd { k, .. } => 1.5 + *k as f64,
        EstimatorSettings::Lvs(lvs) => 5.0 + f64::from(if let TourLength::Steps(k) = lvs.k { k } else { 10 }),
        EstimatorSettings::Exact => 100.0,
    }
}

fn samples_per_row(train: &CheckedSettings) -> usize {
    if let EstimatorSettings::Lvs(lvs) = &train.gradient { lvs.samples_per_row } else { 0 }
}

/// What tells runs apart, in a few words.
pub(crate) fn describe(train: &CheckedSettings) -> String {
    format!(
        "{} nH={} lr={}{} epochs={} seed={}",
        train.gradient.name(),
        train.n_hidden,
        train.learning_rate,
        if train.centred { " centred" } else { "" },
        train.epochs,
        train.seed
    )
}

/// Lower-case letters, digits and single hyphens.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '.') => slug.push(c),
            _ if !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mclv::settings::EstimatorName;

    #[test]
    fn whatever_decides_the_result_is_in_the_key() {
        let gradient = Some(EstimatorName::Pcd);
        let train = decided(&Settings { gradient, ..Settings::default() });
        let model = ModelOf { data: DataSpec::default(), train };
        let key = |model: &ModelOf| Task::Train(model.clone()).key();
        let other = model.with(Settings { l2: Some(1e-9), ..Settings::default() });
        assert_eq!(key(&model), key(&model.clone()));
        assert_ne!(key(&model), key(&other));
        let exact = Task::Likelihood(LikelihoodOf { model: model.clone(), exact: true });
        assert!(exact.key().starts_with("exact-likelihood-pcd-3-nh-25-lr-0.4-centred-"), "{}", exact.key());
        assert_eq!(exact.needs(), Some(Task::Train(model)));
    }
}
