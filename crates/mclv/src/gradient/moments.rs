//! The two parts of the exact gradient as plain numbers: means of `(v hᵀ, v, h)`.

use super::Gradient;
use super::exact::{Expectations, MAX_UNITS};
use crate::Result;
use crate::data::Rows;
use crate::model::Rbm;
use crate::partition::smaller_layer_hidden;

/// Returns the means of `v hᵀ` (row by row), `v` and `h` over data rows, with `E[h|v]` in place of
/// `h`: the positive part of the gradient, in single precision.
///
/// # Errors
/// If the rows do not fit the model.
///
/// # Panics
/// If there are no rows.
pub fn data_moments(rbm: &Rbm, rows: &Rows) -> Result<Vec<f64>> {
    let means = rbm.mean_h_from_v(rows)?;
    let mut gradient = Gradient::zeros(rbm.n_visible(), rbm.n_hidden());
    gradient.subtract_mean(rows, &means);
    gradient.flush();
    let parts = gradient.w.to_rows().into_iter().chain(gradient.b.iter().chain(&gradient.a).copied());
    Ok(parts.map(|x| -f64::from(x)).collect())
}

/// Returns the expectations of `v hᵀ` (row by row), `v` and `h` under the model, by enumeration: the
/// negative part of the gradient. `None` if both layers have more than 20 units.
pub fn model_moments(rbm: &Rbm) -> Option<Vec<f64>> {
    let (n_v, n_h) = (rbm.n_visible(), rbm.n_hidden());
    if n_v.min(n_h) > MAX_UNITS {
        return None;
    }
    let Expectations { v, h, vh } = Expectations::of(&smaller_layer_hidden(rbm));
    if n_h <= n_v {
        return Some([vh, v, h].concat());
    }
    // These are the expectations of the mirrored model.
    let transposed = (0..n_v * n_h).map(|k| vh[(k % n_h) * n_v + k / n_h]).collect();
    Some([transposed, h, v].concat())
}
