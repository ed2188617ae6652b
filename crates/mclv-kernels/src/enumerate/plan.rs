//! Prepare an enumeration: choose which bits are tabulated, and fill the tables.

use super::Scaled;
use crate::math;

/// The largest `Σ|W_ij|` over low and middle bits for which products stay within `f64`.
pub const MAX_RANGE: f64 = 600.0;

/// The largest input `|b_i| + Σ_j |W_ij|` from which whole octaves are split off without loss.
const MAX_INPUT: f64 = 1e9;

/// Between two splits of the exponent, the product of factors may reach e^±this.
const SEGMENT_RANGE: f64 = 650.0;

/// The numbers of middle values and of low states that are processed together, limited by the
/// registers.
pub(super) const HIGHS: usize = 4;
pub(super) const LOWS: usize = 8;

pub(super) const MAX_LOW_BITS: usize = 6;
const MAX_MIDDLE_BITS: usize = 7;
const MIN_LOW_BITS: usize = 3;
const MIN_MIDDLE_BITS: usize = 2;

/// A prepared enumeration: its tables, and the division of states into tasks.
#[derive(Clone, Debug)]
pub struct Enumeration {
    pub(super) n_bits: usize,
    pub(super) n_units: usize,
    pub(super) low_bits: usize,
    pub(super) middle_bits: usize,
    /// `W` by enumerated unit: n × m.
    w: Vec<f64>,
    pub(super) bias: Vec<f64>,
    bias_bits: Vec<f64>,
    /// For each unit, the least and greatest sum of low and middle weights.
    pub(super) least: Vec<f64>,
    pub(super) greatest: Vec<f64>,
    /// The ends of the runs of units after which products are split. If empty, states are summed in
    /// log space.
    pub(super) segments: Vec<usize>,
    /// `[middle / 4][unit]`, four middle values each: `e^{Σ W}`, or `Σ W` in log space.
    pub(super) middle: Vec<[f64; HIGHS]>,
    /// `[low / 8][unit]`, eight low states each.
    pub(super) low: Vec<[f64; LOWS]>,
    /// `e^{aᵀy}` of the low and the middle bits.
    pub(super) low_weight: Vec<Scaled>,
    pub(super) middle_weight: Vec<Scaled>,
}

impl Enumeration {
    /// Prepares the sum over `bias_bits.len()` enumerated units. `weights` is (summed-out ×
    /// enumerated), row-major.
    ///
    /// # Panics
    /// If the sizes do not fit, or if there are more than 63 units to enumerate.
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

    /// Computes `Σ_j W_ij` over the set bits of `state`, where bit 0 is unit `units.start`.
    pub(super) fn sums(&self, units: std::ops::Range<usize>, state: u64, out: &mut [f64]) {
        out.fill(0.0);
        for j in units.clone().filter(|j| state >> (j - units.start) & 1 == 1) {
            for (x, w) in out.iter_mut().zip(&self.w[j * self.n_units..]) {
                *x += w;
            }
        }
    }

    /// Returns `Σ_j a_j` over the set bits of `state`.
    pub(super) fn linear(&self, units: std::ops::Range<usize>, state: u64) -> f64 {
        units.clone().filter(|j| state >> (j - units.start) & 1 == 1).map(|j| self.bias_bits[j]).sum()
    }

    /// The number of independent parts (tasks) in which the states are summed.
    pub fn n_tasks(&self) -> u64 {
        1 << (self.n_bits - self.low_bits - self.middle_bits)
    }

    /// The number of states that one task sums.
    pub fn states_per_task(&self) -> u64 {
        1 << (self.low_bits + self.middle_bits)
    }

    /// Returns true if the weights allow products of tabulated exponentials. Otherwise tasks run in
    /// log space.
    pub fn is_tabulated(&self) -> bool {
        !self.segments.is_empty()
    }
}
