//! Compute the singular values of the weights.

use super::Rbm;

/// The most rounds of an eigenvalue. Two or three are usual.
const MAX_ROUNDS: usize = 50;

impl Rbm {
    /// Returns the singular values of the weights, the largest first. There are as many as units in
    /// the smaller layer.
    ///
    /// Each value belongs to one direction of the visible layer that the model uses. Values far below
    /// the largest have an error of about `1e-8` times the largest.
    ///
    /// # Cost
    /// About `n_visible n_hidden m + 4/3 m³` multiplications, where `m` is the number of units in the
    /// smaller layer.
    ///
    /// ```
    /// use mclv::Rbm;
    /// let rbm = Rbm::new(2, 2, &[0.0, 3.0, -2.0, 0.0], &[0.0; 2], &[0.0; 2])?;
    /// let values = rbm.singular_values();
    /// assert!((values[0] - 3.0).abs() < 1e-12 && (values[1] - 2.0).abs() < 1e-12);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    pub fn singular_values(&self) -> Vec<f64> {
        let (n_visible, n_hidden) = (self.n_visible(), self.n_hidden());
        let weights: Vec<f64> = self.weights().into_iter().map(f64::from).collect();
        let n = n_visible.min(n_hidden);
        // The products of all pairs of rows or of columns, whichever are fewer.
        let mut products = vec![0.0; n * n];
        let mut add = |line: &mut dyn Iterator<Item = f64>| {
            let line: Vec<f64> = line.collect();
            for (products, x) in products.chunks_exact_mut(n).zip(&line) {
                products.iter_mut().zip(&line).for_each(|(sum, y)| *sum += x * y);
            }
        };
        if n_hidden <= n_visible {
            weights.chunks_exact(n_hidden).for_each(|row| add(&mut row.iter().copied()));
        } else {
            (0..n_hidden).for_each(|j| add(&mut weights.iter().skip(j).step_by(n_hidden).copied()));
        }
        let mut values: Vec<f64> =
            symmetric_eigenvalues(products, n).into_iter().map(|x| x.max(0.0).sqrt()).collect();
        values.sort_unstable_by(|a, b| b.total_cmp(a));
        values
    }

    /// Returns the largest singular value that a matrix of independent weights would have, if it had
    /// the size and the root mean square of these weights: `rms × (√n_visible + √n_hidden)`.
    pub fn singular_value_by_chance(&self) -> f64 {
        let weights = self.weights();
        let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
        let rms = (squares / weights.len() as f64).sqrt();
        rms * ((self.n_visible() as f64).sqrt() + (self.n_hidden() as f64).sqrt())
    }
}

/// Returns the eigenvalues of a symmetric `n × n` matrix, in no particular order.
fn symmetric_eigenvalues(matrix: Vec<f64>, n: usize) -> Vec<f64> {
    let (diagonal, beside) = tridiagonal(matrix, n);
    eigenvalues_of_tridiagonal(diagonal, beside)
}

/// Turns a symmetric matrix into a tridiagonal one with the same eigenvalues (Householder). Returns
/// its diagonal, and the elements beside it.
fn tridiagonal(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut beside = vec![0.0; n.saturating_sub(1)];
    for k in 0..n.saturating_sub(1) {
        let m = n - k - 1;
        let mut v: Vec<f64> = (k + 1..n).map(|i| a[i * n + k]).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let pivot = if v[0] > 0.0 { -norm } else { norm };
        beside[k] = pivot;
        v[0] -= pivot;
        let squares: f64 = v.iter().map(|x| x * x).sum();
        if m < 2 || squares == 0.0 {
            beside[k] = a[(k + 1) * n + k];
            continue;
        }
        // A becomes (1 − 2vvᵀ/v²) A (1 − 2vvᵀ/v²) on the rest: A − vwᵀ − wvᵀ.
        let scale = 2.0 / squares;
        let row = |i: usize| &a[(k + 1 + i) * n + k + 1..][..m];
        let mut w: Vec<f64> =
            (0..m).map(|i| scale * row(i).iter().zip(&v).map(|(x, y)| x * y).sum::<f64>()).collect();
        let overlap = 0.5 * scale * w.iter().zip(&v).map(|(x, y)| x * y).sum::<f64>();
        w.iter_mut().zip(&v).for_each(|(w, v)| *w -= overlap * v);
        for i in 0..m {
            let row = &mut a[(k + 1 + i) * n + k + 1..][..m];
            for (x, (v_j, w_j)) in row.iter_mut().zip(v.iter().zip(&w)) {
                *x -= v[i] * w_j + w[i] * v_j;
            }
        }
    }
    ((0..n).map(|k| a[k * n + k]).collect(), beside)
}

/// Returns the eigenvalues of a symmetric tridiagonal matrix (QL with implicit shifts).
fn eigenvalues_of_tridiagonal(mut d: Vec<f64>, mut e: Vec<f64>) -> Vec<f64> {
    let n = d.len();
    e.push(0.0);
    for l in 0..n {
        for _ in 0..MAX_ROUNDS {
            let is_small = |m: &usize| e[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[*m + 1].abs());
            let m = (l..n - 1).find(is_small).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut g = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut is_split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    // The matrix falls into two parts.
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    is_split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
            }
            if !is_split {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use crate::model::Rbm;
    use crate::model::tests::random_rbm;

    /// The singular values by Jacobi's method: pairs of columns are made orthogonal until all are.
    fn by_rotations(rbm: &Rbm) -> Vec<f64> {
        let n = rbm.n_hidden();
        let weights: Vec<f64> = rbm.weights().into_iter().map(f64::from).collect();
        let mut columns: Vec<Vec<f64>> =
            (0..n).map(|j| weights.iter().skip(j).step_by(n).copied().collect()).collect();
        let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        for _ in 0..60 {
            for i in 0..n {
                for j in i + 1..n {
                    let (a, b) = (product(&columns[i], &columns[i]), product(&columns[j], &columns[j]));
                    let angle = 0.5 * (2.0 * product(&columns[i], &columns[j])).atan2(a - b);
                    let (s, c) = angle.sin_cos();
                    for k in 0..columns[i].len() {
                        let (x, y) = (columns[i][k], columns[j][k]);
                        (columns[i][k], columns[j][k]) = (c * x + s * y, c * y - s * x);
                    }
                }
            }
        }
        let mut values: Vec<f64> = columns.iter().map(|x| product(x, x).sqrt()).collect();
        values.sort_unstable_by(|a, b| b.total_cmp(a));
        values.truncate(n.min(rbm.n_visible()));
        values
    }

    #[test]
    fn singular_values_are_those_of_jacobis_rotations() {
        for (n_visible, n_hidden) in [(1, 1), (2, 1), (1, 3), (5, 5), (12, 7), (7, 12), (40, 9)] {
            let rbm = random_rbm(n_visible, n_hidden, 0.7, 31);
            let (values, expected) = (rbm.singular_values(), by_rotations(&rbm));
            assert_eq!(values.len(), n_visible.min(n_hidden));
            for (value, expected) in values.iter().zip(&expected) {
                assert!((value - expected).abs() < 1e-7 * expected.max(1.0), "{values:?} {expected}");
            }
        }
    }

    #[test]
    fn repeated_and_zero_values_are_found() {
        let of = |n: usize, w: &dyn Fn(usize, usize) -> f32| {
            let w: Vec<f32> = (0..n * n).map(|k| w(k / n, k % n)).collect();
            Rbm::new(n, n, &w, &vec![0.0; n], &vec![0.0; n]).unwrap().singular_values()
        };
        assert_eq!(of(4, &|i, j| f32::from(u8::from(i == j))), [1.0; 4]);
        assert_eq!(of(3, &|_, _| 0.0), [0.0; 3]);
        let all_equal = of(4, &|_, _| 0.5);
        assert!((all_equal[0] - 2.0).abs() < 1e-12 && all_equal[1] < 1e-7, "{all_equal:?}");
    }

    /// The control: a model with one strong direction exceeds the value by chance, random weights do
    /// not.
    #[test]
    fn random_weights_stay_near_the_value_by_chance() {
        let random = random_rbm(200, 50, 0.3, 5);
        let ratio = random.singular_values()[0] / random.singular_value_by_chance();
        assert!((0.85..1.1).contains(&ratio), "{ratio}");
        let strong: Vec<f32> = (0..200 * 50).map(|k| if k % 50 < 5 { 1.0 } else { 0.01 }).collect();
        let strong = Rbm::new(200, 50, &strong, &[0.0; 200], &[0.0; 50]).unwrap();
        assert!(strong.singular_values()[0] > 1.3 * strong.singular_value_by_chance());
    }
}
