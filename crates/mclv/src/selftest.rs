//! Checks of the program on this machine. The first group tests kernels, random numbers and closed
//! forms. The second compares the sampler, tours, AIS and the gradient estimators with enumeration.

mod statistical;

use crate::ModelFile;
use crate::bits::BitRows;
use crate::data::{self, DataSpec, Rows};
use crate::model::Rbm;
use crate::partition;
use crate::progress::Silent;
use crate::rng::{Purpose, Stream, stream};
use crate::statistics::largest;
use mclv_kernels::Isa;
use mclv_kernels::enumerate::{self, Enumeration};
use mclv_kernels::layer::{self, Affine, Scratch, States};
use mclv_kernels::math::softplus_f64;
use mclv_kernels::tiles::Tiles;
use serde::Serialize;
use std::time::Instant;

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The statement that is checked.
    pub name: &'static str,
    /// True if the statement holds.
    pub passed: bool,
    /// What was measured.
    pub detail: String,
    /// The probability that the check fails on a correct machine for a random seed; 0 for a check
    /// without random numbers. The seeds are fixed, so on a correct machine the check always
    /// passes.
    pub false_alarm: f64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The measured values: `Ok` if the check passed, `Err` if it failed.
type Finding = Result<String, String>;

/// Runs all checks. This takes a few seconds.
///
/// # Guarantee
/// The false-alarm rates of all checks together stay below 1e-4.
///
/// ```
/// let checks = mclv::selftest();
/// assert!(checks.iter().all(|check| check.passed));
/// assert!(checks.iter().map(|check| check.false_alarm).sum::<f64>() < 1e-4);
/// ```
pub fn selftest() -> Vec<Check> {
    let model = statistical::model();
    let of_model = |check: fn(&Rbm) -> Finding| {
        let model = model.clone();
        Box::new(move || check(&model)) as Box<dyn Fn() -> Finding>
    };
    let plain = |check: fn() -> Finding| Box::new(check) as Box<dyn Fn() -> Finding>;
    let checks = [
        ("random numbers match Philox4x32-10", 0.0, plain(philox)),
        ("this CPU's kernels match the portable ones bit for bit", 0.0, plain(kernels)),
        ("log Z without weights matches the closed form", 0.0, plain(closed_form)),
        ("log Z is the same when summed over either layer", 0.0, plain(both_layers)),
        ("probabilities of all states sum to 1", 0.0, plain(normalisation)),
        ("the exact gradient matches a naive sum", 0.0, of_model(statistical::exact_gradient)),
        (
            "random bits have the right frequencies",
            statistical::OF_FREQUENCIES,
            plain(statistical::frequencies),
        ),
        (
            "samples have the frequencies of the model",
            statistical::OF_SAMPLER,
            of_model(statistical::sampler),
        ),
        ("tours have the lengths that theory predicts", statistical::OF_TOURS, of_model(statistical::tours)),
        ("AIS finds the exact log Z", statistical::OF_AIS, of_model(statistical::ais)),
        (
            "CD, PCD and LVS find the exact gradient",
            statistical::OF_ESTIMATORS,
            of_model(statistical::estimators),
        ),
        ("model files are read back unchanged", 0.0, plain(round_trip)),
        ("the built-in data are intact", 0.0, plain(built_in_data)),
    ];
    let run = |(name, false_alarm, check): (&'static str, f64, Box<dyn Fn() -> Finding>)| {
        let begun = Instant::now();
        let result = check();
        let (passed, detail) = (result.is_ok(), result.unwrap_or_else(|problem| problem));
        Check { name, passed, detail, false_alarm, seconds: begun.elapsed().as_secs_f64() }
    };
    checks.into_iter().map(run).collect()
}

/// `Ok` with the measured error if it is at most `limit`.
fn within(error: f64, limit: f64) -> Finding {
    let text = format!("error {error:.1e}, limit {limit:.0e}");
    if error <= limit { Ok(text) } else { Err(text) }
}

fn random_rbm(n_visible: usize, n_hidden: usize, scale: f64, index: u64) -> Rbm {
    let mut rng = stream(1, Purpose::SelfTest, index).reader();
    let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| (rng.normal() * scale) as f32).collect() };
    let (w, b, a) = (draw(n_visible * n_hidden), draw(n_visible), draw(n_hidden));
    Rbm::new(n_visible, n_hidden, &w, &b, &a).expect("finite parameters of the right sizes")
}

fn all_states(n: usize) -> Rows {
    let mut states = BitRows::zeros(1 << n, n);
    (0..1 << n).for_each(|s| states.row_mut(s)[0] = s as u64);
    Rows::Bits(states)
}

fn log_z(rbm: &Rbm) -> Result<f64, String> {
    partition::exact(rbm, &Default::default(), &Silent).map(|z| z.value).map_err(|e| e.to_string())
}

/// The three known-answer vectors of the reference implementation.
fn philox() -> Finding {
    let ones = Stream::new(u64::MAX, u64::MAX).at(u32::MAX);
    let pi = Stream::new(0x299f_31d0_a409_3822, 0x0370_7344_1319_8a2e).at(0x85a3_08d3);
    let cases = [
        (Stream::new(0, 0).at(0), 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        (ones, u32::MAX, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (pi, 0x243f_6a88, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
    ];
    for (draws, block, expected) in cases {
        let got = draws.block(block);
        if got != expected {
            return Err(format!("{got:08x?} instead of {expected:08x?}"));
        }
    }
    Ok("3 of 3 vectors".into())
}

/// Sampling, functions and enumeration, on every available instruction set.
fn kernels() -> Finding {
    let rbm = random_rbm(100, 14, 0.5, 1);
    let down = Affine::new(Tiles::from_rows(100, 14, &rbm.weights()).transposed(), rbm.visible_bias());
    let states = all_states(14);
    let Rows::Bits(states) = &states else { return Err("packed rows expected".into()) };
    let run = |isa: Isa| {
        let n = 1000;
        let draws: Vec<_> = (0..n as u64).map(|r| stream(2, Purpose::SelfTest, r).at(0)).collect();
        let mut bits = BitRows::zeros(n, 100);
        let mut scratch = Scratch::default();
        layer::sample(
            isa,
            &down,
            States::Bits(states.rows(0, n)),
            &draws,
            &mut scratch,
            bits.words_mut(),
            None,
        );
        let mut x: Vec<f64> = (-1000..1000).map(|k| f64::from(k) * 0.1).collect();
        softplus_f64(isa, &mut x);
        let plan = Enumeration::new(isa, &rbm.weights(), rbm.visible_bias(), rbm.hidden_bias());
        let sum = enumerate::run_task(isa, &plan, 0, &mut Default::default()).ln();
        (bits, x, sum.to_bits())
    };
    let portable = run(Isa::portable());
    let names: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
    match Isa::available().into_iter().find(|&isa| run(isa) != portable) {
        Some(isa) => Err(format!("{isa} differs")),
        None => Ok(names.join(", ")),
    }
}

fn closed_form() -> Finding {
    let mut errors = Vec::new();
    for (n_visible, n_hidden, b, a) in
        [(784, 12, -2.0f32, 0.5f32), (20, 9, 5000.0, -5000.0), (3, 3, 0.0, 0.0)]
    {
        let w = vec![0.0; n_visible * n_hidden];
        let rbm = Rbm::new(n_visible, n_hidden, &w, &vec![b; n_visible], &vec![a; n_hidden])
            .map_err(|e| e.to_string())?;
        let soft = |x: f32| f64::from(x).max(0.0) + (-f64::from(x).abs()).exp().ln_1p();
        let exact = n_visible as f64 * soft(b) + n_hidden as f64 * soft(a);
        errors.push((log_z(&rbm)? - exact).abs() / exact.abs().max(1.0));
    }
    within(largest(errors), 1e-10)
}

fn both_layers() -> Finding {
    let mut errors = Vec::new();
    for (k, scale) in [0.1, 1.0, 10.0].into_iter().enumerate() {
        let rbm = random_rbm(12, 11, scale, 10 + k as u64);
        let f = rbm.free_energy(&all_states(12)).map_err(|e| e.to_string())?;
        let top = f.iter().map(|f| -f).fold(f64::NEG_INFINITY, f64::max);
        let over_visible = top + f.iter().map(|f| (-f - top).exp()).sum::<f64>().ln();
        errors.push((log_z(&rbm)? - over_visible).abs() / over_visible.abs().max(1.0));
    }
    within(largest(errors), 1e-10)
}

fn normalisation() -> Finding {
    let rbm = random_rbm(13, 8, 1.0, 20);
    let z = partition::exact(&rbm, &Default::default(), &Silent).map_err(|e| e.to_string())?;
    let log_p = rbm.log_likelihoods(&all_states(13), &z).map_err(|e| e.to_string())?;
    within((log_p.iter().map(|x| x.exp()).sum::<f64>() - 1.0).abs(), 1e-10)
}

fn round_trip() -> Finding {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let model = ModelFile::new(random_rbm(70, 9, 1.0, 30));
    for name in ["m.safetensors", "m.npz", "m.npy"] {
        let path = folder.path().join(name);
        model.save(&path).map_err(|e| e.to_string())?;
        if ModelFile::load(&path).map_err(|e| e.to_string())?.rbm != model.rbm {
            return Err(format!("{name} differs"));
        }
    }
    Ok(".safetensors, .npz, .npy".into())
}

fn built_in_data() -> Finding {
    let mut found = Vec::new();
    for (name, n_rows, n_columns) in
        [("digits", 1797, 64), ("bars-and-stripes:4", 30, 16), ("ising", 10_000, 16)]
    {
        let spec = DataSpec { source: name.into(), ..DataSpec::default() };
        let set = data::load(&spec, &Silent).map_err(|e| e.to_string())?;
        let text = format!("{name} {} × {}", set.n_rows(), set.n_columns());
        if (set.n_rows(), set.n_columns()) != (n_rows, n_columns) {
            return Err(text);
        }
        found.push(text);
    }
    Ok(found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_is_not_a_number_fails() {
        assert!(within(largest([0.0, 1e-11]), 1e-10).is_ok());
        assert!(within(largest([0.0, f64::NAN, 1e-11]), 1e-10).is_err());
        assert!(within(2e-10, 1e-10).is_err());
    }
}
