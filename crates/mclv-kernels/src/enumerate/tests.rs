//! Enumerations against naive sums and closed forms.

use super::*;
use crate::Isa;
use crate::rng::Stream;
use crate::testing::{normals, softplus};

/// `aᵀy + Σ ln(1 + e^{b + Wy})` of each state, one unit at a time.
fn naive_terms(w: &[f32], b: &[f32], a: &[f32]) -> Vec<f64> {
    let n = a.len();
    (0..1u64 << n)
        .map(|y| {
            let on = |j: &usize| y >> j & 1 == 1;
            let linear: f64 = (0..n).filter(on).map(|j| f64::from(a[j])).sum();
            let soft = b.iter().enumerate().map(|(i, &b)| {
                let x = f64::from(b) + (0..n).filter(on).map(|j| f64::from(w[i * n + j])).sum::<f64>();
                softplus(x)
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
    let mut draw = |n: usize| normals(&mut rng, n, scale);
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
        let exact = n_units as f64 * softplus(f64::from(b)) + n_bits as f64 * softplus(f64::from(a));
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
    // Negative control of the comparison: one weight in a thousand off by 1e-4 is far outside the
    // tolerance.
    let (mut w, b, a) = random(61, 10, 0.5, 1);
    let expected = naive(&w, &b, &a);
    w[305] += 1e-4;
    assert!(!close(enumerated(Isa::best(), &w, &b, &a).0, expected));
}
