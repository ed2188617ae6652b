//! Find clusters of packed rows (k-means with starts by k-means++).

use crate::bits::{BitRows, ones};
use crate::rng::{Purpose, stream};
use crate::team;

/// Rows of a block. No result depends on this number.
const BLOCK: usize = 512;
/// The number of starts. The one whose rows are nearest to their centres wins.
const N_STARTS: u64 = 3;
/// The most rounds of each start.
const N_ROUNDS: usize = 30;

/// Points that rows are compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Centres {
    /// The number of centres.
    n: usize,
    /// Twice the value of each column, for all centres: `doubled[column * n + centre]`.
    doubled: Vec<f32>,
    /// The squared norm of each centre.
    norms: Vec<f32>,
}

/// The most centres that rows can be compared with.
pub(crate) const MOST_CENTRES: usize = 128;

impl Centres {
    /// Creates centres from their values, one vector for each.
    pub(crate) fn new(n_columns: usize, values: &[Vec<f32>]) -> Self {
        let n = values.len();
        assert!((1..=MOST_CENTRES).contains(&n), "{n} centres");
        let mut doubled = vec![0.0; n_columns * n];
        for (k, centre) in values.iter().enumerate() {
            centre.iter().enumerate().for_each(|(i, x)| doubled[i * n + k] = 2.0 * x);
        }
        let norms = values.iter().map(|centre| centre.iter().map(|x| x * x).sum()).collect();
        Self { n, doubled, norms }
    }

    /// Returns the nearest centre and its squared distance. The first of several wins.
    ///
    /// # Cost
    /// One addition for each centre and each unit that is on. It does not allocate.
    pub(crate) fn nearest(&self, v: &[u64]) -> (usize, f32) {
        let mut buffer = [0.0f32; MOST_CENTRES];
        let products = &mut buffer[..self.n];
        let mut n_on = 0;
        for i in ones(v) {
            n_on += 1;
            let column = &self.doubled[i * self.n..][..self.n];
            products.iter_mut().zip(column).for_each(|(sum, x)| *sum += x);
        }
        let (mut best, mut least) = (0, f32::INFINITY);
        for (k, (norm, product)) in self.norms.iter().zip(products).enumerate() {
            let distance = norm - *product;
            if distance < least {
                (best, least) = (k, distance);
            }
        }
        (best, (least + n_on as f32).max(0.0))
    }

    /// Returns the nearest centre and its squared distance for each row.
    pub(crate) fn nearest_of(&self, rows: &BitRows) -> Vec<(usize, f32)> {
        let of_block = |block: usize| -> Vec<(usize, f32)> {
            let of_block = block * BLOCK..rows.n_rows().min((block + 1) * BLOCK);
            of_block.map(|r| self.nearest(rows.row(r))).collect()
        };
        team::map_blocks(rows.n_rows().div_ceil(BLOCK), of_block).concat()
    }
}

/// The mean of some rows, and their number.
pub(crate) type Mean = (Vec<f32>, usize);

/// Returns the means of the groups of rows, and the number of rows of each. `group[r] < n`.
pub(crate) fn means(rows: &BitRows, group: &[usize], n: usize) -> Vec<Mean> {
    let mut counts = vec![vec![0u32; rows.n_bits()]; n];
    let mut sizes = vec![0usize; n];
    for (r, &k) in group.iter().enumerate() {
        sizes[k] += 1;
        ones(rows.row(r)).for_each(|i| counts[k][i] += 1);
    }
    let mean = |(counts, size): (Vec<u32>, usize)| {
        (counts.into_iter().map(|c| c as f32 / size.max(1) as f32).collect(), size)
    };
    counts.into_iter().zip(sizes).map(mean).collect()
}

/// Returns the centres of at most `n` clusters of rows, the largest cluster first. Fewer are
/// returned if there are fewer distinct rows. The result is the same for any number of threads.
///
/// # Panics
/// If there are no rows, or if `n` is 0 or larger than 128.
pub(crate) fn k_means(rows: &BitRows, n: usize, seed: u64, index: u64) -> Vec<Vec<f32>> {
    assert!(rows.n_rows() > 0 && (1..=MOST_CENTRES).contains(&n), "rows and centres");
    let mut best: Option<(f64, Vec<Mean>)> = None;
    for start in 0..N_STARTS {
        let mut centres = first_centres(rows, n, seed, index * N_STARTS + start);
        let mut group = Vec::new();
        let mut spread = 0.0;
        for _ in 0..N_ROUNDS {
            let nearest = Centres::new(rows.n_bits(), &centres).nearest_of(rows);
            spread = nearest.iter().map(|(_, distance)| f64::from(*distance)).sum();
            let next: Vec<usize> = nearest.into_iter().map(|(k, _)| k).collect();
            if next == group {
                break;
            }
            let found = means(rows, &next, centres.len());
            group = next;
            for (centre, (mean, size)) in centres.iter_mut().zip(found) {
                if size > 0 {
                    *centre = mean;
                }
            }
        }
        let mut found = means(rows, &group, centres.len());
        found.retain(|(_, size)| *size > 0);
        if best.as_ref().is_none_or(|(least, _)| spread < *least) {
            best = Some((spread, found));
        }
    }
    let mut found = best.expect("at least one start").1;
    // A stable sort: clusters of the same size keep their order.
    found.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    found.into_iter().map(|(mean, _)| mean).collect()
}

/// Draws distinct rows: the first uniformly, each further one with a probability in proportion to its
/// squared distance from the rows drawn so far.
fn first_centres(rows: &BitRows, n: usize, seed: u64, index: u64) -> Vec<Vec<f32>> {
    let mut rng = stream(seed, Purpose::Clusters, index).reader();
    let values = |r: usize| (0..rows.n_bits()).map(|i| f32::from(u8::from(rows.get(r, i)))).collect();
    let hamming = |r: usize, s: usize| -> u32 {
        rows.row(r).iter().zip(rows.row(s)).map(|(x, y)| (x ^ y).count_ones()).sum()
    };
    let mut last = rng.below(rows.n_rows() as u64) as usize;
    let mut centres: Vec<Vec<f32>> = vec![values(last)];
    let mut distances = vec![u32::MAX; rows.n_rows()];
    while centres.len() < n {
        distances.iter_mut().enumerate().for_each(|(r, d)| *d = hamming(r, last).min(*d));
        let total: u64 = distances.iter().map(|&d| u64::from(d)).sum();
        if total == 0 {
            break;
        }
        let mut left = rng.below(total);
        let drawn = distances.iter().position(|&d| match left.checked_sub(u64::from(d)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        last = drawn.expect("a number below the total");
        centres.push(values(last));
    }
    centres
}
