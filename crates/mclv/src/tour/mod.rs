//! Tours: Gibbs chains that start in a stopping set and end when they are in it again.
//!
//! With `S = H × {all v}`, a start `h_1 ~ π_S ∝ p*(h)` and `ξ` the number of steps until
//! `h_{ξ+1} ∈ H`, Kac's identity says `E[ξ] = Z/Z_S` and `E[Σ_{k≤ξ} f(X(k))] = (Z/Z_S)·E_p[f]`, for
//! a true Gibbs chain and tours that are not cut.
//!
//! # Where this departs from the paper (Savarese, Kakodkar and Ribeiro, AAAI 2018)
//! * **Theorem 1**: the bound as printed equals `B(1 + Σ_{k≥K} p(ξ>k))`, which does not vanish with
//!   `K` and lacks `Z_S`. For `min(ξ, K)` the bias of `Ẑ` is exactly `−Z_S·Σ_{k≥K} p(ξ>k)`; for
//!   dropped tours it is at most `Z_S·B·(E[ξ; ξ>K] + p(ξ>K)·E[ξ | ξ≤K])`. Both need the tail: see
//!   [`Tours::truncation_bias`] and [`TourTheory::truncation_bias`].
//! * **Theorem 2**: its condition holds for every finite RBM. The useful quantity is the rate:
//!   [`TourTheory::tail_rate`], [`TourTheory::epsilon`], or a fit that is labelled empirical,
//!   [`Tours::tail_fit`].
//! * **Theorem 3**: the variance constant is false. [`TourTheory::second_moment_bound`] has the
//!   corrected one, and a test has the counterexample.
//! * **Corollary 1** speaks of reversibility, which is true of the hidden chain only and is not
//!   needed.
//! * **Equation (LV)** writes `∂E(X^{(r)}(k))` inside a sum over `i`; the index of the sum is `k`.
//! * **Stopping only at other states** than the start, as the paper conjectures, is not a stopping
//!   set, and Kac's identity fails.

mod alias;
mod binomial;
mod ccdf;
mod classes;
mod completed;
mod conclusion;
mod engine;
mod estimate;
mod extremes;
mod pilot;
mod record;
mod revisit;
mod set_file;
mod settings;
mod start_table;
mod stopping_set;
mod tail;
#[cfg(test)]
mod tests;
mod theory;
mod walk;
mod witness;

pub use ccdf::{Ccdf, CcdfPoint};
pub use classes::ClassTours;
pub(crate) use completed::WithResiduals;
pub use conclusion::{Conclusion, TourVerdict};
#[cfg(test)]
pub(crate) use engine::N_ENGINES;
pub use engine::{AddStatistics, TourEngine};
pub use estimate::{Estimate, EstimateGuarantee};
pub use extremes::{Extremes, FirstStep};
pub use pilot::PilotSettings;
pub use record::{End, StartedFrom, Tour, Tours};
pub use revisit::TourGroups;
pub use settings::TourSettings;
pub(crate) use start_table::StartTable;
pub use stopping_set::StoppingSet;
pub use tail::{Contribution, TailFit};
pub(crate) use theory::energy_of;
pub use theory::{CutTours, HiddenChain, TourTheory, energy_bound, total_variation};
pub(crate) use walk::{Place, Walk};
pub use witness::Witnesses;
