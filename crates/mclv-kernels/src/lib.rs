//! Packed-bit, vectorised kernels for binary energy-based models.
//!
//! This crate handles bits, floats and slices; it does not know what a Boltzmann machine is. It is
//! the only crate of the workspace in which `unsafe` may appear. All public functions are safe to
//! call.
//!
//! * [`bits`]: rows of packed 0/1 states.
//! * [`rng`]: counter-based random numbers (Philox4x32-10), the same on every thread.
//! * [`Isa`]: the instruction set that the kernels use, detected once at run time.
//! * [`math`]: `exp`, `sigmoid`, `softplus` over slices, in `f32` and `f64`.
//! * [`tiles`]: the weight layout that all layer kernels read.
//! * [`layer`]: one layer given the other (inputs, means, Bernoulli bits) and the outer products of
//!   a gradient.
//! * [`update`]: gradient steps.
//! * [`enumerate`]: sums of products over all `2^n` states.
//! * [`moments`]: averages of a unit over all `2^n` states, with each bit.
//!
//! # Reproducibility
//!
//! Every kernel is written once, over eight `f32` or four `f64` lanes, and compiled for each
//! instruction set. All builds do the same operations in the same order, fused multiply-adds
//! included. So results are **bit-identical** between the portable and the AVX2 path, and do not
//! depend on the number of threads.

mod arch;
pub mod bits;
pub mod enumerate;
mod isa;
pub mod layer;
pub mod math;
pub mod moments;
pub mod rng;
#[cfg(test)]
mod testing;
pub mod tiles;
pub mod update;

pub use isa::Isa;

/// Asks the CPU to bring `values` into its cache. Results do not depend on it.
///
/// Rows at random places of a large array are then fetched side by side, not one after the other.
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(values)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies within `values`, and every x86-64 CPU has this instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
