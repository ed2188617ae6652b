//! Summarises tours for a page.

use mclv::StoppingSet;
use mclv::tour::{Ccdf, Conclusion, TailFit, Tours};
use mclv_report::tours::{Tail, Toured};

/// Neighbouring lengths of a drawn tail differ by at least this factor.
const THINNING: f64 = 1.03;
/// Number of line segments of a fitted tail.
const FITTED_LINES: i32 = 24;

/// The results of the tours of a stopping set.
pub fn toured(name: &str, set: &StoppingSet, tours: &Tours, conclusion: Conclusion) -> Toured {
    Toured {
        n_states: set.len(),
        log_z_s: tours.log_z_s(),
        n_tours: tours.n_tours(),
        n_complete: tours.n_complete(),
        n_own_start: tours.n_own_start(),
        n_elsewhere: tours.n_elsewhere(),
        n_one_step: tours.n_one_step(),
        mean_length: tours.mean_length(),
        longest: tours.longest(),
        tail: tail(name, tours),
        conclusion,
        n_steps: tours.n_steps(),
        seconds: tours.seconds(),
    }
}

/// The tail function of the lengths of tours, and the geometric tail fitted to it.
pub fn tail(name: &str, tours: &Tours) -> Tail {
    let (ccdf, fit) = (tours.ccdf(), tours.tail_fit());
    let fitted = fit.filter(|fit| fit.rate > 0.0).map(|fit| fitted(&ccdf, &fit));
    Tail { name: name.into(), ccdf: ccdf.thinned(THINNING), fit, fitted }
}

/// The fitted tail, over the lengths that it was fitted to.
fn fitted(ccdf: &Ccdf, fit: &TailFit) -> Vec<(f64, f64)> {
    let Some(start) = ccdf.at(fit.threshold.max(1)) else { return Vec::new() };
    let last = ccdf.known_up_to.or(ccdf.points.last().map(|p| p.k)).unwrap_or(fit.threshold);
    let from = f64::from(fit.threshold.max(1));
    let ratio = (f64::from(last.max(fit.threshold + 1)) / from).powf(1.0 / f64::from(FITTED_LINES));
    let at = |k: i32| from * ratio.powi(k);
    (0..=FITTED_LINES).map(|k| (at(k), start.p * fit.rate.powf(at(k) - from))).collect()
}
