//! Add up the moments `Σ v hᵀ`, `Σ v`, `Σ h` of weighted pairs, and centre their difference.

use crate::model::Offsets;
use crate::team;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Columns, Scratch, States, ThreadScratch, accumulate_outer, column_sums};
use mclv_kernels::tiles::{Segment, TILE_UNITS, Tiles};
use mclv_kernels::update::{add_scaled, centre, dot};
use rayon::prelude::*;

/// Rows per block of pairs. Fixed, so that sums do not depend on threads.
pub(crate) const BLOCK: usize = 64;

/// Below this many weights, threads cost more than they save.
const MIN_PARALLEL: usize = 8192;

/// With fewer pairs than this, it takes ranks longer to tell each other sums than to make them all themselves. Work and exchange both grow with
/// the number of weights, so that does not matter.
const MIN_SHARED: usize = 2048;

/// Visible states of a block, bits or reals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Visible {
    Bits(Vec<u64>),
    Reals(Vec<f32>),
}

impl Visible {
    pub(crate) fn states(&self) -> States<'_> {
        match self {
            Self::Bits(words) => States::Bits(words),
            Self::Reals(values) => States::Reals(values),
        }
    }
}

/// Weighted pairs (v, h).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PairBlock {
    v: Columns,
    /// Each row multiplied by its weight.
    h: Tiles,
    v_sums: Vec<f32>,
    h_sums: Vec<f32>,
    total_weight: f64,
}
team::parcel!(PairBlock { v, h, v_sums, h_sums, total_weight });

impl PairBlock {
    /// Pairs of weight 1.
    pub(crate) fn new(v: States<'_>, n_visible: usize, h: Tiles) -> Self {
        let v = Columns::new(n_visible, v);
        Self {
            v_sums: column_sums(Isa::best(), &v),
            h_sums: h.column_sums(),
            total_weight: h.n_rows() as f64,
            v,
            h,
        }
    }

    /// Pairs with a weight each.
    pub(crate) fn weighted(v: States<'_>, n_visible: usize, mut h: Tiles, weights: &[f32]) -> Self {
        for mut piece in h.segments_mut(weights.len().max(1)) {
            for (row, &w) in piece.rows_mut().zip(weights) {
                row.iter_mut().for_each(|x| *x *= w);
            }
        }
        let v = Columns::new(n_visible, v);
        let mut v_sums = Tiles::zeros(n_visible, 1);
        let column = Tiles::from_rows(weights.len(), 1, weights);
        let mut pieces = v_sums.segments_mut(n_visible);
        accumulate_outer(Isa::best(), &v, &column, 1.0, &mut Scratch::of_thread(), &mut pieces);
        Self {
            v_sums: v_sums.to_rows(),
            h_sums: h.column_sums(),
            total_weight: weights.iter().map(|&w| f64::from(w)).sum(),
            v,
            h,
        }
    }

    /// The mean of the hidden units over all pairs of `blocks`.
    pub(crate) fn hidden_means(blocks: &[Self]) -> Vec<f64> {
        let n_hidden = blocks.first().map_or(0, |b| b.h_sums.len());
        let total = total_weight(blocks);
        let sum = |j: usize| blocks.iter().map(|b| f64::from(b.h_sums[j])).sum::<f64>();
        (0..n_hidden).map(|j| sum(j) / total).collect()
    }
}

/// The weight of all pairs.
pub(crate) fn total_weight(blocks: &[PairBlock]) -> f64 {
    blocks.iter().map(|b| b.total_weight).sum()
}

/// Moments, or the difference of two sets of them: a gradient.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moments {
    pub(crate) w: Tiles,
    pub(crate) b: Vec<f32>,
    pub(crate) a: Vec<f32>,
    /// Pairs whose outer products are not yet in `w`, with their factor.
    waiting: Vec<(PairBlock, f32)>,
    /// Whether `w` is to be taken for zero.
    cleared: bool,
}

impl Moments {
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

    /// Add `scale` times the sums over all pairs: to `b` and `a` at once, to `w` when they are finished.
    pub(crate) fn add(&mut self, blocks: impl IntoIterator<Item = PairBlock>, scale: f32) {
        let isa = Isa::best();
        for block in blocks {
            add_scaled(isa, &mut self.b, scale, &block.v_sums);
            add_scaled(isa, &mut self.a, scale, &block.h_sums);
            self.waiting.push((block, scale));
        }
    }

    /// Take off expectations of visible units, hidden units and their products.
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

    /// Bring `w` up to date.
    pub(crate) fn flush(&mut self) {
        let nothing = vec![(); self.n_pieces()];
        self.finish(None, nothing, |_, _, ()| ());
    }

    /// Pieces that [`finish`](Self::finish) works in, of 64 visible units each.
    pub(crate) fn n_pieces(&self) -> usize {
        self.b.len().div_ceil(TILE_UNITS)
    }

    /// Bring `w` up to date and, given offsets, centre the gradient (Melchior, Fischer and Wiskott 2016):
    ///
    /// ```text
    /// ∇W ← ∇W − μ ∇aᵀ − ∇b λᵀ       ∇b ← ∇b − ∇W λ       ∇a ← ∇a − ∇Wᵀ μ
    /// ```
    /// `visit` is handed each finished piece of `w` and `b` while it is in cache, with what goes `beside` it; `a` is
    /// finished when all pieces are.
    pub(crate) fn finish<C: Send>(
        &mut self,
        offsets: Option<&Offsets>,
        beside: Vec<C>,
        visit: impl Fn(&mut [Segment<'_>], &[f32], C) + Sync,
    ) {
        let centring = offsets.map(|offsets| Centring::new(offsets, &self.a));
        let (waiting, cleared) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.cleared));
        let parallel = self.w.as_slice().len() >= MIN_PARALLEL;
        let n_tiles = self.a.len().div_ceil(TILE_UNITS);
        let sum = |scratch: &mut Scratch, w: &mut [Segment<'_>], b: &mut [f32]| {
            if cleared {
                w.iter_mut().for_each(Segment::clear);
            }
            for (block, scale) in &waiting {
                accumulate_outer(Isa::best(), &block.v, &block.h, *scale, scratch, w);
            }
            centring.as_ref().map(|centring| centring.piece(w, b))
        };
        let work = |scratch: &mut Scratch, ((w, b), beside): ((&mut [Segment<'_>], &mut [f32]), C)| {
            let correction = sum(scratch, w, b);
            visit(w, b, beside);
            correction
        };
        let mut segments = self.w.row_blocks_mut(TILE_UNITS);
        let n_pairs: usize = waiting.iter().map(|(block, _)| block.h.n_rows()).sum();
        let corrections: Vec<_> = if team::size() > 1 && n_pairs >= MIN_SHARED {
            // Ranks share the sums; all of them make the step.
            let pieces: Vec<_> = segments.chunks_mut(n_tiles).zip(self.b.chunks_mut(TILE_UNITS)).collect();
            let mut pieces: Vec<_> = pieces.into_iter().zip(beside).collect();
            let sums = team::share_all(pieces.len(), |mine| {
                let sum =
                    |scratch: &mut ThreadScratch, ((w, b), _): &mut ((&mut [Segment<'_>], &mut [f32]), C)| {
                        let correction = sum(scratch, w, b);
                        let w: Vec<f32> = w.iter().flat_map(|segment| segment.as_slice()).copied().collect();
                        (w, (b.to_vec(), correction))
                    };
                pieces[mine].par_iter_mut().map_init(Scratch::of_thread, sum).collect()
            });
            let step = |(((w, b), beside), (of_w, (of_b, correction))): (_, (Vec<f32>, (Vec<f32>, _)))| {
                let (w, b): (&mut [Segment<'_>], &mut [f32]) = (w, b);
                let mut of_w = of_w.as_slice();
                for to in w.iter_mut().map(Segment::as_mut_slice) {
                    to.copy_from_slice(of_w.split_off(..to.len()).expect("as many weights as were sent"));
                }
                b.copy_from_slice(&of_b);
                visit(w, b, beside);
                correction
            };
            pieces.into_par_iter().zip(sums).map(step).collect()
        } else if parallel {
            let pieces = segments.par_chunks_mut(n_tiles).zip(self.b.par_chunks_mut(TILE_UNITS));
            pieces.zip(beside).map_init(Scratch::of_thread, |scratch, piece| work(scratch, piece)).collect()
        } else {
            let mut scratch = Scratch::of_thread();
            let pieces = segments.chunks_mut(n_tiles).zip(self.b.chunks_mut(TILE_UNITS));
            pieces.zip(beside).map(|piece| work(&mut scratch, piece)).collect()
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

    /// Multiply all components.
    pub(crate) fn scale(&mut self, factor: f32) {
        for x in self.w.as_mut_slice().iter_mut().chain(&mut self.b).chain(&mut self.a) {
            *x *= factor;
        }
    }
}

/// What centring a piece of a gradient needs, rows padded to whole registers.
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

    /// Centre some rows of `w` and their part of `b`; what they take off `a`.
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
                let mut moments = Moments::zeros(n_visible, n_hidden);
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
        let mut g = Moments::zeros(n, m);
        g.w.copy_from_rows(&rbm.weights());
        g.b.copy_from_slice(rbm.visible_bias());
        g.a.copy_from_slice(rbm.hidden_bias());
        let offsets = Offsets {
            visible: (0..n).map(|i| 0.1 * i as f64).collect(),
            hidden: (0..m).map(|j| 0.5 + 0.005 * j as f64).collect(),
        };
        let mut plain = Moments::zeros(n, m);
        (plain.w, plain.b, plain.a) = (g.w.clone(), g.b.clone(), g.a.clone());
        let nothing = vec![(); g.n_pieces()];
        g.finish(Some(&offsets), nothing, |_, _, ()| ());
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
