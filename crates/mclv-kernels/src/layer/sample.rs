//! Draw Bernoulli bits of one layer given the other.

use super::draws::TileDraws;
use super::inputs::Store;
use super::sums::{Sink, run};
use super::{Affine, Scratch, States};
use crate::Isa;
use crate::arch::{F32Lanes, Lanes, Simd};
use crate::bits::words_for;
use crate::isa::kernels;
use crate::math::{exp_normal, rough_exp};
use crate::rng::Draws;
use crate::tiles::{CELL, TILE, Tiles};

/// Draws bits of `8·V` units from unit `first_unit` on, as the low bits of the result.
#[inline(always)]
fn bernoulli<S: Simd, const V: usize>(
    x: [S::F32; V],
    words: &[[u32; CELL]],
    first_unit: usize,
    draws: Draws,
) -> u64 {
    let mut open = S::F32::splat(0.0);
    let mut off = x;
    // The calls are written out: a loop of this size is not unrolled, and would keep its registers
    // in memory.
    bernoulli_pair::<S, V>(&mut off, 0, words, &mut open);
    if V > 2 {
        bernoulli_pair::<S, V>(&mut off, 1, words, &mut open);
    }
    if V > 4 {
        bernoulli_pair::<S, V>(&mut off, 2, words, &mut open);
        bernoulli_pair::<S, V>(&mut off, 3, words, &mut open);
    }
    let bits = !S::sign_bits(&off) & (u64::MAX >> (64 - CELL * V));
    if open.sign_mask() == 0 { bits } else { bits ^ flips::<S, V>(&x, words, first_unit, draws) }
}

/// Replaces the inputs of two cells by numbers that are negative if the unit is off.
#[inline(always)]
fn bernoulli_pair<S: Simd, const V: usize>(
    x: &mut [S::F32; V],
    pair: usize,
    words: &[[u32; CELL]],
    open: &mut S::F32,
) {
    let k = S::halves(&words[pair]);
    let c = 2 * pair;
    x[c] = bernoulli_cell::<S>(x[c], k[0], open);
    if c + 1 < V {
        x[c + 1] = bernoulli_cell::<S>(x[c + 1], k[1], open);
    }
}

#[inline(always)]
fn bernoulli_cell<S: Simd>(x: S::F32, k: S::F32, open: &mut S::F32) -> S::F32 {
    let splat = S::F32::splat;
    let s = rough_exp(x.abs().min(splat(INPUT_LIMIT))).add(splat(1.0));
    // 2¹⁶ u lies between k and k + 1; s is off by less than 2⁻¹³ of itself.
    let least = k.mul(s);
    let unlikely = least.lt(splat(65_536.0 + 8.0));
    *open = open.or(unlikely.and(splat(65_536.0 - 8.0).lt(least.add(s))));
    x.xor(unlikely)
}

/// Beyond this input the unlikely value always has probability 0. Its exponential is still finite.
pub(super) const INPUT_LIMIT: f32 = 80.0;

/// The first of the blocks that decide units which 16 bits left open.
const OPEN_BLOCK: u32 = 1 << 31;

/// Returns the units that are unlikely by the first 16 bits of their uniforms, but not by 32 more.
#[cold]
#[inline(never)]
fn flips<S: Simd, const V: usize>(
    x: &[S::F32; V],
    words: &[[u32; CELL]],
    first_unit: usize,
    draws: Draws,
) -> u64 {
    let mut flips = 0;
    for (c, &x) in x.iter().enumerate() {
        let mut open = S::F32::splat(0.0);
        bernoulli_cell::<S>(x, S::halves(&words[c / 2])[c % 2], &mut open);
        let mut e = [0.0; CELL];
        exp_normal(x.abs().min(S::F32::splat(INPUT_LIMIT))).store(&mut e);
        for lane in (0..CELL).filter(|lane| open.sign_mask() >> lane & 1 == 1) {
            let k = words[c / 2][lane] >> (16 * (c % 2)) & 0xffff;
            let more = draws.block(OPEN_BLOCK + (first_unit + CELL * c + lane) as u32)[0];
            let u = ((u64::from(k) << 32 | u64::from(more)) as f64 + 0.5) / (1u64 << 48) as f64;
            flips |= u64::from(u * (1.0 + f64::from(e[lane])) >= 1.0) << (CELL * c + lane);
        }
    }
    flips
}

/// Draws the bits and, if requested, stores the means.
pub(super) struct Sample<'a> {
    bits: &'a mut [u64],
    n_words: usize,
    draws: &'a [Draws],
    tile_draws: &'a mut TileDraws,
    means: Option<Store<'a, true>>,
}

impl<'a> Sample<'a> {
    /// Draws bits of states of `n_units` units. All of `bits` must be 0.
    pub(super) fn new(
        bits: &'a mut [u64],
        n_units: usize,
        draws: &'a [Draws],
        tile_draws: &'a mut TileDraws,
    ) -> Self {
        Self { bits, n_words: words_for(n_units), draws, tile_draws, means: None }
    }
}

impl<S: Simd> Sink<S> for Sample<'_> {
    #[inline(always)]
    fn begin(&mut self, tile: usize, width: usize) {
        self.tile_draws.fill::<S>(tile, width, self.draws);
    }

    #[inline(always)]
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize) {
        let words = self.tile_draws.get(row, cell, V);
        let bits = bernoulli::<S, V>(x, words, (tile * TILE + cell) * CELL, self.draws[row]);
        self.bits[row * self.n_words + tile] |= bits << (CELL * cell);
        if let Some(means) = &mut self.means {
            Sink::<S>::put(means, x, row, tile, cell);
        }
    }
}

#[inline(always)]
fn sample_generic<S: Simd, const LARGE: bool>(
    affine: &Affine,
    states: States<'_>,
    draws: &[Draws],
    scratch: &mut Scratch,
    bits: &mut [u64],
    means: Option<&mut Tiles>,
) {
    let n_rows = states.n_rows(affine.n_in());
    assert_eq!(draws.len(), n_rows, "one set of draws for each state");
    assert_eq!(bits.len(), n_rows * words_for(affine.n_out()), "room for the sampled states");
    if let Some(means) = &means {
        affine.check(states, means);
    }
    let Scratch { lists, partial, tile_draws, .. } = scratch;
    let lists = lists.list::<S>(states, affine.n_in(), affine.n_out());
    bits.fill(0);
    let sink = Sample::new(bits, affine.n_out(), draws, tile_draws);
    run::<S, _, LARGE>(affine, lists, partial, &mut Sample { means: means.map(Store), ..sink });
    mask_padding(bits, affine.n_out());
}

/// Sets the bits beyond the last unit to 0. Padding is off by its bias of −∞, unless it has become
/// NaN.
#[inline(always)]
pub(super) fn mask_padding(bits: &mut [u64], n_units: usize) {
    let (n_words, n_last) = (words_for(n_units), n_units % 64);
    if n_last > 0 {
        bits.iter_mut().skip(n_words - 1).step_by(n_words).for_each(|word| *word &= (1 << n_last) - 1);
    }
}

/// Draws each unit from `σ(b + Wᵀx)`, with the random numbers `draws[r]` for state `r`. Also stores
/// the means if `means` is given.
///
/// # Panics
/// If the numbers of [`Draws`], of rows of `bits` and of rows of `means` are not the number of
/// states.
pub fn sample(
    isa: Isa,
    affine: &Affine,
    states: States<'_>,
    draws: &[Draws],
    scratch: &mut Scratch,
    bits: &mut [u64],
    means: Option<&mut Tiles>,
) {
    let sample = if affine.is_large() { sample_large } else { sample_small };
    sample(isa, affine, states, draws, scratch, bits, means);
}

kernels! {
    fn sample_small(
        affine: &Affine,
        states: States<'_>,
        draws: &[Draws],
        scratch: &mut Scratch,
        bits: &mut [u64],
        means: Option<&mut Tiles>,
    ) = sample_generic<false>;

    fn sample_large(
        affine: &Affine,
        states: States<'_>,
        draws: &[Draws],
        scratch: &mut Scratch,
        bits: &mut [u64],
        means: Option<&mut Tiles>,
    ) = sample_generic<true>;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::layer::{inputs, means};
    use crate::math::{exp_f32, sigmoid_f32};
    use crate::rng::Stream;
    use crate::testing::{Case, cases, largest};
    use proptest::prelude::*;

    /// The first 16 bits of the uniform that decides a unit, by the map that `rng` documents.
    fn first_bits(draws: Draws, unit: usize) -> u32 {
        let (g, rest) = (unit / 32, unit % 32);
        let (pair, upper, l, odd) = (rest / 16, rest % 16 / 8, rest % 8 / 2, rest % 2);
        draws.block((4 * g + l) as u32)[2 * pair + odd] >> (16 * upper) & 0xffff
    }

    /// The bit of unit `i` with input `x`, by the definition.
    pub(in crate::layer) fn naive_bit(x: f32, draws: Draws, i: usize) -> bool {
        let mut e = [x.abs().min(80.0)];
        exp_f32(Isa::portable(), &mut e);
        let (k, e) = (first_bits(draws, i), e[0]);
        let u = k as f32 / 65536.0;
        let least = u.mul_add(e, u);
        let beyond = e.mul_add(1.0 / 65536.0, 1.0 / 65536.0) + least;
        let unlikely = if least >= 1.0 || beyond <= 1.0 {
            least < 1.0
        } else {
            let more = draws.block(OPEN_BLOCK + i as u32)[0];
            let u = (f64::from(k) * 4294967296.0 + f64::from(more) + 0.5) / 281474976710656.0;
            u * (1.0 + f64::from(e)) < 1.0
        };
        unlikely != x.is_sign_positive()
    }

    fn draws(n_rows: usize, seed: u64) -> Vec<Draws> {
        (0..n_rows).map(|r| Stream::new(seed + r as u64 / 2, 5 + r as u64).at(9)).collect()
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn layers_equal_the_naive_loops_to_the_bit(
            n_in in 1usize..=300, n_out in 1usize..=200, n_rows in 1usize..=40, seed in any::<u64>(), real in any::<bool>()
        ) {
            let case = Case::new(n_in, n_out, n_rows, seed, real);
            let affine = case.affine();
            let held = case.held(real);
            let expected = case.inputs();
            let mut expected_means = expected.clone();
            sigmoid_f32(Isa::portable(), &mut expected_means);
            let draws = draws(n_rows, seed >> 1);
            let mut expected_bits = BitRows::zeros(n_rows, n_out);
            for (k, &x) in expected.iter().enumerate() {
                let (r, j) = (k / n_out, k % n_out);
                expected_bits.set(r, j, naive_bit(x, draws[r], j));
            }
            let both = Isa::available().into_iter().flat_map(|isa| held.iter().map(move |held| (isa, held.states())));
            for (isa, states) in both {
                let mut scratch = Scratch::default();
                let mut out = Tiles::zeros(n_rows, n_out);
                inputs(isa, &affine, states, &mut scratch, &mut out);
                prop_assert_eq!(&out.to_rows(), &expected);
                means(isa, &affine, states, &mut scratch, &mut out);
                prop_assert_eq!(&out.to_rows(), &expected_means);
                prop_assert_eq!(&Tiles::from_rows(n_rows, n_out, &expected_means), &out, "padding is zero");
                for with_means in [false, true] {
                    let mut bits = BitRows::zeros(n_rows, n_out);
                    bits.words_mut().fill(u64::MAX);
                    out.clear();
                    sample(isa, &affine, states, &draws, &mut scratch, bits.words_mut(), with_means.then_some(&mut out));
                    prop_assert_eq!(&bits, &expected_bits);
                    if with_means {
                        prop_assert_eq!(&out.to_rows(), &expected_means);
                    }
                }
            }
        }
    }

    /// How far the frequencies of the drawn bits are from `σ(x)`, as the largest |z| over inputs.
    fn worst_z(inputs: &[f32], n: usize, draw: impl Fn(usize, &mut [u64])) -> f64 {
        let mut counts = vec![0.0; inputs.len()];
        let mut bits = vec![0; words_for(inputs.len())];
        for t in 0..n {
            draw(t, &mut bits);
            for i in crate::bits::ones(&bits) {
                counts[i] += 1.0;
            }
        }
        let z = |(&x, &c): (&f32, &f64)| {
            let p = 1.0 / (1.0 + (-f64::from(x)).exp());
            ((c - n as f64 * p) / (n as f64 * p * (1.0 - p)).sqrt()).abs()
        };
        largest(inputs.iter().zip(&counts).map(z))
    }

    /// 100 inputs of every size at 200,000 draws: |z| stays below 5 with probability 1 − 6e-5.
    #[test]
    fn bits_have_the_right_frequencies_and_a_biased_draw_is_caught() {
        let x: Vec<f32> = (0..100).map(|i| (i as f32 - 49.5) / 10.0).collect();
        let affine = Affine::new(Tiles::zeros(1, x.len()), &x);
        // Negative control: the same bits from inputs that are off by 0.05.
        let shifted: Vec<f32> = x.iter().map(|x| x + 0.05).collect();
        let broken = Affine::new(Tiles::zeros(1, x.len()), &shifted);
        let frequencies = |affine: &Affine| {
            worst_z(&x, 200_000, |t, bits| {
                let draws = [Stream::new(3, 0).at(t as u32)];
                sample(Isa::best(), affine, States::Bits(&[0]), &draws, &mut Scratch::default(), bits, None);
            })
        };
        let (good, bad) = (frequencies(&affine), frequencies(&broken));
        assert!(good < 5.0, "worst |z| = {good}");
        assert!(bad > 5.0, "the control must be caught: {bad}");
    }

    /// Inputs are chosen such that the first 16 bits leave every unit open. All builds decide these
    /// units as the definition says.
    #[test]
    fn what_16_bits_leave_open_is_decided_by_32_more() {
        let draws = Stream::new(8, 3).at(2);
        let x: Vec<f32> = (0..200)
            .map(|i| {
                let q = (f64::from(first_bits(draws, i)) + 0.5) / 65536.0;
                ((1.0 - q) / q).ln().abs() as f32 * if i % 3 == 0 { -1.0 } else { 1.0 }
            })
            .collect();
        let affine = Affine::new(Tiles::zeros(1, x.len()), &x);
        let expected = BitRows::pack(200, &(0..200).collect::<Vec<_>>(), |&i| naive_bit(x[i], draws, i));
        for isa in Isa::available() {
            let mut bits = BitRows::zeros(1, 200);
            let mut scratch = Scratch::default();
            sample(isa, &affine, States::Bits(&[0]), &[draws], &mut scratch, bits.words_mut(), None);
            assert_eq!(bits, expected);
        }
    }

    /// A probability of 1.7e-5, below what 16 bits resolve: 6.4 million draws give 107 ± 10 ones.
    /// False alarm of |z| < 5: 6e-7. The control, twice the probability, is caught.
    #[test]
    fn small_probabilities_come_out_right() {
        let count = |x: f32| -> f64 {
            let affine = Affine::new(Tiles::zeros(1, 64), &[x; 64]);
            let mut scratch = Scratch::default();
            let draw = |t: u32| {
                let mut word = [0];
                let draws = [Stream::new(9, 0).at(t)];
                sample(Isa::best(), &affine, States::Bits(&[0]), &draws, &mut scratch, &mut word, None);
                f64::from(word[0].count_ones())
            };
            (0..100_000).map(draw).sum()
        };
        let expected = 6.4e6 / (1.0 + 11f64.exp());
        let z = |count: f64| (count - expected) / expected.sqrt();
        assert!(z(count(-11.0)).abs() < 5.0, "z = {}", z(count(-11.0)));
        assert!(z(count(-11.0 + 2f32.ln())).abs() > 5.0);
    }

    /// Pairs of units with input 0 agree half of the time: |z| over all pairs of 64 stays below 6
    /// (4e-6), while a draw that reuses one uniform for two units does not.
    #[test]
    fn bits_of_different_units_are_independent_and_a_reused_uniform_is_caught() {
        let n = 20_000;
        let affine = Affine::new(Tiles::zeros(1, 64), &[0.0; 64]);
        let worst = |reuse: bool| {
            let mut agree = vec![0.0; 64 * 64];
            let mut word = [0];
            for t in 0..n {
                let draws = [Stream::new(4, 1).at(t)];
                sample(
                    Isa::best(),
                    &affine,
                    States::Bits(&[0]),
                    &draws,
                    &mut Scratch::default(),
                    &mut word,
                    None,
                );
                let mut w = word[0];
                if reuse {
                    w = w & !2 | (w & 1) << 1;
                }
                for i in 0..64 {
                    let same = !(w ^ (w >> i & 1).wrapping_neg());
                    for j in 0..i {
                        agree[i * 64 + j] += (same >> j & 1) as f64;
                    }
                }
            }
            let n = f64::from(n);
            let pairs = (0..64).flat_map(|i| (0..i).map(move |j| i * 64 + j));
            largest(pairs.map(|k| ((agree[k] - n / 2.0) / (n / 4.0).sqrt()).abs()))
        };
        assert!(worst(false) < 6.0, "{}", worst(false));
        assert!(worst(true) > 6.0);
    }

    #[test]
    fn nan_sets_no_bit_beyond_the_units() {
        let (n_in, n_out, n_rows) = (3, 25, 40);
        let affine = Affine::new(Tiles::from_rows(n_in, n_out, &[f32::NAN; 75]), &[0.0; 25]);
        let states = [f32::NAN; 120];
        for isa in Isa::available() {
            let mut bits = vec![0; n_rows];
            sample(
                isa,
                &affine,
                States::Reals(&states),
                &draws(n_rows, 1),
                &mut Scratch::default(),
                &mut bits,
                None,
            );
            assert!(bits.iter().all(|word| word >> n_out == 0), "{bits:x?}");
        }
    }

    #[test]
    fn extreme_inputs_give_certain_bits() {
        let x = [f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 200.0, -200.0];
        let affine = Affine::new(Tiles::zeros(1, 6), &x);
        for isa in Isa::available() {
            for t in 0..1000 {
                let mut bits = [0];
                let draws = [Stream::new(1, 2).at(t)];
                sample(isa, &affine, States::Bits(&[0]), &draws, &mut Scratch::default(), &mut bits, None);
                assert_eq!(bits[0], 0b010101);
            }
        }
    }

    /// These values are pinned: a change of a stream's values is a breaking change for all recorded
    /// seeds.
    #[test]
    fn values_are_stable() {
        let case = Case::new(20, 70, 1, 99, false);
        let mut bits = [0; 2];
        let draws = [Stream::new(1, 2).at(3)];
        let states = case.packed();
        sample(
            Isa::best(),
            &case.affine(),
            States::Bits(states.words()),
            &draws,
            &mut Scratch::default(),
            &mut bits,
            None,
        );
        assert_eq!(bits, [16489883542691007632, 57]);
    }
}
