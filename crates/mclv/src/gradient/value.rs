//! The gradient as a value: differences of moments `Σ v hᵀ`, `Σ v`, `Σ h` of weighted pairs,
//! centred at the end.

use super::pairs::{PairBlock, in_blocks, total_weight};
use crate::data::{RealRows, Rows};
use crate::model::Offsets;
use crate::team;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, accumulate_outer};
use mclv_kernels::tiles::{Segment, TILE_UNITS, Tiles};
use mclv_kernels::update::{add_scaled, centre, dot};
use rayon::prelude::*;

/// The smallest number of weights for which threads save more time than they cost.
const MIN_PARALLEL: usize = 8192;

/// With fewer pairs than this, ranks take longer to exchange sums than to compute all of them
/// themselves. Both work and exchange grow with the number of weights, so that number does not
/// matter.
const MIN_SHARED: usize = 2048;

/// A gradient of the log-likelihood with respect to `W`, `b` and `a`, or a part of one.
///
/// It holds weighted sums of `v hᵀ`, `v` and `h`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    pub(crate) w: Tiles,
    pub(crate) b: Vec<f32>,
    pub(crate) a: Vec<f32>,
    /// Pairs whose sums are not yet in `w` and `b`, with their factor.
    waiting: Vec<(PairBlock, f32)>,
    /// If true, `w` counts as zero, whatever it holds.
    cleared: bool,
}

impl Gradient {
    pub(crate) fn zeros(n_visible: usize, n_hidden: usize) -> Self {
        let (w, b, a) = (Tiles::zeros(n_visible, n_hidden), vec![0.0; n_visible], vec![0.0; n_hidden]);
        Self { w, b, a, waiting: Vec::new(), cleared: false }
    }

    pub(crate) fn clear(&mut self) {
        self.cleared = true;
        self.b.fill(0.0);
        self.a.fill(0.0);
        self.waiting.clear();
    }

    /// Subtracts the averages of `v hᵀ`, `v` and `h` over rows. A negative phase does this with
    /// states of the model. `h` may hold states or their means `E[h|v]`.
    ///
    /// # Panics
    /// If `v` and `h` do not have the same number of rows, or have none.
    pub fn subtract_mean(&mut self, v: &Rows, h: &RealRows) {
        self.subtract_weighted_mean(v, h, None);
    }

    /// Subtracts averages like [`subtract_mean`](Self::subtract_mean), with a weight for each row.
    ///
    /// # Panics
    /// If `v`, `h` and `weights` do not have the same number of rows, or if no weight is positive.
    pub fn subtract_weighted_mean(&mut self, v: &Rows, h: &RealRows, weights: Option<&[f32]>) {
        let pairs = in_blocks(v, h, weights);
        let total = total_weight(&pairs);
        assert!(total > 0.0, "pairs of a positive weight");
        self.add(pairs, (-1.0 / total) as f32);
    }

    /// Adds `scale` times the sums over all pairs: to `a` at once, to `w` and `b` when the gradient
    /// is finished.
    pub(crate) fn add(&mut self, blocks: impl IntoIterator<Item = PairBlock>, scale: f32) {
        for block in blocks {
            add_scaled(Isa::best(), &mut self.a, scale, &block.h_sums);
            self.waiting.push((block, scale));
        }
    }

    /// Subtracts expectations of visible units, hidden units and their products.
    pub(crate) fn subtract(&mut self, v: &[f64], h: &[f64], vh: impl Fn(usize, usize) -> f64) {
        self.flush();
        let mut w = self.w.to_rows();
        for (i, row) in w.chunks_exact_mut(h.len()).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, w)| *w -= vh(i, j) as f32);
        }
        self.w.copy_from_rows(&w);
        self.b.iter_mut().zip(v).for_each(|(b, v)| *b -= *v as f32);
        self.a.iter_mut().zip(h).for_each(|(a, h)| *a -= *h as f32);
    }

    /// Brings `w` and `b` up to date.
    pub(crate) fn flush(&mut self) {
        self.finish(None);
    }

    /// Brings `w` and `b` up to date and, given offsets, centres the gradient (Melchior, Fischer and
    /// Wiskott 2016):
    ///
    /// ```text
    /// ∇W ← ∇W − μ ∇aᵀ − ∇b λᵀ       ∇b ← ∇b − ∇W λ       ∇a ← ∇a − ∇Wᵀ μ
    /// ```
    pub(crate) fn finish(&mut self, offsets: Option<&Offsets>) {
        let nothing = vec![(); self.n_pieces()];
        self.finish_beside(offsets, nothing, |_, _, ()| ());
    }

    /// The number of pieces that [`finish_beside`](Self::finish_beside) works in, of 64 visible
    /// units each.
    pub(crate) fn n_pieces(&self) -> usize {
        self.b.len().div_ceil(TILE_UNITS)
    }

    /// Finishes the gradient like [`finish`](Self::finish). `apply` receives each finished piece of
    /// `w` and `b` while it is in cache, with the value of `beside` that belongs to the piece. `a`
    /// is finished when all pieces are.
    pub(crate) fn finish_beside<P: Send>(
        &mut self,
        offsets: Option<&Offsets>,
        beside: Vec<P>,
        apply: impl Fn(&[Segment<'_>], &[f32], P) + Sync,
    ) {
        let sums = Sums {
            centring: offsets.map(|offsets| Centring::new(offsets, &self.a)),
            waiting: std::mem::take(&mut self.waiting),
            cleared: std::mem::take(&mut self.cleared),
        };
        let parallel = self.w.as_slice().len() >= MIN_PARALLEL;
        let n_tiles = self.a.len().div_ceil(TILE_UNITS);
        let mut segments = self.w.row_blocks_mut(TILE_UNITS);
        let mut pieces: Vec<Piece<'_, '_>> = segments
            .chunks_mut(n_tiles)
            .zip(self.b.chunks_mut(TILE_UNITS))
            .map(|(w, b)| Piece { w, b })
            .collect();
        let one = |(piece, beside): (&mut Piece<'_, '_>, P)| {
            let correction = sums.finish(piece, &mut Scratch::of_thread());
            apply(piece.w, piece.b, beside);
            correction
        };
        let corrections: Vec<Option<Vec<f32>>> = if team::size() > 1 && sums.n_pairs() >= MIN_SHARED {
            // Ranks share the sums. All of them make the step.
            let corrections =
                team::change_blocks(&mut pieces, |_, piece| sums.finish(piece, &mut Scratch::of_thread()));
            let steps = pieces.par_iter_mut().zip(beside);
            steps.for_each(|(piece, beside)| apply(piece.w, piece.b, beside));
            corrections
        } else if parallel {
            pieces.par_iter_mut().zip(beside).map(one).collect()
        } else {
            pieces.iter_mut().zip(beside).map(one).collect()
        };
        for correction in corrections.into_iter().flatten() {
            self.a.iter_mut().zip(correction).for_each(|(a, c)| *a -= c);
        }
    }

    /// The Euclidean norm of all components.
    pub(crate) fn norm(&self) -> f64 {
        let isa = Isa::best();
        let square = |x: &[f32]| dot(isa, x, x);
        (square(self.w.as_slice()) + square(&self.b) + square(&self.a)).sqrt()
    }

    /// Multiplies all components by `factor`.
    pub(crate) fn scale(&mut self, factor: f32) {
        for x in self.w.as_mut_slice().iter_mut().chain(&mut self.b).chain(&mut self.a) {
            *x *= factor;
        }
    }
}

/// The part of a gradient that belongs to 64 visible units.
struct Piece<'a, 'b> {
    w: &'a mut [Segment<'b>],
    b: &'a mut [f32],
}

impl team::Exchange for Piece<'_, '_> {
    fn pack(&self, to: &mut Vec<u8>) {
        for segment in self.w.iter() {
            team::Parcel::pack_all(segment.as_slice(), to);
        }
        team::Parcel::pack_all(self.b, to);
    }

    fn unpack(&mut self, from: &mut &[u8]) {
        let mut fill = |to: &mut [f32]| to.copy_from_slice(&team::Parcel::unpack_all(to.len(), from));
        self.w.iter_mut().for_each(|segment| fill(segment.as_mut_slice()));
        fill(self.b);
    }
}

/// The sums to add to every piece.
struct Sums {
    /// Pairs whose sums are not yet in `w` and `b`, with their factor.
    waiting: Vec<(PairBlock, f32)>,
    /// If true, `w` counts as zero, whatever it holds.
    cleared: bool,
    centring: Option<Centring>,
}

impl Sums {
    fn n_pairs(&self) -> usize {
        self.waiting.iter().map(|(block, _)| block.h.n_rows()).sum()
    }

    /// Adds the outer products, and centres. Returns the amounts that centring subtracts from `a`.
    fn finish(&self, piece: &mut Piece<'_, '_>, scratch: &mut Scratch) -> Option<Vec<f32>> {
        if self.cleared {
            piece.w.iter_mut().for_each(Segment::clear);
        }
        for (block, scale) in &self.waiting {
            let sums = match &block.v_sums {
                None => Some(&mut *piece.b),
                Some(sums) => {
                    let first = piece.w[0].first_row();
                    add_scaled(Isa::best(), piece.b, *scale, &sums[first..first + piece.b.len()]);
                    None
                }
            };
            accumulate_outer(Isa::best(), &block.v, &block.h, *scale, scratch, piece.w, sums);
        }
        self.centring.as_ref().map(|centring| centring.piece(piece.w, piece.b))
    }
}

/// The values that centring a piece of a gradient needs, with rows padded to whole registers.
struct Centring {
    mu: Vec<f32>,
    lambda: Vec<f32>,
    a: Vec<f32>,
}

impl Centring {
    fn new(offsets: &Offsets, a: &[f32]) -> Self {
        let narrow = |x: &[f64]| -> Vec<f32> { x.iter().map(|&x| x as f32).collect() };
        let (mut lambda, mut a) = (narrow(&offsets.hidden), a.to_vec());
        lambda.resize(a.len().next_multiple_of(8), 0.0);
        a.resize(lambda.len(), 0.0);
        Self { mu: narrow(&offsets.visible), lambda, a }
    }

    /// Centres some rows of `w` and their part of `b`. Returns the amounts that they subtract from
    /// `a`.
    fn piece(&self, w: &mut [Segment<'_>], b: &mut [f32]) -> Vec<f32> {
        let mut of_a = vec![0.0; self.a.len()];
        let mut of_b = [0.0; TILE_UNITS];
        for segment in w {
            let rows = segment.first_row()..segment.first_row() + segment.n_rows();
            let columns = segment.first_column()..self.a.len().min(segment.first_column() + TILE_UNITS);
            centre(
                Isa::best(),
                segment.as_mut_slice(),
                (&self.mu[rows], b),
                (&self.a[columns.clone()], &self.lambda[columns.clone()]),
                &mut of_a[columns],
                &mut of_b[..b.len()],
            );
        }
        b.iter_mut().zip(of_b).for_each(|(b, c)| *b -= c);
        of_a
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::model::tests::random_rbm;
    use mclv_kernels::layer::States;

    #[test]
    fn moments_are_the_naive_sums() {
        let (n_visible, n_hidden, n_rows) = (5, 3, 7);
        let v: Vec<f32> = (0..n_rows * n_visible).map(|k| ((k * k) % 3 == 1) as u8 as f32).collect();
        let h: Vec<f32> = (0..n_rows * n_hidden).map(|k| (k as f32 * 0.37).fract()).collect();
        let weights: Vec<f32> = (0..n_rows).map(|k| 0.5 + k as f32).collect();
        let packed = BitRows::pack(n_visible, &v, |&x| x == 1.0);
        for weighted in [false, true] {
            for states in [States::Bits(packed.words()), States::Reals(&v)] {
                let tiles = Tiles::from_rows(n_rows, n_hidden, &h);
                let block = if weighted {
                    PairBlock::weighted(states, n_visible, tiles, &weights)
                } else {
                    PairBlock::new(states, n_visible, tiles)
                };
                let mut moments = Gradient::zeros(n_visible, n_hidden);
                moments.add([block], 2.0);
                moments.flush();
                let w = |r: usize| 2.0 * if weighted { weights[r] } else { 1.0 };
                for i in 0..n_visible {
                    let b: f32 = (0..n_rows).map(|r| w(r) * v[r * n_visible + i]).sum();
                    assert!((moments.b[i] - b).abs() < 1e-4);
                    for j in 0..n_hidden {
                        let sum: f32 =
                            (0..n_rows).map(|r| w(r) * v[r * n_visible + i] * h[r * n_hidden + j]).sum();
                        assert!((moments.w.get(i, j) - sum).abs() < 1e-4);
                    }
                }
                for j in 0..n_hidden {
                    let a: f32 = (0..n_rows).map(|r| w(r) * h[r * n_hidden + j]).sum();
                    assert!((moments.a[j] - a).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn centring_follows_its_formulas() {
        let (n, m) = (6, 70);
        let rbm = random_rbm(n, m, 1.0, 100);
        let mut g = Gradient::zeros(n, m);
        g.w.copy_from_rows(&rbm.weights());
        g.b.copy_from_slice(rbm.visible_bias());
        g.a.copy_from_slice(rbm.hidden_bias());
        let offsets = Offsets {
            visible: (0..n).map(|i| 0.1 * i as f64).collect(),
            hidden: (0..m).map(|j| 0.5 + 0.005 * j as f64).collect(),
        };
        let mut plain = Gradient::zeros(n, m);
        (plain.w, plain.b, plain.a) = (g.w.clone(), g.b.clone(), g.a.clone());
        g.finish(Some(&offsets));
        let w = |i: usize, j: usize| {
            f64::from(plain.w.get(i, j))
                - offsets.visible[i] * f64::from(plain.a[j])
                - f64::from(plain.b[i]) * offsets.hidden[j]
        };
        for i in 0..n {
            let b = f64::from(plain.b[i]) - (0..m).map(|j| w(i, j) * offsets.hidden[j]).sum::<f64>();
            assert!((f64::from(g.b[i]) - b).abs() < 1e-3);
            for j in 0..m {
                assert!((f64::from(g.w.get(i, j)) - w(i, j)).abs() < 1e-4);
            }
        }
        for j in 0..m {
            let a = f64::from(plain.a[j]) - (0..n).map(|i| w(i, j) * offsets.visible[i]).sum::<f64>();
            assert!((f64::from(g.a[j]) - a).abs() < 1e-3);
        }
    }
}
