//! Train on rows that arrive in pieces.

use super::checkpoint;
use super::trainer::Trainer;
use super::training::of_model;
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::settings::{self, Auto, EstimatorSettings, Schedule, Settings, Snapshots};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A number of pieces that no training reaches.
const ENDLESS: usize = 1 << 31;

/// Training on rows that arrive in pieces of any size: one pass over each piece, in minibatches.
///
/// Chains, optimiser and centring continue from piece to piece. The learning rate is constant,
/// because the number of rows to come is not known. The visible offsets of centring are the means
/// of all rows so far. A stopping set is drawn from the rows of the current piece, so tours need
/// pieces of some hundred rows.
///
/// ```
/// use mclv::data::{self, DataSpec};
/// use mclv::progress::Silent;
/// use mclv::settings::Settings;
/// use mclv::train::Feed;
/// let bars = data::load(&DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() }, &Silent)?;
/// let mut feed = Feed::new(&Settings { n_hidden: Some(4), ..Settings::default() }, &bars.rows, None)?;
/// feed.add(&bars.rows.select(&[0, 3, 5]), &Silent)?;
/// let mut again = Feed::from_bytes(&feed.to_bytes())?;
/// feed.add(&bars.rows, &Silent)?;
/// again.add(&bars.rows, &Silent)?;
/// assert_eq!(feed.rbm(), again.rbm());
/// # Ok::<(), mclv::Error>(())
/// ```
pub struct Feed {
    trainer: Trainer,
    /// The number of rows so far.
    n_rows: usize,
}

/// The values that are saved besides the trainer's state.
#[derive(Serialize, Deserialize)]
struct Kept {
    settings: serde_json::Value,
    visible_offsets: Vec<f64>,
    n_rows: usize,
    n_updates: u64,
}

impl Feed {
    /// Begins with `rbm`, or with an initial model for `rows`. These rows are inspected, but
    /// not trained on.
    ///
    /// # Errors
    /// If settings, model and rows do not fit together.
    pub fn new(settings: &Settings, rows: &Rows, rbm: Option<Rbm>) -> Result<Self> {
        if settings.check_without_rows()?.snapshots != Snapshots::Off {
            return Err(Error::InvalidSetting {
                name: "snapshots",
                value: settings.snapshots.as_ref().map(ToString::to_string).unwrap_or_default(),
                cure: "data in pieces have no epochs; copy the model between two pieces instead",
            });
        }
        let settings = match &rbm {
            Some(rbm) => of_model(settings.clone(), rbm)?,
            None => settings.clone(),
        };
        let settings = Settings {
            schedule: Some(Schedule::Constant),
            epochs: Some(Auto::Given(ENDLESS)),
            drop_last: Some(false),
            ..settings
        };
        let mut settings = settings.check(rows.n_rows())?;
        // The first minibatch may be a short one.
        let n = Some(settings.batch_size);
        match &mut settings.gradient {
            EstimatorSettings::Pcd { n_chains, .. } => *n_chains = n_chains.or(n),
            EstimatorSettings::Lvs(lvs) => lvs.n_tours = lvs.n_tours.or(n),
            _ => {}
        }
        let mut trainer = match rbm {
            None => Trainer::new(settings, rows, None),
            Some(rbm) => Trainer::from_model(settings, rbm, rows, None),
        }?;
        trainer.n_updates_before = Some(0);
        Ok(Self { trainer, n_rows: 0 })
    }

    /// Trains on `rows`. A piece that is cancelled is not continued: the next piece begins with its
    /// own rows.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the listener cancels; or if the rows do not fit the model; or if the
    /// estimator fails.
    pub fn add(&mut self, rows: &Rows, progress: &dyn Progress) -> Result<()> {
        let trainer = &mut self.trainer;
        trainer.rbm().check_width(rows.n_columns())?;
        trainer.settings.check_rows(rows.n_rows())?;
        let share = rows.n_rows() as f64 / (self.n_rows + rows.n_rows()) as f64;
        for (mean, new) in trainer.offsets.visible.iter_mut().zip(rows.column_means()) {
            // The means before the first piece were only a guess.
            *mean = if self.n_rows == 0 { new } else { *mean + share * (new - *mean) };
        }
        self.n_rows += rows.n_rows();
        let epoch = trainer.epoch;
        let result = trainer.epoch(rows, progress);
        (trainer.epoch, trainer.update) = (epoch + 1, 0);
        let n_updates = trainer.settings.n_updates(rows.n_rows()) as u64;
        trainer.n_updates_before = trainer.n_updates_before.map(|n| n + n_updates);
        result
    }

    /// Returns the model as it is now.
    pub fn rbm(&self) -> &Rbm {
        self.trainer.rbm()
    }

    /// The number of pieces so far.
    pub fn n_pieces(&self) -> usize {
        self.trainer.epochs_done()
    }

    /// Returns the hidden states of persistent chains or running tours, if there are any.
    pub fn chains(&self) -> Option<BitRows> {
        self.trainer.chains()
    }

    /// Returns everything that is needed to continue exactly, as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let trainer = &self.trainer;
        let kept = Kept {
            settings: serde_json::to_value(&trainer.settings).expect("settings are plain JSON"),
            visible_offsets: trainer.offsets.visible.clone(),
            n_rows: self.n_rows,
            n_updates: trainer.n_updates_before.unwrap_or_default(),
        };
        checkpoint::to_bytes(&trainer.state(), &kept, None)
    }

    /// Continues from bytes that [`to_bytes`](Self::to_bytes) returned.
    ///
    /// # Errors
    /// If the bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let source = Path::new("kept training");
        let (state, kept) = checkpoint::from_bytes::<Kept>(source, bytes)?;
        let settings = settings::read(kept.settings).map_err(|e| Error::malformed(source, e))?;
        let settings = settings.check_without_rows()?;
        if kept.visible_offsets.len() != state.rbm.n_visible() {
            return Err(Error::malformed(source, "the visible offsets have another size"));
        }
        if kept.n_rows as u64 > 1 << 53 || kept.n_updates > 1 << 53 {
            return Err(Error::malformed(source, "it counts more rows or updates than any training has"));
        }
        let mut trainer = Trainer::assemble(settings, state.rbm.clone(), kept.visible_offsets, None);
        trainer.restore(state)?;
        trainer.n_updates_before = Some(kept.n_updates);
        Ok(Self { trainer, n_rows: kept.n_rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn no_two_updates_have_the_same_number() {
        let rows = |n| Rows::Bits(BitRows::zeros(n, 3));
        let settings = Settings { n_hidden: Some(2), batch_size: Some(10), ..Settings::default() };
        let mut feed = Feed::new(&settings, &rows(1), None).unwrap();
        let mut expected = 0;
        for (n_rows, n_updates) in [(1, 1), (35, 4), (10, 1), (11, 2)] {
            feed.add(&rows(n_rows), &Silent).unwrap();
            expected += n_updates;
            assert_eq!(feed.trainer.n_updates_before, Some(expected));
        }
        let again = Feed::from_bytes(&feed.to_bytes()).unwrap();
        assert_eq!(again.trainer.n_updates_before, Some(expected));
    }

    #[test]
    fn visible_offsets_are_the_means_of_all_rows_so_far() {
        let column = |values: &[f32]| Rows::from_values("x", 1, values.to_vec()).unwrap();
        let settings = Settings { n_hidden: Some(2), ..Settings::default() };
        let mut feed = Feed::new(&settings, &column(&[0.25]), None).unwrap();
        for (piece, mean) in [(&[1.0, 0.0][..], 0.5), (&[1.0, 1.0], 0.75), (&[0.0; 8], 0.25)] {
            feed.add(&column(piece), &Silent).unwrap();
            assert!((feed.trainer.offsets.visible[0] - mean).abs() < 1e-12);
        }
    }
}
