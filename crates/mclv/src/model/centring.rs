//! Convert between the plain and the centred parameters of a model.
//!
//! The centred energy subtracts offsets `μ` and `λ` from the states (Melchior, Fischer and Wiskott
//! 2016):
//!
//! ```text
//! E'(v,h) = −(v−μ)ᵀW(h−λ) − βᵀ(v−μ) − αᵀ(h−λ)
//! ```
//! It is the same family of models, `b = β − Wλ` and `a = α − Wᵀμ`, with a better conditioned
//! gradient.

use super::Rbm;
use crate::{Error, Result};

/// The offsets of a centred model.
#[derive(Clone, Debug, PartialEq)]
pub struct Offsets {
    /// The offsets `μ`, one for each visible unit.
    pub visible: Vec<f64>,
    /// The offsets `λ`, one for each hidden unit.
    pub hidden: Vec<f64>,
}

impl Offsets {
    /// Returns the centred biases `(β, α)` of a model under these offsets.
    ///
    /// # Errors
    /// If there is not one offset for each unit.
    pub fn centred_biases(&self, rbm: &Rbm) -> Result<(Vec<f64>, Vec<f64>)> {
        self.shifted(rbm, 1.0)
    }

    /// Returns the plain model whose weights are `rbm`'s and whose *centred* biases are `rbm`'s
    /// biases.
    ///
    /// ```
    /// use mclv::{Offsets, Rbm};
    /// let rbm = Rbm::new(2, 1, &[1.0, -1.0], &[0.5, 0.0], &[0.25])?;
    /// let offsets = Offsets { visible: vec![0.5, 0.25], hidden: vec![0.5] };
    /// let (beta, alpha) = offsets.centred_biases(&rbm)?;
    /// assert_eq!((beta, alpha), (vec![1.0, -0.5], vec![0.5]));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not one offset for each unit.
    pub fn uncentred(&self, rbm: &Rbm) -> Result<Rbm> {
        let (b, a) = self.shifted(rbm, -1.0)?;
        let narrow = |x: Vec<f64>| -> Vec<f32> { x.into_iter().map(|x| x as f32).collect() };
        Rbm::new(rbm.n_visible(), rbm.n_hidden(), &rbm.weights(), &narrow(b), &narrow(a))
    }

    /// Returns `(b + sign·Wλ, a + sign·Wᵀμ)`.
    fn shifted(&self, rbm: &Rbm, sign: f64) -> Result<(Vec<f64>, Vec<f64>)> {
        for (what, expected, got) in [
            ("visible offsets", rbm.n_visible(), self.visible.len()),
            ("hidden offsets", rbm.n_hidden(), self.hidden.len()),
        ] {
            if expected != got {
                return Err(Error::ShapeMismatch { what: what.into(), expected, got });
            }
        }
        let mut b: Vec<f64> = rbm.visible_bias().iter().map(|&b| f64::from(b)).collect();
        let mut a: Vec<f64> = rbm.hidden_bias().iter().map(|&a| f64::from(a)).collect();
        for (i, row) in rbm.weights().chunks_exact(rbm.n_hidden()).enumerate() {
            for (j, &w) in row.iter().enumerate() {
                b[i] += sign * f64::from(w) * self.hidden[j];
                a[j] += sign * f64::from(w) * self.visible[i];
            }
        }
        Ok((b, a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rbm::tests::{all_states, random_rbm};

    /// The centred energy differs from the plain one by the same constant for every state.
    #[test]
    fn the_centred_energy_is_the_energy_up_to_a_constant() {
        let rbm = random_rbm(4, 3, 1.0, 31);
        let offsets = Offsets { visible: vec![0.1, 0.7, 0.4, 0.9], hidden: vec![0.3, 0.5, 0.8] };
        let (beta, alpha) = offsets.centred_biases(&rbm).unwrap();
        let w = rbm.weights();
        let (vs, hs) = (all_states(4), all_states(3));
        let mut constant = None;
        for s in 0..16 {
            for t in 0..8 {
                let v: Vec<f64> =
                    (0..4).map(|i| f64::from(u8::from(vs.get(s, i))) - offsets.visible[i]).collect();
                let h: Vec<f64> =
                    (0..3).map(|j| f64::from(u8::from(hs.get(t, j))) - offsets.hidden[j]).collect();
                let mut centred = 0.0;
                for i in 0..4 {
                    centred -= beta[i] * v[i];
                    for j in 0..3 {
                        centred -= v[i] * f64::from(w[i * 3 + j]) * h[j];
                    }
                }
                for j in 0..3 {
                    centred -= alpha[j] * h[j];
                }
                let difference = centred - rbm.energy(&vs.select(&[s]), &hs.select(&[t])).unwrap()[0];
                assert!((difference - *constant.get_or_insert(difference)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn going_there_and_back_changes_nothing() {
        let rbm = random_rbm(4, 3, 1.0, 32);
        let offsets = Offsets { visible: vec![0.5; 4], hidden: vec![0.25; 3] };
        let (beta, alpha) = offsets.centred_biases(&rbm).unwrap();
        let narrow = |x: &[f64]| -> Vec<f32> { x.iter().map(|&x| x as f32).collect() };
        let centred = Rbm::new(4, 3, &rbm.weights(), &narrow(&beta), &narrow(&alpha)).unwrap();
        let back = offsets.uncentred(&centred).unwrap();
        for (x, y) in back
            .visible_bias()
            .iter()
            .chain(back.hidden_bias())
            .zip(rbm.visible_bias().iter().chain(rbm.hidden_bias()))
        {
            assert!((x - y).abs() < 1e-6);
        }
        assert!(Offsets { visible: vec![], hidden: vec![] }.centred_biases(&rbm).is_err());
    }
}
