//! Average a unit over all `2^n` states of the layer that feeds it, together with each bit of that
//! layer.
//!
//! A unit with bias `b` and weights `w` is off with probability `1/(1 + e^{b + wᵀy})` if the other
//! layer is in state `y`. Given weights `p(y)` for all states, [`off`] computes
//!
//! ```text
//! Σ_y p(y)/(1 + e^{b + wᵀy})       and, for each j,       Σ_y p(y) y_j/(1 + e^{b + wᵀy})
//! ```
//!
//! # Algorithm
//!
//! The bits of `y` are split into *low* (10) and *high* bits. `e^{Σ_low w}` and `e^{b + Σ_high w}`
//! are tabulated, so a state costs a multiply-add, a division and two additions: to the sum of its
//! low bits and to that of its high bits. The results follow from these marginal sums alone, by
//! folding them in half once for each bit. Exponentials are computed state by state only if tables
//! could overflow.

use crate::arch::{Lanes, Simd};
use crate::isa::kernels;
use crate::math;

/// The number of low bits. Their table and its marginal sums fit into the first-level cache.
const LOW_BITS: usize = 10;

/// The largest `|b| + Σ|w|` whose exponentials may be multiplied.
const MAX_RANGE: f64 = 600.0;

/// Reusable memory of [`off`].
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    low: Vec<f64>,
    high: Vec<f64>,
    of_low: Vec<f64>,
    of_high: Vec<f64>,
    /// `1 + e^x` of the states of one high value, if tables would overflow.
    one_by_one: Vec<f64>,
}

/// Sums `values` (one for each state) over the states in which bit `j` is set, for each `j`, and
/// returns the sum of all.
///
/// The contents of `values` are overwritten.
///
/// ```
/// let mut of_bit = [0.0; 2];
/// let all = mclv_kernels::moments::fold(&mut [1.0, 20.0, 300.0, 4000.0], &mut of_bit);
/// assert_eq!((all, of_bit), (4321.0, [4020.0, 4300.0]));
/// ```
///
/// # Panics
/// If there are not `2^of_bit.len()` values.
pub fn fold(values: &mut [f64], of_bit: &mut [f64]) -> f64 {
    assert_eq!(values.len(), 1 << of_bit.len(), "a value for each state");
    let mut half = values.len() / 2;
    for sum in of_bit.iter_mut().rev() {
        let (without, with) = values[..2 * half].split_at_mut(half);
        *sum = with.iter().sum();
        without.iter_mut().zip(with).for_each(|(x, y)| *x += *y);
        half /= 2;
    }
    values[0]
}

/// Computes `first + Σ w_j` over the set bits of every state.
fn sums(first: f64, w: &[f32], out: &mut Vec<f64>) {
    out.clear();
    out.push(first);
    for &w in w {
        let n = out.len();
        out.extend_from_within(..);
        out[n..].iter_mut().for_each(|x| *x += f64::from(w));
    }
}

#[inline(always)]
fn off_generic<S: Simd>(bias: f32, w: &[f32], p: &[f64], scratch: &mut Scratch, of_bit: &mut [f64]) -> f64 {
    assert_eq!(p.len(), 1 << w.len(), "a weight for each state");
    assert_eq!(of_bit.len(), w.len(), "a sum for each bit");
    if w.len() < 2 {
        // Fill a register with states that have no weight.
        let (mut padded, mut w2, mut of_two) = ([0.0; 4], [0.0; 2], [0.0; 2]);
        padded[..p.len()].copy_from_slice(p);
        w2[..w.len()].copy_from_slice(w);
        let all = off_registers::<S>(bias, &w2, &padded, scratch, &mut of_two);
        of_bit.copy_from_slice(&of_two[..w.len()]);
        return all;
    }
    off_registers::<S>(bias, w, p, scratch, of_bit)
}

/// Computes [`off`] for at least one register of states.
#[inline(always)]
fn off_registers<S: Simd>(bias: f32, w: &[f32], p: &[f64], scratch: &mut Scratch, of_bit: &mut [f64]) -> f64 {
    let (w_low, w_high) = w.split_at(w.len().min(LOW_BITS));
    let Scratch { low, high, of_low, of_high, one_by_one } = scratch;
    sums(0.0, w_low, low);
    sums(f64::from(bias), w_high, high);
    let range = f64::from(bias).abs() + w.iter().map(|&w| f64::from(w).abs()).sum::<f64>();
    let tabulated = range <= MAX_RANGE;
    if tabulated {
        math::exp_f64_generic::<S>(low);
        math::exp_f64_generic::<S>(high);
    }
    of_low.clear();
    of_low.resize(low.len(), 0.0);
    of_high.clear();
    of_high.resize(high.len(), 0.0);
    for ((&high, of_high), p) in high.iter().zip(&mut *of_high).zip(p.chunks_exact(low.len())) {
        *of_high = if tabulated {
            let (high, one) = (S::F64::splat(high), S::F64::splat(1.0));
            divide::<S>(p, low, |low| high.mul_add(low, one), of_low)
        } else {
            one_by_one.clear();
            one_by_one.extend(low.iter().map(|low| high + low));
            math::exp_f64_generic::<S>(one_by_one);
            divide::<S>(p, one_by_one, |e| e.add(S::F64::splat(1.0)), of_low)
        };
    }
    let (low_bits, high_bits) = of_bit.split_at_mut(w_low.len());
    fold(of_low, low_bits);
    fold(of_high, high_bits)
}

/// Adds `p / denominator(x)` to `sums`, state by state. Returns the sum of all.
#[inline(always)]
fn divide<S: Simd>(p: &[f64], x: &[f64], denominator: impl Fn(S::F64) -> S::F64, sums: &mut [f64]) -> f64 {
    let ((p, _), (x, _), (sums, _)) = (p.as_chunks::<4>(), x.as_chunks::<4>(), sums.as_chunks_mut::<4>());
    let mut total = S::F64::splat(0.0);
    for ((p, x), sum) in p.iter().zip(x).zip(sums) {
        let q = S::F64::load(p).div(denominator(S::F64::load(x)));
        S::F64::load(sum).add(q).store(sum);
        total = total.add(q);
    }
    let mut lanes = [0.0; 4];
    total.store(&mut lanes);
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

kernels! {
    /// Returns `Σ_y p(y)/(1 + e^{b + wᵀy})` over all states. Writes to `of_bit` the same sum over
    /// the states in which each bit is set.
    ///
    /// ```
    /// use mclv_kernels::{Isa, moments};
    /// let (p, mut of_bit) = ([0.25; 4], [0.0; 2]);
    /// let off = moments::off(Isa::best(), 0.0, &[0.0, 0.0], &p, &mut moments::Scratch::default(), &mut of_bit);
    /// assert_eq!((off, of_bit), (0.5, [0.25; 2]));
    /// ```
    ///
    /// # Panics
    /// If there are not `2^w.len()` states and `w.len()` sums.
    pub fn off(bias: f32, w: &[f32], p: &[f64], scratch: &mut Scratch, of_bit: &mut [f64]) -> f64 = off_generic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::rng::Stream;
    use crate::testing::{normals, on_every_isa};

    /// One state and one bit at a time; the last is the sum of all.
    fn naive(bias: f32, w: &[f32], p: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; w.len() + 1];
        for (y, &p) in p.iter().enumerate() {
            let on = |j: &usize| y >> j & 1 == 1;
            let x = f64::from(bias) + (0..w.len()).filter(on).map(|j| f64::from(w[j])).sum::<f64>();
            let off = p / (1.0 + x.exp());
            sums[w.len()] += off;
            (0..w.len()).filter(on).for_each(|j| sums[j] += off);
        }
        sums
    }

    fn summed(isa: Isa, bias: f32, w: &[f32], p: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; w.len() + 1];
        // Memory that was used before.
        let mut scratch = Scratch { of_low: vec![1.0; 3], low: vec![2.0; 5000], ..Scratch::default() };
        let (of_bit, all) = sums.split_at_mut(w.len());
        all[0] = off(isa, bias, w, p, &mut scratch, of_bit);
        sums
    }

    fn random(n_bits: usize, scale: f64, seed: u64) -> (f32, Vec<f32>, Vec<f64>) {
        let mut rng = Stream::new(seed, 0).reader();
        let p: Vec<f64> = (0..1 << n_bits).map(|_| rng.normal().powi(2)).collect();
        let total: f64 = p.iter().sum();
        let parameters = normals(&mut rng, 1 + n_bits, scale);
        (parameters[0], parameters[1..].to_vec(), p.iter().map(|p| p / total).collect())
    }

    /// False also where something is NaN.
    fn agree(x: &[f64], y: &[f64]) -> bool {
        x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-14)
    }

    #[test]
    fn agrees_with_the_naive_sum_for_all_sizes_and_widths_of_weights() {
        for n_bits in 0..=14 {
            for scale in [0.0, 0.1, 2.0, 40.0, 300.0, 1e5, 1e30] {
                let (bias, w, p) = random(n_bits, scale, n_bits as u64);
                let expected = naive(bias, &w, &p);
                let got = on_every_isa(|isa| summed(isa, bias, &w, &p));
                assert!(agree(&got, &expected), "{n_bits} bits, scale {scale}: {got:?} vs {expected:?}");
            }
        }
    }

    #[test]
    fn a_wrong_weight_would_be_seen() {
        let (bias, mut w, p) = random(12, 1.0, 7);
        let expected = naive(bias, &w, &p);
        w[11] += 1e-6;
        assert!(!agree(&summed(Isa::best(), bias, &w, &p), &expected));
    }
}
