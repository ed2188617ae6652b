//! The best tree of pairs (Chow and Liu 1968): each unit depends on one other.

use super::Density;
use mclv::bits::{BitRows, ones};

/// Part of a row that is added to each of the four counts of a pair of units, so that each unit has
/// half a row more in both counts.
const PRIOR: f64 = 0.25;

/// A tree in which each unit depends on its parent.
pub(crate) struct Tree {
    /// For each unit, its parent (itself for the root) and the logarithms of `p(x | parent = y)` at
    /// `2 * y + x`.
    units: Vec<(usize, [f64; 4])>,
}

/// The bits of each column, over the rows.
struct Columns {
    n_rows: usize,
    bits: BitRows,
}

impl Columns {
    fn new(rows: &BitRows) -> Self {
        let mut bits = BitRows::zeros(rows.n_bits(), rows.n_rows());
        for r in 0..rows.n_rows() {
            ones(rows.row(r)).for_each(|i| bits.set(i, r, true));
        }
        Self { n_rows: rows.n_rows(), bits }
    }

    fn count(&self, i: usize, j: usize) -> f64 {
        let both = self.bits.row(i).iter().zip(self.bits.row(j)).map(|(a, b)| (a & b).count_ones());
        f64::from(both.sum::<u32>())
    }

    /// The smoothed shares of rows with `i = a, j = b`, at `2 * a + b`.
    fn pair(&self, i: usize, j: usize) -> [f64; 4] {
        let (both, of_i, of_j) = (self.count(i, j), self.count(i, i), self.count(j, j));
        let n = self.n_rows as f64;
        [n - of_i - of_j + both, of_j - both, of_i - both, both].map(|c| (c + PRIOR) / (n + 4.0 * PRIOR))
    }

    /// The mutual information of two units.
    fn information(&self, i: usize, j: usize) -> f64 {
        let pair = self.pair(i, j);
        let (p, q) = ([pair[0] + pair[1], pair[2] + pair[3]], [pair[0] + pair[2], pair[1] + pair[3]]);
        (0..4).map(|k| pair[k] * (pair[k] / (p[k / 2] * q[k % 2])).ln()).sum()
    }
}

impl Tree {
    /// Finds the spanning tree with the most mutual information (Prim's algorithm).
    pub(crate) fn fit(rows: &BitRows) -> Self {
        let columns = Columns::new(rows);
        let n = rows.n_bits();
        let root = columns.pair(0, 0);
        let (off, on) = ((root[0] + root[1]).ln(), (root[2] + root[3]).ln());
        let mut units = vec![(0, [off, on, off, on]); n];
        // The best edge from each unit to the tree.
        let mut best: Vec<(f64, usize)> = (0..n).map(|j| (columns.information(0, j), 0)).collect();
        let mut is_out: Vec<bool> = (0..n).map(|j| j > 0).collect();
        for _ in 1..n {
            let next = (0..n).filter(|&j| is_out[j]).max_by(|&a, &b| best[a].0.total_cmp(&best[b].0));
            let unit = next.expect("a unit is out");
            let parent = best[unit].1;
            let pair = columns.pair(parent, unit);
            let given = |y: usize, x: usize| (pair[2 * y + x] / (pair[2 * y] + pair[2 * y + 1])).ln();
            units[unit] = (parent, [given(0, 0), given(0, 1), given(1, 0), given(1, 1)]);
            is_out[unit] = false;
            for j in (0..n).filter(|&j| is_out[j]) {
                let information = columns.information(unit, j);
                if information > best[j].0 {
                    best[j] = (information, unit);
                }
            }
        }
        Self { units }
    }
}

impl Density for Tree {
    fn log_likelihood(&self, row: &[u64]) -> f64 {
        let is_on = |i: usize| (row[i / 64] >> (i % 64) & 1) as usize;
        let terms = self.units.iter().enumerate();
        terms.map(|(unit, (parent, log_p))| log_p[2 * is_on(*parent) + is_on(unit)]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mclv::rng::{Purpose, stream};

    #[test]
    fn a_chain_is_found() {
        // Each unit is a copy of the one before it, with an error in one row of ten.
        let mut rng = stream(5, Purpose::Estimator, 0).reader();
        let mut rows = BitRows::zeros(3000, 5);
        for r in 0..rows.n_rows() {
            let mut on = rng.uniform() < 0.5;
            for unit in [2, 0, 4, 1, 3] {
                rows.set(r, unit, on);
                on ^= rng.uniform() < 0.1;
            }
        }
        let parents: Vec<usize> = Tree::fit(&rows).units.iter().map(|(parent, _)| *parent).collect();
        assert_eq!(parents, [0, 4, 0, 1, 0]);
    }
}
