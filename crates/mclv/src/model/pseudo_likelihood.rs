//! Compute the pseudo-likelihood exactly: how well each unit is predicted by all the others.

use super::Rbm;
use crate::Result;
use crate::data::Rows;
use crate::team;
use mclv_kernels::Isa;
use mclv_kernels::math::softplus_sum;

impl Rbm {
    /// Returns the pseudo-log-likelihood `Σ_i log p(v_i | v_{−i})` of each row.
    ///
    /// The value is deterministic and covers all units, unlike the estimate from one flipped unit
    /// that other packages print. For a grey value `v_i` the term is
    /// `v_i log p(1|…) + (1 − v_i) log p(0|…)`. The value needs no `Z`, is comparable between
    /// models on the same data, and is *not* the likelihood.
    ///
    /// # Cost
    /// `n_visible · n_hidden` softplus per row (twice that for grey values), in `f64`.
    ///
    /// ```
    /// use mclv::{Rbm, data::Rows, bits::BitRows};
    /// // Independent units: the pseudo-likelihood is the likelihood.
    /// let rbm = Rbm::new(3, 1, &[0.0; 3], &[0.0; 3], &[0.0])?;
    /// let pl = rbm.pseudo_log_likelihood(&Rows::Bits(BitRows::zeros(1, 3)))?;
    /// assert!((pl[0] + 3.0 * 2f64.ln()).abs() < 1e-12);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn pseudo_log_likelihood(&self, v: &Rows) -> Result<Vec<f64>> {
        self.check_width(v.n_columns())?;
        let (n_visible, n_hidden) = (self.n_visible(), self.n_hidden());
        let w: Vec<f64> = self.weights().into_iter().map(f64::from).collect();
        let isa = Isa::best();
        let row = |(inputs, moved): &mut (Vec<f64>, Vec<f64>), r: usize| {
            inputs.clear();
            inputs.extend(self.hidden_bias().iter().map(|&a| f64::from(a)));
            for i in 0..n_visible {
                let x = f64::from(v.get(r, i));
                if x != 0.0 {
                    inputs.iter_mut().zip(&w[i * n_hidden..]).for_each(|(h, w)| *h += x * w);
                }
            }
            let here = softplus_sum(isa, inputs);
            // Σ softplus with unit i moved by `by`.
            let mut with = |i: usize, by: f64| {
                if by == 0.0 {
                    return here;
                }
                moved.clear();
                moved.extend(inputs.iter().zip(&w[i * n_hidden..]).map(|(h, w)| h + by * w));
                softplus_sum(isa, moved)
            };
            let mut sum = 0.0;
            for i in 0..n_visible {
                let x = f64::from(v.get(r, i));
                // The log-odds of v_i = 1 against v_i = 0.
                let odds = f64::from(self.visible_bias()[i]) + with(i, 1.0 - x) - with(i, -x);
                sum += x * odds - odds.max(0.0) - (-odds.abs()).exp().ln_1p();
            }
            sum
        };
        team::try_blocks_with(v.n_rows(), Default::default, |memory, r| Ok(row(memory, r)))
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{RealRows, Rows};
    use crate::model::rbm::tests::{all_states, random_rbm};

    #[test]
    fn it_is_the_sum_of_conditionals_by_enumeration() {
        let rbm = random_rbm(6, 4, 1.5, 21);
        let states = all_states(6);
        let f = rbm.free_energy(&Rows::Bits(states.clone())).unwrap();
        let pl = rbm.pseudo_log_likelihood(&Rows::Bits(states)).unwrap();
        for s in 0..64usize {
            let conditional = |i: usize| -(f[s] - f[s ^ 1 << i]).exp().ln_1p();
            let naive: f64 = (0..6).map(conditional).sum();
            assert!((pl[s] - naive).abs() < 1e-10, "{} vs {naive}", pl[s]);
        }
    }

    #[test]
    fn a_grey_unit_averages_its_two_values() {
        let rbm = random_rbm(1, 3, 1.0, 22);
        let both = rbm.pseudo_log_likelihood(&Rows::Bits(all_states(1))).unwrap();
        let grey = rbm.pseudo_log_likelihood(&Rows::Reals(RealRows::new(1, vec![0.25]))).unwrap();
        assert!((grey[0] - (0.75 * both[0] + 0.25 * both[1])).abs() < 1e-12);
    }
}
