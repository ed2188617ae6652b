//! Kac's identity itself, without sampling.

use super::cases;

#[test]
fn mean_lengths_and_sums_follow_from_the_set_alone() {
    let mut n_checked = 0;
    for case in cases() {
        let bit = |x: usize, k: usize| (x >> k & 1) as f64;
        // E_p[f] of f = v_0 h_0 + 2 h_1, from the whole space as stopping set: tours of one step
        // from p itself.
        let f = |v: usize, h: usize| bit(v, 0) * bit(h, 0) + 2.0 * bit(h, 1);
        let n_hidden = case.rbm.n_hidden();
        let everything = crate::StoppingSet::new(&crate::bits::BitRows::all_states(n_hidden));
        let (mean_f, _) = case.chain.tours(&everything).unwrap().sum_moments(f);
        for (name, set) in &case.sets {
            let tours = case.chain.tours(set).unwrap();
            let (mean, second) = tours.length_moments();
            let error = mean * tours.set_probability() - 1.0;
            assert!(error.abs() < 1e-12, "{}, {name}: {error:e}", case.name);
            assert!(second >= mean * mean * (1.0 - 1e-12));
            let (sum, _) = tours.sum_moments(f);
            let error = sum * tours.set_probability() / mean_f - 1.0;
            assert!(error.abs() < 1e-12, "{}, {name}: {error:e} for a statistic", case.name);
            n_checked += 1;
        }
        // Control: the identity fails if all states of the set have the same weight.
        let Some((_, set)) = case.sets.iter().find(|(name, _)| *name == "every fifth") else { continue };
        let tours = case.chain.tours(set).unwrap();
        let wrong = tours.length_moments().0 * set.len() as f64 / f64::from(1 << n_hidden) - 1.0;
        assert!(wrong.abs() > 1e-6, "{}", case.name);
    }
    assert!(n_checked > 60, "{n_checked} sets");
}
