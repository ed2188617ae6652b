//! Sum a product model over all `2^n` states of one layer.
//!
//! With `n` enumerated units `y` (biases `a`) and `m` summed-out units (biases `b`, weights `W`, m × n):
//!
//! ```text
//! Z = Σ_y e^{aᵀy} Π_i (1 + e^{b_i + (W y)_i})
//! ```
//!
//! # Algorithm
//!
//! The bits of `y` fall into *low* (6), *middle* (7) and *top*. `B_i(low) = e^{Σ_low W}` and `M_i(middle)` are
//! tabulated once. A *task* is one value of the top bits: it computes `A_i = e^{b_i + Σ_top W}`, and then each
//! of its 8,192 states costs one multiply-add and one multiply per unit, `Π_i (c_i + (c_i A_i M_i) B_i)`, four
//! states to a register, 4 × 8 states at a time, with no exponential and no logarithm.
//!
//! # Numerics
//!
//! `c_i` is a power of two that centres unit `i`'s factor on 1 over the states of a task. Products are split
//! into mantissa and exponent before they can leave the range of `f64`, and sums are scaled, so nothing
//! overflows whatever the size of `Z`. The relative error is about `m` roundings, 10⁻¹³ for m = 784. If a unit's
//! low and middle weights add up to more than [`MAX_RANGE`] in size, fewer bits are tabulated; if even five bits
//! are too many, or parameters are beyond 10⁹, states are summed in log space: slower, as exact.
//!
//! Memory: 1.2 MB for m = 784, whatever `n`.

use crate::arch::{F64Lanes, Lanes, Simd};
use crate::isa::kernels;
use crate::math;
use std::f64::consts::LN_2;
use std::hint::black_box;
use std::ops::{Add, Mul};

/// A positive number `mantissa · 2^exponent`, beyond the range of `f64`.
///
/// ```
/// use mclv_kernels::enumerate::Scaled;
/// let huge = Scaled::exp(1e5);
/// let sum = huge + huge;
/// assert!((sum.ln() - (1e5 + 2f64.ln())).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    mantissa: f64,
    exponent: f64,
}

impl Scaled {
    /// Zero, the neutral element of addition.
    pub const ZERO: Self = Self { mantissa: 0.0, exponent: f64::NEG_INFINITY };

    /// `e^x`.
    pub fn exp(x: f64) -> Self {
        let exponent = (x / LN_2).round();
        // The rest is at most ½ ln 2, unless `x` is so large that its own rounding is more than that.
        Self { mantissa: exponent.mul_add(-LN_2, x).clamp(-1.0, 1.0).exp(), exponent }
    }

    /// Mantissa and exponent of two, to be sent elsewhere.
    pub fn parts(self) -> (f64, f64) {
        (self.mantissa, self.exponent)
    }

    /// What [`parts`](Self::parts) gave.
    pub fn from_parts(mantissa: f64, exponent: f64) -> Self {
        Self { mantissa, exponent }
    }

    /// The natural logarithm.
    pub fn ln(self) -> f64 {
        if self.mantissa == 0.0 { f64::NEG_INFINITY } else { self.exponent.mul_add(LN_2, self.mantissa.ln()) }
    }
}

impl Add for Scaled {
    type Output = Self;

    /// The sum, scaled by the larger exponent.
    fn add(self, other: Self) -> Self {
        let (big, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        if small.mantissa == 0.0 {
            return big;
        }
        let mantissa = big.mantissa + small.mantissa * (small.exponent - big.exponent).exp2();
        Self { mantissa, exponent: big.exponent }
    }
}

impl Mul for Scaled {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { mantissa: self.mantissa * other.mantissa, exponent: self.exponent + other.exponent }
    }
}

/// The largest `Σ|W_ij|` over low and middle bits for which products stay within `f64`.
pub const MAX_RANGE: f64 = 600.0;

/// The largest input `|b_i| + Σ_j |W_ij|` from which whole octaves are split off without loss.
const MAX_INPUT: f64 = 1e9;

/// Between two splits of the exponent, factors may multiply to e^±this.
const SEGMENT_RANGE: f64 = 650.0;

/// Middle values and low states worked on together: what the registers hold.
const HIGHS: usize = 4;
const LOWS: usize = 8;

const MAX_LOW_BITS: usize = 6;
const MAX_MIDDLE_BITS: usize = 7;
const MIN_LOW_BITS: usize = 3;
const MIN_MIDDLE_BITS: usize = 2;

/// An enumeration made ready: tables, and how the states fall into tasks.
#[derive(Clone, Debug)]
pub struct Enumeration {
    n_bits: usize,
    n_units: usize,
    low_bits: usize,
    middle_bits: usize,
    /// `W` by enumerated unit: n × m.
    w: Vec<f64>,
    bias: Vec<f64>,
    bias_bits: Vec<f64>,
    /// Per unit, the least and greatest sum of low and middle weights.
    least: Vec<f64>,
    greatest: Vec<f64>,
    /// Where products are split: ends of runs of units. Empty: sum in log space.
    segments: Vec<usize>,
    /// `[middle / 4][unit]`, four middle values each: `e^{Σ W}`, or `Σ W` in log space.
    middle: Vec<[f64; HIGHS]>,
    /// `[low / 8][unit]`, eight low states each.
    low: Vec<[f64; LOWS]>,
    /// `e^{aᵀy}` of the low and the middle bits.
    low_weight: Vec<Scaled>,
    middle_weight: Vec<Scaled>,
}

/// Memory of one task, to be used again.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// `b_i + Σ_top W`, then `c_i A_i`.
    a: Vec<f64>,
    c: Vec<f64>,
    /// `c_i A_i M_i` of four middle values.
    high: Vec<[f64; HIGHS]>,
}

impl Enumeration {
    /// Prepare the sum over `bias_bits.len()` enumerated units; `weights` is (summed-out × enumerated), row-major.
    ///
    /// # Panics
    /// If the sizes do not fit, or there are more than 63 units to enumerate.
    pub fn new(isa: crate::Isa, weights: &[f32], bias: &[f32], bias_bits: &[f32]) -> Self {
        let (n_units, n_bits) = (bias.len(), bias_bits.len());
        assert_eq!(weights.len(), n_units * n_bits, "weights for {n_units} × {n_bits} units");
        assert!(n_bits < 64, "2^{n_bits} states are beyond counting");
        let mut w = vec![0.0; n_units * n_bits];
        for i in 0..n_units {
            for j in 0..n_bits {
                w[j * n_units + i] = f64::from(weights[i * n_bits + j]);
            }
        }
        let widest = |n: usize| {
            let range = |i| w.iter().skip(i).step_by(n_units.max(1)).take(n).map(|w| w.abs()).sum::<f64>();
            (0..n_units).map(range).fold(0.0, f64::max)
        };
        let mut low_bits = n_bits.saturating_sub(MIN_MIDDLE_BITS).clamp(0, MAX_LOW_BITS);
        let mut middle_bits = (n_bits - low_bits).min(MAX_MIDDLE_BITS);
        while widest(low_bits + middle_bits) > MAX_RANGE && middle_bits > MIN_MIDDLE_BITS {
            middle_bits -= 1;
        }
        while widest(low_bits + middle_bits) > MAX_RANGE && low_bits > MIN_LOW_BITS {
            low_bits -= 1;
        }
        let tabulated = low_bits + middle_bits;
        let largest_input = widest(n_bits) + bias.iter().map(|&b| f64::from(b).abs()).fold(0.0, f64::max);
        let fast = n_units > 0
            && largest_input <= MAX_INPUT
            && low_bits >= MIN_LOW_BITS
            && middle_bits >= MIN_MIDDLE_BITS
            && widest(tabulated) <= MAX_RANGE;
        if !fast {
            low_bits = 0;
            middle_bits = 0;
        }
        let mut this = Self {
            n_bits,
            n_units,
            low_bits,
            middle_bits,
            bias: bias.iter().map(|&b| f64::from(b)).collect(),
            bias_bits: bias_bits.iter().map(|&a| f64::from(a)).collect(),
            least: vec![0.0; n_units],
            greatest: vec![0.0; n_units],
            segments: Vec::new(),
            middle: Vec::new(),
            low: Vec::new(),
            low_weight: Vec::new(),
            middle_weight: Vec::new(),
            w,
        };
        if fast {
            this.tabulate(isa);
        }
        this
    }

    fn tabulate(&mut self, isa: crate::Isa) {
        let n = self.n_units;
        for j in 0..self.low_bits + self.middle_bits {
            for (i, &w) in self.w[j * n..(j + 1) * n].iter().enumerate() {
                self.least[i] += w.min(0.0);
                self.greatest[i] += w.max(0.0);
            }
        }
        let mut range = 0.0;
        for i in 0..n {
            // A factor stays within e^±(half its range + 1.5 ln 2).
            let half = 0.5 * (self.greatest[i] - self.least[i]) + 1.1;
            range += half;
            if range > SEGMENT_RANGE {
                self.segments.push(i);
                range = half;
            }
        }
        self.segments.push(n);

        let low = 0..self.low_bits;
        let middle = self.low_bits..self.low_bits + self.middle_bits;
        self.low = vec![[0.0; LOWS]; n << self.low_bits >> LOWS.trailing_zeros()];
        self.middle = vec![[0.0; HIGHS]; n << self.middle_bits >> HIGHS.trailing_zeros()];
        let mut sums = vec![0.0; n];
        for s in 0..1 << low.len() {
            self.sums(low.clone(), s as u64, &mut sums);
            math::exp_f64(isa, &mut sums);
            for (i, &x) in sums.iter().enumerate() {
                self.low[s / LOWS * n + i][s % LOWS] = x;
            }
        }
        for s in 0..1 << middle.len() {
            self.sums(middle.clone(), s as u64, &mut sums);
            math::exp_f64(isa, &mut sums);
            for (i, &x) in sums.iter().enumerate() {
                self.middle[s / HIGHS * n + i][s % HIGHS] = x;
            }
        }
        let weight = |bits: std::ops::Range<usize>| -> Vec<Scaled> {
            (0..1u64 << bits.len()).map(|s| Scaled::exp(self.linear(bits.clone(), s))).collect()
        };
        (self.low_weight, self.middle_weight) = (weight(low), weight(middle));
    }

    /// `Σ_j W_ij` over the set bits of `state`, bit 0 being unit `units.start`.
    fn sums(&self, units: std::ops::Range<usize>, state: u64, out: &mut [f64]) {
        out.fill(0.0);
        for j in units.clone().filter(|j| state >> (j - units.start) & 1 == 1) {
            for (x, w) in out.iter_mut().zip(&self.w[j * self.n_units..]) {
                *x += w;
            }
        }
    }

    /// `Σ_j a_j` over the set bits of `state`.
    fn linear(&self, units: std::ops::Range<usize>, state: u64) -> f64 {
        units.clone().filter(|j| state >> (j - units.start) & 1 == 1).map(|j| self.bias_bits[j]).sum()
    }

    /// In how many independent parts the states are summed.
    pub fn n_tasks(&self) -> u64 {
        1 << (self.n_bits - self.low_bits - self.middle_bits)
    }

    /// How many states one task sums.
    pub fn states_per_task(&self) -> u64 {
        1 << (self.low_bits + self.middle_bits)
    }

    /// Whether the weights allow products of tabulated exponentials; if not, tasks run in log space.
    pub fn is_tabulated(&self) -> bool {
        !self.segments.is_empty()
    }
}

#[inline(always)]
fn task_generic<S: Simd>(plan: &Enumeration, task: u64, scratch: &mut Scratch) -> Scaled {
    let common = begin::<S>(plan, task, scratch);
    if !plan.is_tabulated() {
        return common;
    }
    let mut total = Scaled::ZERO;
    each_middle::<S>(plan, scratch, |middle, mantissa, exponent| {
        let sum = scaled_sum::<S>(mantissa, exponent, &plan.low_weight);
        total = total + sum * plan.middle_weight[middle];
    });
    total * common
}

#[inline(always)]
fn log_terms_generic<S: Simd>(plan: &Enumeration, task: u64, scratch: &mut Scratch, out: &mut [f64]) {
    assert_eq!(out.len() as u64, plan.states_per_task(), "one term for each state of a task");
    let common = begin::<S>(plan, task, scratch);
    if !plan.is_tabulated() {
        out[0] = common.ln();
        return;
    }
    let n_low = 1 << plan.low_bits;
    each_middle::<S>(plan, scratch, |middle, mantissa, exponent| {
        let common = common * plan.middle_weight[middle];
        let out = &mut out[middle * n_low..(middle + 1) * n_low];
        for ((out, low), (&mantissa, &exponent)) in
            out.iter_mut().zip(&plan.low_weight).zip(mantissa.iter().zip(&*exponent))
        {
            *out = (Scaled { mantissa, exponent } * *low * common).ln();
        }
    });
}

/// Work out what all states of a task have in common, and return their common factor: all there is of the one state of a task in log space.
#[inline(always)]
fn begin<S: Simd>(plan: &Enumeration, task: u64, scratch: &mut Scratch) -> Scaled {
    assert!(task < plan.n_tasks(), "task {task} of {}", plan.n_tasks());
    let top = plan.low_bits + plan.middle_bits..plan.n_bits;
    let n = plan.n_units;
    let Scratch { a, c, .. } = scratch;
    a.resize(n, 0.0);
    plan.sums(top.clone(), task, a);
    for (a, b) in a.iter_mut().zip(&plan.bias) {
        *a += b;
    }
    let top_weight = Scaled::exp(plan.linear(top, task));
    if !plan.is_tabulated() {
        return top_weight * Scaled::exp(math::softplus_sum_generic::<S>(a));
    }

    c.resize(n, 0.0);
    let mut shift = 0.0;
    for (i, (a, c)) in a.iter_mut().zip(&mut *c).enumerate() {
        // Half way between the smallest and the largest ln(1 + e^x), to within ln 2; a whole number of octaves.
        let k = (0.5 / LN_2 * ((*a + plan.least[i]).max(0.0) + (*a + plan.greatest[i]).max(0.0)))
            .round_ties_even();
        shift += k;
        *a = k.mul_add(-LN_2, *a);
        *c = -k * LN_2;
    }
    math::exp_f64_generic::<S>(a);
    math::exp_f64_generic::<S>(c);
    top_weight * Scaled { mantissa: 1.0, exponent: shift }
}

/// Hand each middle value's products of all low states to `visit`, as mantissas and exponents to do with as it likes.
#[inline(always)]
fn each_middle<S: Simd>(
    plan: &Enumeration,
    scratch: &mut Scratch,
    mut visit: impl FnMut(usize, &mut [f64], &mut [f64]),
) {
    let n = plan.n_units;
    let Scratch { a, c, high } = scratch;
    high.resize(n, [0.0; HIGHS]);
    let n_low = 1 << plan.low_bits;
    let mut mantissa = [[0.0; 1 << MAX_LOW_BITS]; HIGHS];
    let mut exponent = [[0.0; 1 << MAX_LOW_BITS]; HIGHS];
    for (block, middle) in plan.middle.chunks_exact(n).enumerate() {
        for ((high, &a), middle) in high.iter_mut().zip(&*a).zip(middle) {
            S::F64::splat(a).mul(S::F64::load(middle)).store(high);
        }
        for (chunk, low) in plan.low.chunks_exact(n).enumerate() {
            products::<S>(&plan.segments, high, c, low, chunk * LOWS, &mut mantissa, &mut exponent);
        }
        for h in 0..HIGHS {
            visit(block * HIGHS + h, &mut mantissa[h][..n_low], &mut exponent[h][..n_low]);
        }
    }
}

/// `Π_i (c_i + high_i low_i)` of 4 × 8 states, as mantissas and exponents.
#[inline(always)]
fn products<S: Simd>(
    segments: &[usize],
    high: &[[f64; HIGHS]],
    c: &[f64],
    low: &[[f64; LOWS]],
    at: usize,
    mantissa: &mut [[f64; 1 << MAX_LOW_BITS]; HIGHS],
    exponent: &mut [[f64; 1 << MAX_LOW_BITS]; HIGHS],
) {
    let one = S::F64::splat(1.0);
    let mut product = [[one; 2]; HIGHS];
    let mut octaves = [[S::F64::splat(0.0); 2]; HIGHS];
    let mut from = 0;
    for &to in segments {
        for ((high, &c), low) in high[from..to].iter().zip(&c[from..to]).zip(&low[from..to]) {
            let (low, _) = low.as_chunks::<4>();
            let low = [S::F64::load(&low[0]), S::F64::load(&low[1])];
            let c = S::F64::splat(c);
            for h in 0..HIGHS {
                let a = S::F64::splat(high[h]);
                product[h][0] = product[h][0].mul(a.mul_add(low[0], c));
                product[h][1] = product[h][1].mul(a.mul_add(low[1], c));
            }
        }
        for h in 0..HIGHS {
            for l in 0..2 {
                let (m, e) = product[h][l].split_exponent();
                product[h][l] = m;
                octaves[h][l] = octaves[h][l].add(e);
            }
        }
        from = to;
    }
    for h in 0..HIGHS {
        for l in 0..2 {
            let at = at + 4 * l;
            product[h][l].store(mantissa[h][at..].first_chunk_mut().expect("four lanes"));
            octaves[h][l].store(exponent[h][at..].first_chunk_mut().expect("four lanes"));
        }
    }
}

/// `Σ_s weight_s · mantissa_s · 2^exponent_s`, scaled by the largest exponent.
#[inline(always)]
fn scaled_sum<S: Simd>(mantissa: &mut [f64], exponent: &mut [f64], weight: &[Scaled]) -> Scaled {
    let mut largest = f64::NEG_INFINITY;
    for ((m, e), w) in mantissa.iter_mut().zip(&mut *exponent).zip(weight) {
        *m *= w.mantissa;
        *e += w.exponent;
        largest = largest.max(*e);
    }
    let (mantissa, _) = mantissa.as_chunks::<4>();
    let (exponent, _) = exponent.as_chunks::<4>();
    let (top, floor) = (S::F64::splat(largest), S::F64::splat(-1000.0));
    let mut sum = S::F64::splat(0.0);
    for (m, e) in mantissa.iter().zip(exponent) {
        // What is 2⁻¹⁰⁰⁰ of the largest does not count either way.
        let scale = S::F64::load(e).sub(top).max(floor).pow2();
        sum = S::F64::load(m).mul_add(scale, sum);
    }
    let mut lanes = [0.0; 4];
    sum.store(&mut lanes);
    Scaled { mantissa: (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), exponent: largest }
}

#[inline(always)]
fn fma_peak_generic<S: Simd>(n_rounds: u64) -> f64 {
    // Twelve different chains hide the latency of two units; the compiler must not see what they tend to.
    let (factor, term) = (S::F64::splat(black_box(0.999_9)), S::F64::splat(black_box(1e-3)));
    let mut x = [S::F64::splat(0.0); 12];
    for (k, x) in x.iter_mut().enumerate() {
        *x = S::F64::splat(black_box(k as f64));
    }
    for _ in 0..n_rounds {
        for x in &mut x {
            *x = x.mul_add(factor, term);
        }
    }
    let mut sum = [0.0; 4];
    x.into_iter().fold(S::F64::splat(0.0), Lanes::add).store(&mut sum);
    sum.iter().sum()
}

kernels! {
    /// The sum over the states of task `task`.
    ///
    /// # Panics
    /// If there is no such task.
    pub fn run_task(plan: &Enumeration, task: u64, scratch: &mut Scratch) -> Scaled = task_generic;

    /// The logarithm of each term that [`run_task`] sums, in the order of the states.
    ///
    /// # Panics
    /// If there is no such task, or not room for just its states.
    pub fn log_terms(plan: &Enumeration, task: u64, scratch: &mut Scratch, out: &mut [f64]) = log_terms_generic;

    /// Do `48 · n_rounds` multiply-adds in registers (twelve chains of four lanes): the yardstick of benchmarks.
    pub fn fma_peak(n_rounds: u64) -> f64 = fma_peak_generic;
}

/// Multiply-adds per round of [`fma_peak`].
pub const FMAS_PER_ROUND: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::rng::Stream;

    /// `aᵀy + Σ ln(1 + e^{b + Wy})` of each state, one unit at a time.
    fn naive_terms(w: &[f32], b: &[f32], a: &[f32]) -> Vec<f64> {
        let n = a.len();
        (0..1u64 << n)
            .map(|y| {
                let on = |j: &usize| y >> j & 1 == 1;
                let linear: f64 = (0..n).filter(on).map(|j| f64::from(a[j])).sum();
                let soft = b.iter().enumerate().map(|(i, &b)| {
                    let x = f64::from(b) + (0..n).filter(on).map(|j| f64::from(w[i * n + j])).sum::<f64>();
                    x.max(0.0) + (-x.abs()).exp().ln_1p()
                });
                linear + soft.sum::<f64>()
            })
            .collect()
    }

    /// `ln Σ_y e^{aᵀy} Π (1 + e^{b + Wy})`, with a compensated sum.
    fn naive(w: &[f32], b: &[f32], a: &[f32]) -> f64 {
        let logs = naive_terms(w, b, a);
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut lost) = (0.0, 0.0);
        for x in logs {
            let term = (x - largest).exp() - lost;
            let next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        largest + f64::ln(sum)
    }

    fn enumerated(isa: Isa, w: &[f32], b: &[f32], a: &[f32]) -> (f64, bool) {
        let plan = Enumeration::new(isa, w, b, a);
        assert_eq!(plan.n_tasks() * plan.states_per_task(), 1 << a.len());
        let mut scratch = Scratch::default();
        let sum = (0..plan.n_tasks()).fold(Scaled::ZERO, |s, t| s + run_task(isa, &plan, t, &mut scratch));
        (sum.ln(), plan.is_tabulated())
    }

    fn close(x: f64, y: f64) -> bool {
        (x - y).abs() <= 1e-10 * y.abs().max(1.0)
    }

    fn random(n_units: usize, n_bits: usize, scale: f64, seed: u64) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        let mut rng = Stream::new(seed, 0).reader();
        let mut draw = |n: usize| (0..n).map(|_| (rng.normal() * scale) as f32).collect();
        (draw(n_units * n_bits), draw(n_units), draw(n_bits))
    }

    #[test]
    fn agrees_with_the_naive_sum_for_all_sizes_and_widths_of_weights() {
        let (mut tabulated, mut in_logs) = (0, 0);
        for n_bits in 1..=16 {
            for (n_units, scale) in
                [(1, 1.0), (7, 0.1), (23, 3.0), (61, 0.5), (40, 30.0), (5, 300.0), (3, 5000.0)]
            {
                let n_units = if n_bits > 12 { n_units.min(9) } else { n_units };
                let (w, b, a) = random(n_units, n_bits, scale, n_bits as u64 * 100 + n_units as u64);
                let expected = naive(&w, &b, &a);
                let (portable, _) = enumerated(Isa::portable(), &w, &b, &a);
                for isa in Isa::available() {
                    let (got, fast) = enumerated(isa, &w, &b, &a);
                    assert!(
                        close(got, expected),
                        "{isa} {n_units} × {n_bits}, scale {scale}: {got} vs {expected}"
                    );
                    assert_eq!(got.to_bits(), portable.to_bits(), "{isa} differs from portable");
                    if fast { tabulated += 1 } else { in_logs += 1 }
                }
            }
        }
        assert!(tabulated > 40 && in_logs > 20, "both ways are tested: {tabulated}, {in_logs}");
    }

    #[test]
    fn terms_agree_with_the_naive_ones_and_their_order() {
        for (n_units, n_bits, scale) in [(23, 3, 1.0), (61, 10, 0.5), (9, 15, 3.0), (4, 11, 5000.0)] {
            let (mut w, b, a) = random(n_units, n_bits, scale, 77);
            let expected = naive_terms(&w, &b, &a);
            let terms = |w: &[f32]| {
                let plan = Enumeration::new(Isa::best(), w, &b, &a);
                let mut terms = vec![0.0; expected.len()];
                for (task, out) in terms.chunks_exact_mut(plan.states_per_task() as usize).enumerate() {
                    log_terms(Isa::best(), &plan, task as u64, &mut Scratch::default(), out);
                }
                terms
            };
            let all_close = |terms: Vec<f64>| terms.iter().zip(&expected).all(|(x, y)| close(*x, *y));
            assert!(all_close(terms(&w)), "{n_units} × {n_bits}, scale {scale}");
            w[0] += 1e-4 * scale as f32;
            assert!(!all_close(terms(&w)), "a wrong weight must be caught");
        }
    }

    #[test]
    fn without_weights_it_is_the_closed_form() {
        for (n_units, n_bits, b, a) in [(784, 14, -2.0f32, 0.3f32), (3, 9, 1e4, -1e4), (784, 6, 200.0, 3.0)] {
            let w = vec![0.0; n_units * n_bits];
            let soft = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
            let exact = n_units as f64 * soft(f64::from(b)) + n_bits as f64 * soft(f64::from(a));
            let (got, _) = enumerated(Isa::best(), &w, &vec![b; n_units], &vec![a; n_bits]);
            assert!(close(got, exact), "{got} vs {exact}");
        }
    }

    #[test]
    fn without_units_to_sum_out_only_the_biases_count() {
        let (got, _) = enumerated(Isa::best(), &[], &[], &[0.5; 9]);
        assert!(close(got, 9.0 * (1.0 + 0.5f64.exp()).ln()), "{got}");
    }

    #[test]
    fn log_z_of_a_hundred_thousand_does_not_overflow() {
        for sign in [1.0, -1.0] {
            let (w, mut b, mut a) = random(30, 10, 1.0, 5);
            b.iter_mut().for_each(|b| *b += 4000.0 * sign);
            a.iter_mut().for_each(|a| *a -= 13_000.0 * sign);
            let (got, fast) = enumerated(Isa::best(), &w, &b, &a);
            assert!(fast && got.abs() > 1e4 && close(got, naive(&w, &b, &a)), "{got}");
        }
    }

    #[test]
    fn the_largest_parameters_give_a_finite_sum() {
        for size in [1e8f32, 1e12, 1e15, 1e20, 1e30, 1e38] {
            // Large are all parameters, either bias, or the weights of one top unit.
            for large in 0..4 {
                let (mut w, mut b, mut a) = random(4, 14, 1.0, 6);
                let grow = |x: &mut f32| *x *= size / 4.0;
                match large {
                    0 => w.iter_mut().chain(&mut b).chain(&mut a).for_each(grow),
                    1 => b.iter_mut().for_each(grow),
                    2 => a.iter_mut().for_each(grow),
                    _ => w.iter_mut().skip(13).step_by(14).for_each(grow),
                }
                let (got, expected) = (enumerated(Isa::best(), &w, &b, &a).0, naive(&w, &b, &a));
                assert!(close(got, expected), "{size} {large}: {got} vs {expected}");
            }
        }
    }

    #[test]
    fn a_wrong_factor_would_be_seen() {
        // Negative control of the comparison: one weight in a thousand off by 1e-4 is far outside the tolerance.
        let (mut w, b, a) = random(61, 10, 0.5, 1);
        let expected = naive(&w, &b, &a);
        w[305] += 1e-4;
        assert!(!close(enumerated(Isa::best(), &w, &b, &a).0, expected));
    }
}
