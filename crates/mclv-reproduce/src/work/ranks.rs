//! Ranks: rank correlation, and the area under the curve of a score.

/// The ranks of values, from 0. Equal values share the mean of their ranks.
fn ranks(x: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
    let mut ranks = vec![0.0; x.len()];
    for group in order.chunk_by(|&a, &b| x[a] == x[b]) {
        let first = order.partition_point(|&k| x[k].total_cmp(&x[group[0]]).is_lt());
        let mean = first as f64 + (group.len() - 1) as f64 / 2.0;
        group.iter().for_each(|&k| ranks[k] = mean);
    }
    ranks
}

/// Spearman's rank correlation of pairs; NaN if one side does not vary.
pub(super) fn spearman(x: &[f64], y: &[f64]) -> f64 {
    let (x, y) = (ranks(x), ranks(y));
    let mean = (x.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum() };
    sum(&x, &y) / (sum(&x, &x) * sum(&y, &y)).sqrt()
}

/// The probability that a score ranks a positive case above a negative one (the area under its
/// curve); equal scores count one half. NaN without cases of both kinds.
pub(super) fn area(score: &[f64], positive: &[bool]) -> f64 {
    let n_positive = positive.iter().filter(|p| **p).count() as f64;
    let n_negative = score.len() as f64 - n_positive;
    let sum: f64 = ranks(score).iter().zip(positive).filter(|(_, p)| **p).map(|(r, _)| r).sum();
    (sum - n_positive * (n_positive - 1.0) / 2.0) / (n_positive * n_negative)
}

/// The share of positive cases among the `n` with the highest scores. Ties are broken evenly: equal
/// scores at the border count with their share of positive cases.
pub(super) fn precision(score: &[f64], positive: &[bool], n: usize) -> f64 {
    let mut sorted = score.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let border = sorted[n - 1];
    let count = |is: &dyn Fn(f64) -> bool| -> (f64, f64) {
        let all = score.iter().zip(positive).filter(|(s, _)| is(**s));
        (all.clone().count() as f64, all.filter(|(_, p)| **p).count() as f64)
    };
    let ((above, right), (tied, of_tied)) = (count(&|s| s > border), count(&|s| s == border));
    (right + (n as f64 - above) * of_tied / tied) / n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_their_definitions() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        assert!((spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 90.0]) - 1.0).abs() < 1e-12);
        assert!((spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert!(spearman(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
        let positive = [true, false, true, false];
        // Of four pairs, three are in order and one is tied.
        assert_eq!(area(&[5.0, 1.0, 3.0, 3.0], &positive), 3.5 / 4.0);
        assert!(area(&[1.0, 2.0], &[true, true]).is_nan());
        assert_eq!(precision(&[5.0, 1.0, 3.0, 3.0], &positive, 1), 1.0);
        assert_eq!(precision(&[5.0, 1.0, 3.0, 3.0], &positive, 2), 0.75);
    }
}
