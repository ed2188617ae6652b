//! Tasks: pieces of work, described by everything that decides their results.

use crate::options::decided;
use crate::subject::{BaselineOf, QualityOf, ScoreOf};
use mclv::chain::VisibleChain;
use mclv::data::{DataSpec, Split};
use mclv::partition::nominal_seconds;
use mclv::settings::{CheckedSettings, EstimatorSettings, Settings, TourLength};
use mclv::train::{RunInput, StartModel};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// A piece of work. Equal tasks of different experiments run only once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum Task {
    /// Train a model.
    Train(ModelOf),
    /// Compute the likelihood of a trained model.
    Likelihood(LikelihoodOf),
    /// Continue from a trained model, and compute the exact likelihood of the result.
    Ascent(Box<AscentOf>),
    /// Run tours of a trained model.
    Tours(ToursOf),
    /// Find the tours in which chains are after some steps.
    Inspection(InspectionOf),
    /// Compare the rows of the data: likelihood, tours, oddness.
    Rows(RowsOf),
    /// Measure the direction of gradients against the exact gradient.
    Direction(DirectionOf),
    /// Count the memory of a stopping set.
    Space(SpaceOf),
    /// Measure the time of an epoch. It runs alone, after all other tasks.
    Timing(TimingOf),
    /// Fit a tractable model, and compute its likelihood of one part of the data.
    Baseline(BaselineOf),
    /// Compute the likelihood of one part of the data under an RBM.
    Score(ScoreOf),
    /// Compare samples with test rows.
    Quality(QualityOf),
}

/// A model to be trained.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelOf {
    /// The data.
    pub data: DataSpec,
    /// The settings of training.
    pub train: CheckedSettings,
    /// The weights of the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    /// The height and width of the rows, if they are pictures and the data do not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<(usize, usize)>,
    /// The model that training starts from, with its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StartModel>,
}

impl ModelOf {
    /// A model that is trained on these data, from an initial model.
    pub(crate) fn new(data: DataSpec, train: CheckedSettings) -> Self {
        Self { data, train, weights: None, shape: None, from: None }
    }

    /// The same with other settings.
    pub(crate) fn with(&self, settings: Settings) -> Self {
        Self { train: decided(&settings.over(self.train.settings())), ..self.clone() }
    }

    /// The input of its run.
    pub(crate) fn input(&self) -> RunInput {
        RunInput {
            shape: self.shape,
            weights: self.weights.clone(),
            from: self.from.clone(),
            data: self.data.clone(),
            train: self.train.settings(),
        }
    }
}

/// A likelihood to be found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LikelihoodOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// True for enumeration, false for tours (or AIS if tours do not return).
    pub exact: bool,
}

/// A continuation of a training.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AscentOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// The settings of the continuation.
    pub then: CheckedSettings,
}

/// Where tours start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToursFrom {
    /// At states of the stopping set, drawn from `π_S`.
    Pi,
    /// At hidden states drawn from rows.
    Rows,
}

/// Tours to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToursOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// The chain.
    pub visible: VisibleChain,
    /// Where they start.
    pub from: ToursFrom,
    /// Hidden states per row in the stopping set.
    pub samples_per_row: usize,
    /// Number of tours.
    pub n_tours: usize,
    /// Length at which they are cut.
    pub max_length: u32,
    /// Pictures of this many shortest and longest tours.
    pub n_pictures: usize,
    /// Seed of stopping set and tours.
    pub seed: u64,
}

/// Chains to observe.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InspectionOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// Number of chains. Each starts at the state that its row gave to the stopping set.
    pub n_chains: usize,
    /// Numbers of steps after which they are observed.
    pub at: Vec<u32>,
    /// Tours that are not over by then are recorded with this length.
    pub max_length: u32,
    /// Seed of stopping set and chains.
    pub seed: u64,
}

/// Rows to compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RowsOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// The chain of tours.
    pub visible: VisibleChain,
    /// Rows at which tours start; 0: no tours, only likelihoods.
    pub n_rows: usize,
    /// Tours for each of these rows, on average.
    pub tours_per_row: usize,
    /// Length at which tours are cut.
    pub max_length: u32,
    /// Seed of stopping set and tours.
    pub seed: u64,
}

/// Gradients whose direction is measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DirectionOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// Numbers of steps K, rising. Dynamic K is measured as well.
    pub ks: Vec<u32>,
    /// Updates of the same model.
    pub n_updates: usize,
    /// Tours for each update.
    pub n_tours: usize,
    /// Seed of stopping set and tours.
    pub seed: u64,
}

/// A stopping set whose memory is counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SpaceOf {
    /// How the model is trained.
    pub model: ModelOf,
    /// The first rows of the data.
    pub n_rows: usize,
    /// Hidden states for each row.
    pub samples_per_row: usize,
    /// Seed of the stopping set.
    pub seed: u64,
}

/// An epoch to time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TimingOf {
    /// Data and settings. The time does not include evaluations.
    pub model: ModelOf,
    /// Rows of the data that are used; 0: all.
    pub n_rows: usize,
    /// Epochs before the clock starts.
    pub n_before: usize,
    /// Epochs timed; the fastest counts.
    pub n_timed: usize,
}

impl Task {
    /// The tasks that must be finished first.
    pub fn needs(&self) -> Option<Self> {
        let model = match self {
            Self::Train(_) | Self::Timing(_) | Self::Baseline(_) => return None,
            // log Z is computed once, with the first part.
            Self::Score(of) if of.split == Split::Test && of.is_first_on_validation() => {
                return Some(Self::Score(of.on(Split::Validation)));
            }
            Self::Score(ScoreOf { subject, .. }) => return subject.model().cloned().map(Self::Train),
            Self::Quality(of) => return of.source.subject()?.model().cloned().map(Self::Train),
            Self::Ascent(of) => &of.model,
            Self::Likelihood(LikelihoodOf { model, .. })
            | Self::Tours(ToursOf { model, .. })
            | Self::Rows(RowsOf { model, .. })
            | Self::Direction(DirectionOf { model, .. })
            | Self::Space(SpaceOf { model, .. })
            | Self::Inspection(InspectionOf { model, .. }) => model,
        };
        Some(Self::Train(model.clone()))
    }

    /// Returns true if no other task may run at the same time.
    pub fn is_alone(&self) -> bool {
        matches!(self, Self::Timing(_))
    }

    /// A readable name.
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
            Self::Rows(of) => format!("rows {}", describe(&of.model.train)),
            Self::Direction(of) => format!("direction {}", describe(&of.model.train)),
            Self::Space(of) => {
                let SpaceOf { n_rows, samples_per_row, .. } = of;
                format!("space N={n_rows} m={samples_per_row} {}", describe(&of.model.train))
            }
            Self::Timing(of) => {
                format!(
                    "timing N={} m={} {}",
                    of.n_rows,
                    samples_per_row(&of.model.train),
                    describe(&of.model.train)
                )
            }
            Self::Baseline(of) => format!("{} {} {}", of.data.source, of.model.name(), of.split),
            Self::Score(of) => format!("{} {} {}", of.data.source, of.split, of.subject.name()),
            Self::Quality(of) => format!("{} samples {}", of.data.source, of.source.name()),
        }
    }

    /// A name for files: the readable name and a digest of all settings.
    pub fn key(&self) -> String {
        let json = serde_json::to_vec(self).expect("tasks are plain JSON");
        let digest = Sha256::digest(&json);
        let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{digest}", slug(&self.name()))
    }

    /// A rough cost in seconds of one core on MNIST, used to show the remaining time.
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
            Self::Rows(of) => 1.0 + (of.n_rows * of.tours_per_row) as f64 * 1e-4,
            Self::Direction(of) => 1.0 + (of.n_updates * of.n_tours) as f64 * 1e-4,
            Self::Space(_) => 1.0,
            Self::Timing(of) => (of.n_before + of.n_timed) as f64,
            Self::Baseline(_) => 2.0,
            Self::Score(of) => 1.0 + nominal_seconds(100, of.subject.n_hidden()).min(30.0),
            Self::Quality(_) => 5.0,
        }
    }
}

/// The approximate cost of an update per row, in steps of a chain.
fn steps(gradient: &EstimatorSettings) -> f64 {
    match gradient {
        EstimatorSettings::Cd { k, .. } | EstimatorSettings::Pcd { k, .. } => 1.5 + *k as f64,
        EstimatorSettings::Lvs(lvs) => 5.0 + f64::from(if let TourLength::Steps(k) = lvs.k { k } else { 10 }),
        EstimatorSettings::Tempered { k, n_chains, n_rungs } => 1.5 + (k * n_chains * n_rungs) as f64 / 128.0,
        EstimatorSettings::Ucd { k, .. } => 10.0 * (*k).max(10) as f64,
        EstimatorSettings::Exact => 100.0,
    }
}

fn samples_per_row(train: &CheckedSettings) -> usize {
    if let EstimatorSettings::Lvs(lvs) = &train.gradient { lvs.samples_per_row } else { 0 }
}

/// A short text of the settings that distinguish runs.
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
        let model = ModelOf::new(DataSpec::default(), train);
        let key = |model: &ModelOf| Task::Train(model.clone()).key();
        let other = model.with(Settings { l2: Some(1e-9), ..Settings::default() });
        assert_eq!(key(&model), key(&model.clone()));
        assert_ne!(key(&model), key(&other));
        let exact = Task::Likelihood(LikelihoodOf { model: model.clone(), exact: true });
        assert!(exact.key().starts_with("exact-likelihood-pcd-3-nh-25-lr-0.4-centred-"), "{}", exact.key());
        assert_eq!(exact.needs(), Some(Task::Train(model)));
    }
}
