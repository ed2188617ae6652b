//! Pictures of a model: its filters, states of its chains, and rows with their reconstructions.

use crate::figure::{PictureGrid, Shades};

/// Height and width of pictures.
pub type Shape = (usize, usize);

/// Rows and their reconstructions by the model.
pub struct Reconstructions {
    /// The rows.
    pub rows: Vec<Vec<f32>>,
    /// Their mean-field reconstructions.
    pub made_again: Vec<Vec<f32>>,
}

/// The weights of all `n_hidden` hidden units, or of those with the largest weights.
pub fn filters(filters: &[Vec<f32>], n_hidden: usize, shape: Shape) -> PictureGrid {
    let n = filters.len();
    let title =
        if n < n_hidden { format!("{n} of {n_hidden} filters, the largest") } else { "Filters".into() };
    PictureGrid::new(title, filters.to_vec(), shape, columns_of(n)).shades(Shades::Signed).framed()
}

/// `E[v|h]` of chains.
pub fn chains(means: &[Vec<f32>], shape: Shape) -> PictureGrid {
    let title = "States of the chains, E[v|h]";
    PictureGrid::new(title, means.to_vec(), shape, columns_of(means.len())).framed()
}

/// Samples: draws of zeros and ones.
pub fn samples(rows: &[Vec<f32>], shape: Shape) -> PictureGrid {
    PictureGrid::new("Samples", rows.to_vec(), shape, columns_of(rows.len())).framed()
}

/// Rows, each above its reconstruction.
pub fn reconstructions(Reconstructions { rows, made_again }: &Reconstructions, shape: Shape) -> PictureGrid {
    let pictures = rows.iter().chain(made_again).cloned().collect();
    let grid = PictureGrid::new("Rows and their reconstructions", pictures, shape, rows.len());
    grid.row_names(["row", "reconstruction"]).framed()
}

/// The number of pictures per line that makes a grid about as wide as a column of the page.
fn columns_of(n: usize) -> usize {
    match n {
        0..=8 => n.max(1),
        9..=32 => 8,
        // Whole lines, if possible.
        n if n % 8 == 0 && n % 10 != 0 => 8,
        _ => 10,
    }
}
