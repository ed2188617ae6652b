//! What `mclv train --tensorboard` writes of each epoch.

use mclv::bits::BitRows;
use mclv::data::{Dataset, RealRows, Rows};
use mclv::train::Metrics;
use mclv::{Rbm, Result, picture};
use mclv_report::tensorboard::{EventWriter, Value};
use std::path::Path;
use std::sync::Mutex;

/// Chains shown at most.
const MOST: usize = 64;

/// The event file of a run.
pub(crate) struct Events {
    writer: Mutex<EventWriter>,
    shape: Option<(usize, usize)>,
}

impl Events {
    pub(crate) fn create(folder: &Path, data: &Dataset) -> Result<Self> {
        Ok(Self { writer: Mutex::new(EventWriter::create(folder)?), shape: data.image_shape })
    }

    /// The numbers of an epoch.
    pub(crate) fn epoch(&self, m: &Metrics) {
        let mut values: Vec<(&str, Option<f64>)> = vec![
            ("likelihood/train", m.train_log_likelihood),
            ("likelihood/validation", m.validation_log_likelihood),
            ("likelihood/pseudo", m.pseudo_log_likelihood),
            ("likelihood/log_z", m.log_z.as_ref().map(|z| z.value)),
            ("likelihood/log_z_std_err", m.log_z.as_ref().map(|z| z.std_err)),
            ("training/learning_rate", Some(m.learning_rate)),
            ("training/reconstruction_error", m.reconstruction_error),
            ("training/weight_rms", Some(m.weight_rms)),
            ("training/gradient_norm", Some(m.gradient_norm)),
            ("training/chains_moved", m.chains_moved),
            ("training/seconds", Some(m.seconds)),
        ];
        if let Some(t) = &m.tours {
            values.extend([
                ("tours/completion", Some(t.completion())),
                ("tours/own_start", Some(t.n_completed_at_own_start as f64 / t.n_completed as f64)),
                ("tours/mean_length", Some(t.mean_length())),
                ("tours/set_size", Some(t.set_size as f64)),
                ("tours/log_z_s", Some(t.log_z_s)),
            ]);
        }
        let values: Vec<(&str, Value<'_>)> = values
            .into_iter()
            .filter_map(|(tag, value)| Some((tag, Value::Scalar(value.filter(|x| x.is_finite())?))))
            .collect();
        self.write(m.epoch, &values);
    }

    /// How parameters are spread; pictures of filters and chains.
    pub(crate) fn evaluated(&self, m: &Metrics, rbm: &Rbm, chains: Option<&BitRows>) {
        let weights = rbm.weights();
        self.write(
            m.epoch,
            &[
                ("parameters/weights", Value::Histogram(&weights)),
                ("parameters/visible_bias", Value::Histogram(rbm.visible_bias())),
                ("parameters/hidden_bias", Value::Histogram(rbm.hidden_bias())),
            ],
        );
        if let Some(shape) = self.shape {
            self.pictures(m.epoch, rbm, chains, shape).unwrap_or_else(|e| tracing::warn!("no pictures: {e}"));
        }
    }

    fn pictures(
        &self,
        epoch: usize,
        rbm: &Rbm,
        chains: Option<&BitRows>,
        shape: (usize, usize),
    ) -> Result<()> {
        let (weights, n_hidden) = (rbm.weights(), rbm.n_hidden());
        let largest = weights.iter().fold(f32::MIN_POSITIVE, |m, w| m.max(w.abs()));
        let n = n_hidden.min(MOST);
        let filters: Vec<f32> = (0..n)
            .flat_map(|j| weights.iter().skip(j).step_by(n_hidden).map(|w| 0.5 + 0.5 * w / largest))
            .collect();
        self.picture(epoch, "filters", RealRows::new(rbm.n_visible(), filters), shape)?;
        if let Some(chains) = chains {
            let first: Vec<usize> = (0..chains.n_rows().min(MOST)).collect();
            let means = rbm.mean_v_from_h(&Rows::Bits(chains.select(&first)))?;
            self.picture(epoch, "chains", means, shape)?;
        }
        Ok(())
    }

    fn picture(&self, epoch: usize, tag: &str, rows: RealRows, shape: (usize, usize)) -> Result<()> {
        let png = picture::grid(&Rows::Reals(rows), shape, 8)?;
        // Width and height stand at the head of a PNG.
        let number = |at: usize| png[at..at + 4].iter().fold(0, |n, &b| n << 8 | usize::from(b));
        let shape = (number(20), number(16));
        self.write(epoch, &[(tag, Value::Image { png: &png, shape })]);
        Ok(())
    }

    /// Training goes on if events cannot be written.
    fn write(&self, step: usize, values: &[(&str, Value<'_>)]) {
        let Ok(mut writer) = self.writer.lock() else { return };
        writer.write(step, values).unwrap_or_else(|e| tracing::warn!("TensorBoard: {e}"));
    }
}
