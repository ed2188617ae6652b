//! Pictures of a model: its filters, what its chains show, rows and their reconstructions.

use crate::figure::{PictureGrid, Shades};
use mclv::bits::BitRows;
use mclv::data::Rows;
use mclv::{Rbm, Result};

/// At most so many pictures of a kind.
const MOST: usize = 100;

/// The weights of each hidden unit; those of the largest norm if there are many.
pub fn filters(rbm: &Rbm, shape: (usize, usize)) -> PictureGrid {
    let (weights, n) = (rbm.weights(), rbm.n_hidden());
    let filter = |j: usize| -> Vec<f32> { weights.iter().skip(j).step_by(n).copied().collect() };
    let norm = |filter: &[f32]| filter.iter().map(|w| w * w).sum::<f32>();
    let mut all: Vec<Vec<f32>> = (0..n).map(filter).collect();
    let title = if n > MOST { format!("{MOST} of {n} filters, the largest") } else { "Filters".into() };
    if n > MOST {
        all.sort_by(|a, b| norm(b).total_cmp(&norm(a)));
        all.truncate(MOST);
    }
    let columns = columns_of(all.len());
    PictureGrid::new(title, all, shape, columns).shades(Shades::Signed)
}

/// `E[v|h]` of chains.
///
/// # Errors
/// If the chains are not of this model.
pub fn chains(rbm: &Rbm, h: &BitRows, shape: (usize, usize), most: usize) -> Result<PictureGrid> {
    let n = h.n_rows().min(most);
    let rows: Vec<usize> = (0..n).map(|k| k * h.n_rows() / n).collect();
    let means = rbm.mean_v_from_h(&Rows::Bits(h.select(&rows)))?;
    let pictures = (0..n).map(|r| means.row(r).to_vec()).collect();
    Ok(PictureGrid::new("What the chains show", pictures, shape, columns_of(n)))
}

/// Rows, and below each the mean-field reconstruction.
///
/// # Errors
/// If the rows are not of this model.
pub fn reconstructions(rbm: &Rbm, data: &Rows, shape: (usize, usize), n: usize) -> Result<PictureGrid> {
    let n = n.min(data.n_rows());
    let chosen: Vec<usize> = (0..n).map(|k| k * data.n_rows() / n).collect();
    let rows = data.select(&chosen);
    let means = rbm.mean_v_from_h(&Rows::Reals(rbm.mean_h_from_v(&rows)?))?;
    let originals = values(&rows);
    let pictures = originals.into_iter().chain((0..n).map(|r| means.row(r).to_vec())).collect();
    let grid = PictureGrid::new("Rows and their reconstructions", pictures, shape, n);
    Ok(grid.row_names(["row", "made again"]))
}

/// The rows' values.
pub(crate) fn values(rows: &Rows) -> Vec<Vec<f32>> {
    (0..rows.n_rows()).map(|r| (0..rows.n_columns()).map(|i| rows.get(r, i)).collect()).collect()
}

/// So many abreast that a grid is about as wide as a column of the page.
fn columns_of(n: usize) -> usize {
    match n {
        0..=8 => n.max(1),
        9..=32 => 8,
        _ => 10,
    }
}
