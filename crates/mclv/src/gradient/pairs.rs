//! Hold weighted pairs `(v, h)`, whose outer products make gradients.

use crate::chain::BLOCK;
use crate::data::{RealRows, Rows};
use crate::team;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Columns, Scratch, States, accumulate_outer};
use mclv_kernels::tiles::Tiles;

team::parcel! {
    /// Weighted pairs (v, h).
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct PairBlock {
        pub(super) v: Columns,
        /// Each row multiplied by its weight.
        pub(super) h: Tiles,
        /// The weighted sums of visible units, if weights are not 1.
        pub(super) v_sums: Option<Vec<f32>>,
        pub(super) h_sums: Vec<f32>,
        total_weight: f64,
    }
}

impl PairBlock {
    /// Makes a block of pairs of weight 1.
    pub(crate) fn new(v: States<'_>, n_visible: usize, h: Tiles) -> Self {
        let v = Columns::new(Isa::best(), n_visible, v);
        Self { v_sums: None, h_sums: h.column_sums(), total_weight: h.n_rows() as f64, v, h }
    }

    /// Makes a block of pairs with a weight each.
    pub(crate) fn weighted(v: States<'_>, n_visible: usize, mut h: Tiles, weights: &[f32]) -> Self {
        for mut piece in h.segments_mut(weights.len().max(1)) {
            for (row, &w) in piece.rows_mut().zip(weights) {
                row.iter_mut().for_each(|x| *x *= w);
            }
        }
        let v = Columns::new(Isa::best(), n_visible, v);
        let mut v_sums = Tiles::zeros(n_visible, 1);
        let column = Tiles::from_rows(weights.len(), 1, weights);
        let mut pieces = v_sums.segments_mut(n_visible);
        accumulate_outer(Isa::best(), &v, &column, 1.0, &mut Scratch::of_thread(), &mut pieces, None);
        Self {
            v_sums: Some(v_sums.to_rows()),
            h_sums: h.column_sums(),
            total_weight: weights.iter().map(|&w| f64::from(w)).sum(),
            v,
            h,
        }
    }

    /// Returns the mean of the hidden units over all pairs of `blocks`.
    pub(crate) fn hidden_means(blocks: &[Self]) -> Vec<f64> {
        let n_hidden = blocks.first().map_or(0, |b| b.h_sums.len());
        let total = total_weight(blocks);
        let sum = |j: usize| blocks.iter().map(|b| f64::from(b.h_sums[j])).sum::<f64>();
        (0..n_hidden).map(|j| sum(j) / total).collect()
    }
}

/// Returns the total weight of all pairs.
pub(crate) fn total_weight(blocks: &[PairBlock]) -> f64 {
    blocks.iter().map(|b| b.total_weight).sum()
}

/// Makes pairs of rows of `v` and `h`, in blocks. `weights` gives the weight of each pair.
pub(super) fn in_blocks(v: &Rows, h: &RealRows, weights: Option<&[f32]>) -> Vec<PairBlock> {
    assert_eq!(v.n_rows(), h.n_rows(), "a hidden row for each visible row");
    let n_hidden = h.n_columns();
    let block = |first: usize| {
        let n = BLOCK.min(v.n_rows() - first);
        let rows = v.block(first, n);
        let tiles = Tiles::from_rows(n, n_hidden, &h.values()[first * n_hidden..(first + n) * n_hidden]);
        match weights {
            None => PairBlock::new(rows.states(), v.n_columns(), tiles),
            Some(weights) => {
                PairBlock::weighted(rows.states(), v.n_columns(), tiles, &weights[first..first + n])
            }
        }
    };
    (0..v.n_rows()).step_by(BLOCK).map(block).collect()
}
