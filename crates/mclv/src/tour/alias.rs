//! Draw from a finite distribution in constant time (Walker 1977, as built by Vose 1991).

use crate::rng::Draws;

/// A table for drawing index `i` with probability proportional to its weight.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Alias {
    /// Probability of keeping the column drawn, in units of 2⁻³².
    keep: Vec<u32>,
    other: Vec<u32>,
}

impl Alias {
    /// Builds the table. Weights must be finite, not negative, and not all zero.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let n = weights.len();
        let scale = n as f64 / weights.iter().sum::<f64>();
        let mut share: Vec<f64> = weights.iter().map(|w| w * scale).collect();
        let mut other: Vec<u32> = (0..n as u32).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n as u32).partition(|&i| share[i as usize] < 1.0);
        while let (Some(s), Some(&l)) = (small.pop(), large.last()) {
            other[s as usize] = l;
            share[l as usize] -= 1.0 - share[s as usize];
            if share[l as usize] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        // The remaining shares are 1 up to rounding.
        for i in small.into_iter().chain(large) {
            share[i as usize] = 1.0;
        }
        let keep = share.iter().map(|&p| (p * 4_294_967_296.0) as u32).collect();
        Self { keep, other }
    }

    /// Returns an index, from the first block of `draws`. Probabilities are accurate to 2⁻³².
    pub(crate) fn draw(&self, draws: Draws) -> usize {
        let [a, b, c, _] = draws.block(0);
        let wide = u128::from(u64::from(a) << 32 | u64::from(b)) * self.keep.len() as u128;
        let column = (wide >> 64) as usize;
        // A full column keeps all but one draw in 2³², and its `other` is itself.
        if c < self.keep[column] { column } else { self.other[column] as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    /// χ² of 100,000 draws over 6 outcomes against 5 degrees of freedom; 30.9 is the 1 − 1e-5
    /// quantile.
    #[test]
    fn frequencies_follow_the_weights_and_wrong_ones_are_caught() {
        let weights = [5.0, 0.0, 1.0, 0.25, 3.0, 7.0, 0.5];
        let alias = Alias::new(&weights);
        let n = 100_000;
        let mut counts = [0.0; 7];
        for t in 0..n {
            counts[alias.draw(stream(1, Purpose::SelfTest, 5).at(t))] += 1.0;
        }
        let chi2 = |weights: &[f64]| -> f64 {
            let total: f64 = weights.iter().sum();
            let term = |(c, w): (&f64, &f64)| {
                let expected = f64::from(n) * w / total;
                if *w == 0.0 { 0.0 } else { (c - expected).powi(2) / expected }
            };
            counts.iter().zip(weights).map(term).sum()
        };
        assert_eq!(counts[1], 0.0);
        assert!(chi2(&weights) < 30.9, "{}", chi2(&weights));
        assert!(chi2(&[5.0, 0.0, 1.0, 0.25, 3.0, 7.5, 0.5]) > 30.9, "a wrong weight is seen");
    }

    #[test]
    fn one_outcome_is_certain() {
        assert_eq!(Alias::new(&[0.3]).draw(stream(1, Purpose::SelfTest, 6).at(0)), 0);
    }
}
