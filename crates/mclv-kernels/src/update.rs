//! Update parameters element by element: centring, SGD with momentum, Adam, decay.
//!
//! The functions are plain loops. Compiled for each instruction set, they vectorise by themselves,
//! with the same results.

use crate::arch::Simd;
use crate::isa::kernels;

/// The decay of parameters in a gradient step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decay {
    /// The strength of L1 decay: `−l1·sign(x)` is added to the gradient.
    pub l1: f32,
    /// The strength of L2 decay: `−l2·x` is added to the gradient.
    pub l2: f32,
}

impl Decay {
    #[inline(always)]
    fn apply(self, gradient: f32, x: f32) -> f32 {
        let sign = f32::from(i8::from(x > 0.0) - i8::from(x < 0.0));
        x.mul_add(-self.l2, sign.mul_add(-self.l1, gradient))
    }
}

/// The constants of one Adam step (Kingma and Ba 2015), including bias corrections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// The learning rate divided by the correction of the first moment.
    pub rate: f32,
    /// The decay of the first moment.
    pub beta1: f32,
    /// The decay of the second moment.
    pub beta2: f32,
    /// The correction of the second moment, `1/√(1 − β₂ᵗ)`.
    pub correction2: f32,
    /// A small number that keeps the quotient finite.
    pub epsilon: f32,
}

#[inline(always)]
fn add_scaled_generic<S: Simd>(y: &mut [f32], scale: f32, x: &[f32]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x.mul_add(scale, *y);
    }
}

#[inline(always)]
fn centre_generic<S: Simd>(
    w: &mut [f32],
    (mu, b): (&[f32], &[f32]),
    (a, lambda): (&[f32], &[f32]),
    of_a: &mut [f32],
    of_b: &mut [f32],
) {
    let (a, lambda, of_a) = (a.as_chunks::<8>().0, lambda.as_chunks::<8>().0, of_a.as_chunks_mut::<8>().0);
    for ((row, (&mu, &b)), of_b) in w.chunks_exact_mut(8 * a.len()).zip(mu.iter().zip(b)).zip(of_b) {
        let mut sums = [0.0f32; 8];
        let cells = row.as_chunks_mut::<8>().0.iter_mut().zip(a.iter().zip(lambda)).zip(&mut *of_a);
        for ((w, (a, lambda)), of_a) in cells {
            for l in 0..8 {
                w[l] = lambda[l].mul_add(-b, a[l].mul_add(-mu, w[l]));
                sums[l] = w[l].mul_add(lambda[l], sums[l]);
                of_a[l] = w[l].mul_add(mu, of_a[l]);
            }
        }
        *of_b += sums.iter().sum::<f32>();
    }
}

#[inline(always)]
fn dot_generic<S: Simd>(x: &[f32], y: &[f32]) -> f64 {
    // Eight interleaved sums, so that it vectorises and its order is fixed.
    let mut sums = [0.0f32; 8];
    let (x8, x_tail) = x.as_chunks::<8>();
    let (y8, y_tail) = y.as_chunks::<8>();
    for (x, y) in x8.iter().zip(y8) {
        for l in 0..8 {
            sums[l] = x[l].mul_add(y[l], sums[l]);
        }
    }
    let tail: f64 = x_tail.iter().zip(y_tail).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
    sums.iter().map(|&s| f64::from(s)).sum::<f64>() + tail
}

#[inline(always)]
fn sgd_generic<S: Simd>(
    x: &mut [f32],
    gradient: &[f32],
    velocity: &mut [f32],
    rate: f32,
    momentum: f32,
    decay: Decay,
) {
    for ((x, &g), v) in x.iter_mut().zip(gradient).zip(velocity) {
        *v = v.mul_add(momentum, rate * decay.apply(g, *x));
        *x += *v;
    }
}

#[inline(always)]
fn plain_sgd_generic<S: Simd>(x: &mut [f32], gradient: &[f32], rate: f32, decay: Decay) {
    for (x, &g) in x.iter_mut().zip(gradient) {
        *x = decay.apply(g, *x).mul_add(rate, *x);
    }
}

#[inline(always)]
fn adam_generic<S: Simd>(
    x: &mut [f32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
    step: AdamStep,
    decay: Decay,
) {
    for (((x, &g), m), s) in x.iter_mut().zip(gradient).zip(first).zip(second) {
        let g = decay.apply(g, *x);
        *m = step.beta1.mul_add(*m - g, g);
        *s = step.beta2.mul_add(*s - g * g, g * g);
        *x += step.rate * *m / (s.sqrt() * step.correction2 + step.epsilon);
    }
}

kernels! {
    /// Computes `y += scale · x`.
    pub fn add_scaled(y: &mut [f32], scale: f32, x: &[f32]) = add_scaled_generic;

    /// Centres some rows of a gradient: `w −= μ aᵀ + b λᵀ`, then adds `wᵀμ` to `of_a` and `wλ` to
    /// `of_b`.
    ///
    /// `mu`, `b` and `of_b` have one number for each row; `a`, `lambda` and `of_a` have one for
    /// each column. The number of columns is a multiple of 8.
    pub fn centre(w: &mut [f32], rows: (&[f32], &[f32]), columns: (&[f32], &[f32]), of_a: &mut [f32], of_b: &mut [f32]) = centre_generic;

    /// Returns `Σ x·y`, summed in single precision in eight parts.
    ///
    /// ```
    /// use mclv_kernels::{Isa, update::dot};
    /// assert_eq!(dot(Isa::best(), &[1.0; 11], &[2.0; 11]), 22.0);
    /// ```
    pub fn dot(x: &[f32], y: &[f32]) -> f64 = dot_generic;

    /// Makes a step with momentum: `velocity = momentum·velocity + rate·(gradient + decay)`, then
    /// `x += velocity`.
    pub fn sgd(x: &mut [f32], gradient: &[f32], velocity: &mut [f32], rate: f32, momentum: f32, decay: Decay) = sgd_generic;

    /// Makes a step without momentum: `x += rate·(gradient + decay)`.
    pub fn plain_sgd(x: &mut [f32], gradient: &[f32], rate: f32, decay: Decay) = plain_sgd_generic;

    /// Makes one step of Adam, uphill.
    pub fn adam(
        x: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
        step: AdamStep,
        decay: Decay,
    ) = adam_generic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::rng::Stream;
    use crate::testing::{normals, on_every_isa};

    fn numbers(n: usize, id: u64) -> Vec<f32> {
        normals(&mut Stream::new(8, id).reader(), n, 1.0)
    }

    #[test]
    fn all_instruction_sets_agree_to_the_bit() {
        for n in [0, 1, 7, 8, 33, 130] {
            on_every_isa(|isa| {
                let (mut x, g, mut v, mut s) = (numbers(n, 0), numbers(n, 1), numbers(n, 2), numbers(n, 3));
                s.iter_mut().for_each(|s| *s *= *s);
                let decay = Decay { l1: 0.01, l2: 0.1 };
                let step = AdamStep { rate: 0.1, beta1: 0.9, beta2: 0.99, correction2: 2.0, epsilon: 1e-8 };
                sgd(isa, &mut x, &g, &mut v, 0.1, 0.5, decay);
                plain_sgd(isa, &mut x, &g, 0.1, decay);
                adam(isa, &mut x, &g, &mut v, &mut s, step, decay);
                add_scaled(isa, &mut x, 0.3, &v);
                (
                    x,
                    v,
                    s.iter().map(|s| s.to_bits()).collect::<Vec<_>>(),
                    dot(isa, &g, &numbers(n, 4)).to_bits(),
                )
            });
        }
    }

    #[test]
    fn centring_agrees_to_the_bit_and_follows_its_formulas() {
        let (n_rows, n_columns) = (5, 16);
        let (mu, b, a, lambda) = (numbers(5, 1), numbers(5, 2), numbers(16, 3), numbers(16, 4));
        let (w, of_a, of_b) = on_every_isa(|isa| {
            let (mut w, mut of_a, mut of_b) = (numbers(80, 0), vec![0.5; 16], vec![0.25; 5]);
            centre(isa, &mut w, (&mu, &b), (&a, &lambda), &mut of_a, &mut of_b);
            (w, of_a, of_b)
        });
        let before = numbers(80, 0);
        for i in 0..n_rows {
            for j in 0..n_columns {
                let expected = before[i * n_columns + j] - mu[i] * a[j] - b[i] * lambda[j];
                assert!((w[i * n_columns + j] - expected).abs() < 1e-5);
            }
            let sum: f32 = (0..n_columns).map(|j| w[i * n_columns + j] * lambda[j]).sum();
            assert!((of_b[i] - 0.25 - sum).abs() < 1e-5);
        }
        for j in 0..n_columns {
            let sum: f32 = (0..n_rows).map(|i| w[i * n_columns + j] * mu[i]).sum();
            assert!((of_a[j] - 0.5 - sum).abs() < 1e-5);
        }
    }

    #[test]
    fn steps_are_the_textbook_formulas() {
        let isa = Isa::best();
        let (mut x, mut v) = ([1.0], [0.5]);
        sgd(isa, &mut x, &[2.0], &mut v, 0.1, 0.9, Decay { l1: 0.5, l2: 0.25 });
        assert!((v[0] - (0.45 + 0.1 * (2.0 - 0.5 - 0.25))).abs() < 1e-6 && (x[0] - 1.0 - v[0]).abs() < 1e-6);
        let (mut x, mut m, mut s) = ([0.0], [0.0], [0.0]);
        // The first step of Adam goes `rate` uphill whatever the gradient.
        let step = AdamStep {
            rate: 0.01 / 0.1,
            beta1: 0.9,
            beta2: 0.999,
            correction2: (1.0f32 / 0.001).sqrt(),
            epsilon: 1e-8,
        };
        adam(isa, &mut x, &[123.0], &mut m, &mut s, step, Decay::default());
        assert!((x[0] - 0.01).abs() < 1e-6, "{}", x[0]);
    }
}
