//! Hold the parameters of a Bernoulli–Bernoulli RBM and compute its energies and conditionals.

use crate::bits::{self, BitRows};
use crate::data::{RealRows, Rows};
use crate::rng::Draws;
use crate::team;
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{self, Affine, Scratch, States};
use mclv_kernels::tiles::{Segment, TILE_UNITS, Tiles, transpose};
use rayon::prelude::*;

/// Rows per unit of parallel work. Fixed, so that results never depend on the number of threads.
const BLOCK: usize = 128;

/// A Restricted Boltzmann Machine over `v ∈ {0,1}^n_visible`, `h ∈ {0,1}^n_hidden`.
///
/// ```text
/// E(v,h) = −vᵀWh − bᵀv − aᵀh          p(v,h) = exp(−E)/Z
/// F(v)   = −bᵀv − Σ_j softplus(a_j + (Wᵀv)_j)      p(v) = exp(−F(v))/Z
/// ```
/// Parameters are `f32`; energies, free energies and likelihoods are computed in `f64`.
///
/// ```
/// use mclv::{Rbm, data::Rows, bits::BitRows};
/// // Two visible units, one hidden unit.
/// let rbm = Rbm::new(2, 1, &[1.0, -1.0], &[0.5, 0.0], &[0.25])?;
/// let v = BitRows::pack(2, &[1, 0], |&x| x == 1);
/// let h = BitRows::pack(1, &[1], |&x| x == 1);
/// assert_eq!(rbm.energy(&v, &h)?, [-1.75]);
/// let f = rbm.free_energy(&Rows::Bits(v))?;
/// assert!((f[0] + 0.5 + (1.0 + 1.25f64.exp()).ln()).abs() < 1e-12);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rbm {
    visible_bias: Vec<f32>,
    hidden_bias: Vec<f32>,
    /// Hidden inputs from visible states: weights n_visible × n_hidden.
    up: Affine,
    /// Visible inputs from hidden states: the transpose.
    down: Affine,
}

impl Rbm {
    /// Creates an RBM with weights `w` (n_visible × n_hidden, row-major), visible biases `b` and
    /// hidden biases `a`.
    ///
    /// # Errors
    /// If a layer is empty, if the sizes do not fit, or if a parameter is not finite.
    pub fn new(n_visible: usize, n_hidden: usize, w: &[f32], b: &[f32], a: &[f32]) -> Result<Self> {
        for (what, n) in [("the visible layer", n_visible), ("the hidden layer", n_hidden)] {
            if n == 0 {
                return Err(Error::Empty {
                    what: what.into(),
                    cure: "a model needs at least one unit in each layer",
                });
            }
        }
        for (what, values, expected) in [
            ("weights", w, n_visible.saturating_mul(n_hidden)),
            ("visible_bias", b, n_visible),
            ("hidden_bias", a, n_hidden),
        ] {
            if values.len() != expected {
                return Err(Error::ShapeMismatch {
                    what: format!("size of {what}"),
                    expected,
                    got: values.len(),
                });
            }
            if let Some(index) = values.iter().position(|x| !x.is_finite()) {
                return Err(Error::NotFinite { what, index, value: values[index] });
            }
        }
        let up = Tiles::from_rows(n_visible, n_hidden, w);
        let down = Affine::new(up.transposed(), b);
        Ok(Self { visible_bias: b.to_vec(), hidden_bias: a.to_vec(), up: Affine::new(up, a), down })
    }

    /// The number of visible units.
    pub fn n_visible(&self) -> usize {
        self.visible_bias.len()
    }

    /// The number of hidden units.
    pub fn n_hidden(&self) -> usize {
        self.hidden_bias.len()
    }

    /// Returns the weights `W`, n_visible × n_hidden, row-major.
    pub fn weights(&self) -> Vec<f32> {
        self.up.weights().to_rows()
    }

    /// Returns the visible biases `b`.
    pub fn visible_bias(&self) -> &[f32] {
        &self.visible_bias
    }

    /// Returns the hidden biases `a`.
    pub fn hidden_bias(&self) -> &[f32] {
        &self.hidden_bias
    }

    /// Returns the same machine with its layers swapped: `v` is called hidden and `h` visible.
    ///
    /// Code written for one layer then serves the other. For example, `free_energy` of the mirror
    /// is the free energy of hidden states.
    pub fn mirror(&self) -> Self {
        Self {
            visible_bias: self.hidden_bias.clone(),
            hidden_bias: self.visible_bias.clone(),
            up: self.down.clone(),
            down: self.up.clone(),
        }
    }

    /// Returns `E(v,h)` of each pair of rows.
    ///
    /// # Errors
    /// If widths do not fit the model, or if `v` and `h` differ in the number of rows.
    pub fn energy(&self, v: &BitRows, h: &BitRows) -> Result<Vec<f64>> {
        self.check_width(v.n_bits())?;
        check("hidden units", self.n_hidden(), h.n_bits())?;
        check("number of hidden states", v.n_rows(), h.n_rows())?;
        Ok((0..v.n_rows())
            .map(|r| {
                let on: Vec<usize> = bits::ones(h.row(r)).collect();
                let of_h: f64 = on.iter().map(|&j| f64::from(self.hidden_bias[j])).sum();
                let of_v = |i: usize| {
                    let w = |&j: &usize| f64::from(self.up.weights().get(i, j));
                    f64::from(self.visible_bias[i]) + on.iter().map(w).sum::<f64>()
                };
                -(of_h + bits::ones(v.row(r)).map(of_v).sum::<f64>())
            })
            .collect())
    }

    /// Returns the free energy `F(v) = −log Σ_h e^{−E(v,h)}` of each row. Grey values are used as
    /// they are.
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn free_energy(&self, v: &Rows) -> Result<Vec<f64>> {
        self.check_width(v.n_columns())?;
        let mut out = vec![0.0; v.n_rows()];
        fill_blocks(&mut out, BLOCK, |scratch, block, out| {
            let rows = v.block(block * BLOCK, out.len());
            layer::log_weights(Isa::best(), &self.up, &self.visible_bias, rows.states(), scratch, out);
            out.iter_mut().for_each(|f| *f = -*f);
        });
        Ok(out)
    }

    /// Returns `F(h) = −log Σ_v e^{−E(v,h)}` of each row: the hidden counterpart of
    /// [`free_energy`](Self::free_energy).
    ///
    /// # Errors
    /// If the rows do not have `n_hidden` columns.
    pub fn free_energy_h(&self, h: &Rows) -> Result<Vec<f64>> {
        check("hidden units", self.n_hidden(), h.n_columns())?;
        self.mirror().free_energy(h)
    }

    /// Returns the inputs `a + Wᵀv` of the hidden units.
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn inputs_h_from_v(&self, v: &Rows) -> Result<RealRows> {
        self.check_width(v.n_columns())?;
        Ok(float_rows(&self.up, v, layer::inputs))
    }

    /// Returns the inputs `b + Wh` of the visible units.
    ///
    /// # Errors
    /// If the rows do not have `n_hidden` columns.
    pub fn inputs_v_from_h(&self, h: &Rows) -> Result<RealRows> {
        check("hidden units", self.n_hidden(), h.n_columns())?;
        Ok(float_rows(&self.down, h, layer::inputs))
    }

    /// Returns the means `E[h|v]` of each row.
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn mean_h_from_v(&self, v: &Rows) -> Result<RealRows> {
        self.check_width(v.n_columns())?;
        Ok(float_rows(&self.up, v, layer::means))
    }

    /// Returns the means `E[v|h]` of each row.
    ///
    /// # Errors
    /// If the rows do not have `n_hidden` columns.
    pub fn mean_v_from_h(&self, h: &Rows) -> Result<RealRows> {
        check("hidden units", self.n_hidden(), h.n_columns())?;
        Ok(float_rows(&self.down, h, layer::means))
    }

    /// Draws `h ~ p(h|v)` for each row `r`, with the random numbers `draws(r)`.
    ///
    /// ```
    /// use mclv::{Rbm, data::Rows, bits::BitRows, rng::{Purpose, stream}};
    /// let rbm = Rbm::new(1, 1, &[2.0], &[0.0], &[0.0])?;
    /// let v = Rows::Bits(BitRows::zeros(3, 1));
    /// let h = rbm.sample_h_from_v(&v, |r| stream(7, Purpose::Chain, r as u64).at(0))?;
    /// assert_eq!(h.n_rows(), 3);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn sample_h_from_v(&self, v: &Rows, draws: impl Fn(usize) -> Draws + Sync) -> Result<BitRows> {
        self.check_width(v.n_columns())?;
        Ok(sample_rows(&self.up, v, draws))
    }

    /// Draws `v ~ p(v|h)` for each row `r`, with the random numbers `draws(r)`.
    ///
    /// # Errors
    /// If the rows do not have `n_hidden` columns.
    pub fn sample_v_from_h(&self, h: &Rows, draws: impl Fn(usize) -> Draws + Sync) -> Result<BitRows> {
        check("hidden units", self.n_hidden(), h.n_columns())?;
        Ok(sample_rows(&self.down, h, draws))
    }

    /// Returns the reconstruction error: the mean over rows and units of `(v − E[v | E[h|v]])²`.
    ///
    /// It does not measure the likelihood: it can fall while the likelihood falls.
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn reconstruction_error(&self, v: &Rows) -> Result<f64> {
        let back = self.mean_v_from_h(&Rows::Reals(self.mean_h_from_v(v)?))?;
        let sum: f64 = (0..v.n_rows())
            .map(|r| {
                let square = |(i, &mean): (usize, &f32)| (f64::from(v.get(r, i)) - f64::from(mean)).powi(2);
                back.row(r).iter().enumerate().map(square).sum::<f64>()
            })
            .sum();
        Ok(sum / (v.n_rows().max(1) * self.n_visible()) as f64)
    }

    /// The map from visible states to hidden inputs.
    pub(crate) fn up(&self) -> &Affine {
        &self.up
    }

    /// The map from hidden states to visible inputs.
    pub(crate) fn down(&self) -> &Affine {
        &self.down
    }

    /// Returns the parameters for changes: weights and visible biases in pieces of 64 visible units
    /// each, and the hidden biases. The caller must call [`biases_changed`](Self::biases_changed)
    /// afterwards.
    pub(crate) fn parts_mut(&mut self) -> (Vec<Piece<'_>>, &mut [f32]) {
        let n_tiles = self.n_hidden().div_ceil(TILE_UNITS);
        let mut weights = self.up.weights_mut().row_blocks_mut(TILE_UNITS).into_iter();
        let transposed = self.down.weights_mut().segments_mut(usize::MAX).into_iter();
        let pieces = transposed
            .zip(self.visible_bias.chunks_mut(TILE_UNITS))
            .map(|(transposed, b)| Piece { w: weights.by_ref().take(n_tiles).collect(), transposed, b })
            .collect();
        (pieces, &mut self.hidden_bias)
    }

    /// Applies biases that were changed through [`parts_mut`](Self::parts_mut).
    pub(crate) fn biases_changed(&mut self) {
        self.up.set_bias(&self.hidden_bias);
        self.down.set_bias(&self.visible_bias);
    }

    /// Returns `log p*(h)` in single precision: accurate enough for ratios and for starts, not for
    /// likelihoods.
    pub(crate) fn quick_log_weights_h(&self, h: &BitRows) -> Vec<f64> {
        let mut out = vec![0.0; h.n_rows()];
        // Blocks are large, because each builds tables first.
        const BLOCK: usize = 1024;
        fill_blocks(&mut out, BLOCK, |scratch, block, out| {
            let states = States::Bits(h.rows(block * BLOCK, out.len()));
            layer::quick_log_weights(Isa::best(), &self.down, &self.hidden_bias, states, scratch, out);
        });
        out
    }

    /// Computes [`quick_log_weights_h`](Self::quick_log_weights_h) of packed states on the calling
    /// thread, into `out`.
    pub(crate) fn quick_log_weights_block(&self, h: &[u64], scratch: &mut Scratch, out: &mut Vec<f64>) {
        out.clear();
        out.resize(h.len() / bits::words_for(self.n_hidden()), 0.0);
        let states = States::Bits(h);
        layer::quick_log_weights(Isa::best(), &self.down, &self.hidden_bias, states, scratch, out);
    }

    pub(crate) fn check_width(&self, n_columns: usize) -> Result<()> {
        check("visible units (the model's width against the data's)", self.n_visible(), n_columns)
    }
}

/// The parameters of 64 visible units.
pub(crate) struct Piece<'a> {
    /// The weights of these units. Call [`transpose`](Self::transpose) after changing them.
    pub(crate) w: Vec<Segment<'a>>,
    transposed: Segment<'a>,
    /// The biases of these units.
    pub(crate) b: &'a mut [f32],
}

impl Piece<'_> {
    /// Brings the transposed weights up to date.
    pub(crate) fn transpose(&mut self) {
        transpose(Isa::best(), &self.w, &mut self.transposed);
    }
}

fn check(what: &str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::ShapeMismatch { what: what.into(), expected, got }) }
}

fn float_rows(
    affine: &Affine,
    rows: &Rows,
    kernel: fn(Isa, &Affine, States<'_>, &mut Scratch, &mut Tiles),
) -> RealRows {
    let n_out = affine.n_out();
    let mut values = vec![0.0; rows.n_rows() * n_out];
    fill_blocks(&mut values, BLOCK * n_out, |scratch, block, values| {
        let n_rows = values.len() / n_out;
        let mut out = Tiles::zeros(n_rows, n_out);
        kernel(Isa::best(), affine, rows.block(block * BLOCK, n_rows).states(), scratch, &mut out);
        for (r, row) in values.chunks_exact_mut(n_out).enumerate() {
            row.iter_mut().zip(out.row(r)).for_each(|(to, x)| *to = x);
        }
    });
    RealRows::new(n_out, values)
}

fn sample_rows(affine: &Affine, rows: &Rows, draws: impl Fn(usize) -> Draws + Sync) -> BitRows {
    let mut bits = BitRows::zeros(rows.n_rows(), affine.n_out());
    let n_words = bits.n_words();
    fill_blocks(bits.words_mut(), BLOCK * n_words, |scratch, block, words| {
        let (first, n_rows) = (block * BLOCK, words.len() / n_words);
        let draws: Vec<Draws> = (first..first + n_rows).map(&draws).collect();
        let rows = rows.block(first, n_rows);
        layer::sample(Isa::best(), affine, rows.states(), &draws, scratch, words, None);
    });
    bits
}

/// Fills blocks of a fixed size, each by one thread of one rank.
fn fill_blocks<T: team::Parcel + Copy + Send>(
    out: &mut [T],
    block: usize,
    work: impl Fn(&mut Scratch, usize, &mut [T]) + Sync,
) {
    team::fill(out, block, |first, out| {
        let blocks = out.par_chunks_mut(block).enumerate();
        blocks.for_each_init(Scratch::of_thread, |scratch, (k, out)| work(scratch, first + k, out));
    });
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    /// A random machine whose couplings are strong enough for mistakes to show.
    pub(crate) fn random_rbm(n_visible: usize, n_hidden: usize, scale: f64, seed: u64) -> Rbm {
        let mut rng = stream(seed, Purpose::SelfTest, 0).reader();
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| (rng.normal() * scale) as f32).collect() };
        let (w, b, a) = (draw(n_visible * n_hidden), draw(n_visible), draw(n_hidden));
        Rbm::new(n_visible, n_hidden, &w, &b, &a).unwrap()
    }

    /// All states of `n` units.
    pub(crate) fn all_states(n: usize) -> BitRows {
        let mut states = BitRows::zeros(1 << n, n);
        for s in 0..1usize << n {
            states.row_mut(s)[0] = s as u64;
        }
        states
    }

    fn log_sum_exp(x: impl Iterator<Item = f64> + Clone) -> f64 {
        let top = x.clone().fold(f64::NEG_INFINITY, f64::max);
        top + x.map(|x| (x - top).exp()).sum::<f64>().ln()
    }

    #[test]
    fn free_energies_marginalise_the_energy() {
        let rbm = random_rbm(5, 4, 2.0, 1);
        let (vs, hs) = (all_states(5), all_states(4));
        let f_v = rbm.free_energy(&Rows::Bits(vs.clone())).unwrap();
        let f_h = rbm.free_energy_h(&Rows::Bits(hs.clone())).unwrap();
        let energy = |s: usize, t: usize| rbm.energy(&vs.select(&[s]), &hs.select(&[t])).unwrap()[0];
        for (s, f) in f_v.iter().enumerate() {
            assert!((f + log_sum_exp((0..16).map(|t| -energy(s, t)))).abs() < 1e-12);
        }
        for (t, f) in f_h.iter().enumerate() {
            assert!((f + log_sum_exp((0..32).map(|s| -energy(s, t)))).abs() < 1e-12);
        }
    }

    #[test]
    fn conditionals_follow_from_the_energy() {
        let rbm = random_rbm(4, 3, 1.5, 2);
        let (vs, hs) = (all_states(4), all_states(3));
        let mean = rbm.mean_h_from_v(&Rows::Bits(vs.clone())).unwrap();
        for s in 0..16 {
            let weights: Vec<f64> =
                (0..8).map(|t| (-rbm.energy(&vs.select(&[s]), &hs.select(&[t])).unwrap()[0]).exp()).collect();
            for j in 0..3 {
                let on: f64 = (0..8).filter(|t| t >> j & 1 == 1).map(|t| weights[t]).sum();
                assert!((f64::from(mean.row(s)[j]) - on / weights.iter().sum::<f64>()).abs() < 1e-6);
            }
        }
        let inputs = rbm.inputs_v_from_h(&Rows::Bits(hs.clone())).unwrap();
        let means = rbm.mean_v_from_h(&Rows::Bits(hs)).unwrap();
        for (x, m) in inputs.values().iter().zip(means.values()) {
            assert!((1.0 / (1.0 + (-x).exp()) - m).abs() < 1e-6);
        }
    }

    /// Draw v exactly from p by enumeration, make one block-Gibbs step, and compare the histogram
    /// with p again: a correct step leaves p as it is, however slowly it mixes. TV must stay within
    /// four times its Monte Carlo floor (false alarm far below 1e-6); a step with the hidden bias
    /// dropped must not.
    #[test]
    fn a_gibbs_step_leaves_the_model_distribution_alone_and_a_broken_one_does_not() {
        let (n_visible, n) = (5, 200_000);
        let rbm = random_rbm(n_visible, 3, 1.5, 3);
        let broken = Rbm::new(n_visible, 3, &rbm.weights(), rbm.visible_bias(), &[0.0; 3]).unwrap();
        let states = all_states(n_visible);
        let f = rbm.free_energy(&Rows::Bits(states.clone())).unwrap();
        let log_z = log_sum_exp(f.iter().map(|f| -f));
        let p: Vec<f64> = f.iter().map(|f| (-f - log_z).exp()).collect();
        let mut rng = stream(4, Purpose::SelfTest, 1).reader();
        let exact: Vec<usize> = (0..n)
            .map(|_| {
                let mut u = rng.uniform();
                p.iter()
                    .position(|p| {
                        u -= p;
                        u < 0.0
                    })
                    .unwrap_or(p.len() - 1)
            })
            .collect();
        let v = Rows::Bits(states.select(&exact));
        let distance = |machine: &Rbm| {
            let h = machine.sample_h_from_v(&v, |r| stream(5, Purpose::Chain, r as u64).at(0)).unwrap();
            let v = machine
                .sample_v_from_h(&Rows::Bits(h), |r| stream(5, Purpose::Chain, r as u64).at(1))
                .unwrap();
            let mut counts = vec![0.0; p.len()];
            (0..n).for_each(|r| counts[v.row(r)[0] as usize] += 1.0 / n as f64);
            p.iter().zip(&counts).map(|(p, c)| (p - c).abs()).sum::<f64>() / 2.0
        };
        let floor: f64 = p.iter().map(|p| (p * (1.0 - p) / n as f64).sqrt()).sum::<f64>() / 2.0;
        assert!(distance(&rbm) < 4.0 * floor, "{} against a floor of {floor}", distance(&rbm));
        assert!(distance(&broken) > 4.0 * floor, "the control must be caught");
    }

    #[test]
    fn sampling_does_not_depend_on_threads() {
        let rbm = random_rbm(70, 20, 0.5, 6);
        let v = Rows::Bits(BitRows::zeros(1000, 70));
        let run = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| {
                let h = rbm.sample_h_from_v(&v, |r| stream(9, Purpose::Chain, r as u64).at(0)).unwrap();
                let f = rbm.free_energy_h(&Rows::Bits(h.clone())).unwrap();
                (h, f)
            })
        };
        let one = run(1);
        assert!(run(2) == one && run(5) == one);
    }

    #[test]
    fn bad_parameters_are_refused_with_their_place() {
        let nan = Rbm::new(2, 1, &[0.0, f32::NAN], &[0.0; 2], &[0.0]).unwrap_err();
        assert!(nan.to_string().contains("weights holds NaN at index 1"), "{nan}");
        let shape = Rbm::new(2, 2, &[0.0; 3], &[0.0; 2], &[0.0; 2]).unwrap_err();
        assert!(shape.to_string().contains("size of weights: expected 4, got 3"), "{shape}");
        let empty = Rbm::new(0, 2, &[], &[], &[0.0; 2]).unwrap_err();
        assert!(empty.to_string().contains("the visible layer is empty"), "{empty}");
        let rbm = random_rbm(4, 2, 1.0, 7);
        let width = rbm.free_energy(&Rows::Bits(BitRows::zeros(1, 5))).unwrap_err();
        assert!(width.to_string().contains("expected 4, got 5"), "{width}");
    }

    #[test]
    fn a_mirror_of_a_mirror_is_the_model() {
        let rbm = random_rbm(9, 4, 1.0, 8);
        assert_eq!(rbm.mirror().mirror(), rbm);
        assert_eq!(rbm.mirror().n_visible(), 4);
    }

    #[test]
    fn reconstruction_of_an_independent_model_is_its_variance() {
        let rbm = Rbm::new(2, 1, &[0.0; 2], &[0.0; 2], &[0.0]).unwrap();
        let error = rbm.reconstruction_error(&Rows::Bits(all_states(2))).unwrap();
        assert!((error - 0.25).abs() < 1e-12);
    }
}
