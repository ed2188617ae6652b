//! Show how tours with a ladder climb to a model, for several numbers of rungs.
//!
//! `cargo run --release -p mclv-benches --bin ladder -- MODEL STEPS SEEDS RUNGS…`: for example
//! `model.safetensors 5000000 3 40 80`. The number of rungs 0 stands for the pilot's choice.

use mclv::ModelFile;
use mclv::partition::{Effort, LadderTourSettings, ladder};
use mclv::progress::Silent;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, steps, seeds, rungs @ ..] = args.as_slice() else {
        return Err("usage: ladder MODEL STEPS SEEDS RUNGS…".into());
    };
    let rbm = ModelFile::load(model)?.rbm;
    for n_rungs in rungs {
        let n_rungs: usize = n_rungs.parse()?;
        for seed in 0..seeds.parse()? {
            let settings = LadderTourSettings {
                effort: Effort::TargetSe(0.01),
                n_rungs: Some(n_rungs).filter(|&n| n > 0),
                max_steps: Some(steps.parse()?),
                seed,
                ..Default::default()
            };
            let z = ladder(&rbm, None, &settings, &Silent)?;
            let std_err = z.std_err.map_or("unknown".into(), |se| format!("{se:.4}"));
            println!(
                "{n_rungs} rungs, seed {seed}: {:.4} ± {std_err}, {:.1e} steps, {:.1} s",
                z.value, z.n_states, z.seconds
            );
            z.notes.iter().for_each(|note| println!("  {note}"));
        }
    }
    Ok(())
}
