//! Test that the seed decides results, whatever the number of threads and the instruction set.

use crate::support::{Sandbox, without_times};
use serde_json::Value;

/// All numbers that the program can say about a model of 12 hidden units, except times.
fn everything(sandbox: &Sandbox, extra: &[&str]) -> Vec<Value> {
    let runs: [&[&str]; 5] = [
        &["logz", "m.safetensors"],
        &["likelihood", "m.safetensors", "--pseudo"],
        &["likelihood", "m.safetensors", "--binarize", "bernoulli", "--split", "test"],
        &["data", "show", "ising", "--seed", "5"],
        &["sample", "m.safetensors", "-n", "40", "--burn-in", "2000"],
    ];
    runs.into_iter().map(|args| without_times(sandbox.json(&[args, extra].concat()))).collect()
}

#[test]
fn a_seed_decides_the_model_to_the_byte() {
    let sandbox = Sandbox::new();
    for init in ["data", "paper"] {
        let make = |seed: &str, name: &str| {
            sandbox.succeeds(&["init", "digits", "--init", init, "--seed", seed, "-o", name, "--force"]);
            sandbox.bytes(name)
        };
        let first = make("1", "a.safetensors");
        assert!(first == make("1", "b.safetensors"));
        assert!(first != make("2", "b.safetensors"));
    }
}

#[test]
fn threads_do_not_matter() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 12);
    let one = everything(&sandbox, &["--threads", "1"]);
    for n in ["2", "5"] {
        assert_eq!(everything(&sandbox, &["--threads", n]), one);
    }
}

#[test]
fn instruction_sets_do_not_matter() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 12);
    let default = everything(&sandbox, &[]);
    let sandbox = sandbox.with_variable("MCLV_ISA", "portable");
    assert_eq!(sandbox.json(&["selftest"])["kernels"], "portable");
    assert_eq!(everything(&sandbox, &[]), default);
}
