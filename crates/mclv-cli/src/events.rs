//! The TensorBoard events that `mclv train --tensorboard` writes in each epoch.

use mclv::bits::BitRows;
use mclv::data::{Dataset, RealRows, Rows};
use mclv::train::{Metrics, RunFolder};
use mclv::{Rbm, Result, picture};
use mclv_report::tensorboard::{EventWriter, Histogram, Value};
use std::path::Path;
use std::sync::Mutex;

/// The largest number of chains in a picture.
const MOST: usize = 64;
/// Buckets of a histogram.
const N_BUCKETS: usize = 30;

/// The event file of a run.
pub(crate) struct Events {
    writer: Mutex<EventWriter>,
    shape: Option<(usize, usize)>,
}

impl Events {
    pub(crate) fn create(folder: &Path, data: &Dataset) -> Result<Self> {
        let writer = EventWriter::create(RunFolder::new(folder).events())?;
        Ok(Self { writer: Mutex::new(writer), shape: data.image_shape })
    }

    /// Writes the numbers of an epoch.
    pub(crate) fn epoch(&self, m: &Metrics) {
        let mut values: Vec<(&str, Option<f64>)> = vec![
            ("likelihood/train", m.curve_log_likelihood()),
            ("likelihood/validation", m.validation_log_likelihood),
            ("likelihood/pseudo", m.pseudo_log_likelihood),
            ("likelihood/log_z", m.log_z.as_ref().map(|z| z.value)),
            ("likelihood/log_z_std_err", m.log_z.as_ref().and_then(|z| z.std_err)),
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
                ("tours/own_start", Some(t.own_start())),
                ("tours/mean_length", Some(t.mean_length())),
                ("tours/set_size", Some(t.set_size as f64)),
                ("tours/log_z_s", Some(t.log_z_s)),
            ]);
        }
        if let Some(c) = &m.coupling {
            values.extend([
                ("coupling/mean_meeting", Some(c.mean_meeting())),
                ("coupling/longest", Some(c.longest as f64)),
                ("coupling/cut_share", Some(c.cut_share())),
            ]);
        }
        if let Some(t) = &m.tempering {
            values.extend([
                ("tempering/swap_rate_min", Some(t.swap_rate_min)),
                ("tempering/swap_rate_mean", Some(t.swap_rate_mean)),
                ("tempering/round_trips", Some(t.round_trips)),
                ("tempering/mean_age", t.mean_age),
                ("tempering/renewed", Some(t.renewed)),
            ]);
        }
        let values: Vec<(&str, Value<'_>)> = values
            .into_iter()
            .filter_map(|(tag, value)| Some((tag, Value::Scalar(value.filter(|x| x.is_finite())?))))
            .collect();
        self.write(m.epoch, &values);
    }

    /// Writes histograms of the parameters, and pictures of filters and chains.
    pub(crate) fn evaluated(&self, m: &Metrics, rbm: &Rbm, chains: Option<&BitRows>) {
        let spread = [&rbm.weights(), rbm.visible_bias(), rbm.hidden_bias()].map(histogram);
        self.write(
            m.epoch,
            &[
                ("parameters/weights", Value::Histogram(&spread[0])),
                ("parameters/visible_bias", Value::Histogram(&spread[1])),
                ("parameters/hidden_bias", Value::Histogram(&spread[2])),
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
        // The header of a PNG holds its width and height.
        let number = |at: usize| png[at..at + 4].iter().fold(0, |n, &b| n << 8 | usize::from(b));
        let shape = (number(20), number(16));
        self.write(epoch, &[(tag, Value::Image { png: &png, shape })]);
        Ok(())
    }

    /// Writes events. If that fails, training continues after a warning.
    fn write(&self, step: usize, values: &[(&str, Value<'_>)]) {
        let Ok(mut writer) = self.writer.lock() else { return };
        writer.write(step, values).unwrap_or_else(|e| tracing::warn!("TensorBoard: {e}"));
    }
}

/// A histogram of the finite values, with buckets of equal width.
fn histogram(values: &[f32]) -> Histogram {
    let finite = || values.iter().map(|&x| f64::from(x)).filter(|x| x.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    if low > high {
        return Histogram::default();
    }
    let width = ((high - low) / N_BUCKETS as f64).max(1e-12);
    let mut counts = [0.0; N_BUCKETS];
    finite().for_each(|x| counts[(((x - low) / width) as usize).min(N_BUCKETS - 1)] += 1.0);
    let right_ends = (1..=N_BUCKETS).map(|k| low + k as f64 * width);
    Histogram {
        low,
        high,
        sum: finite().sum(),
        sum_of_squares: finite().map(|x| x * x).sum(),
        buckets: right_ends.zip(counts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket() {
        let Histogram { low, high, sum, sum_of_squares, buckets } =
            histogram(&[0.0, 1.0, 1.0, 3.0, f32::NAN]);
        let counts: Vec<f64> = buckets.iter().map(|b| b.1).collect();
        assert_eq!((counts[0], counts[9] + counts[10], counts[29]), (1.0, 2.0, 1.0));
        assert_eq!((low, high, sum, sum_of_squares), (0.0, 3.0, 5.0, 11.0));
        assert_eq!(buckets[29].0, 3.0);
        assert_eq!(histogram(&[]), Histogram::default());
    }
}
