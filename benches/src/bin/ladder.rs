//! Show how tours with a ladder climb to a model, for several numbers of legs.
//!
//! `cargo run --release -p mclv-benches --bin ladder -- MODEL DATA STEPS SEEDS CLUSTERS…`: for
//! example `model.safetensors mnist 3000000 3 0 8 16`. The rows of DATA are cut at 0.5. With 0
//! clusters the ladder has one leg.

use mclv::ModelFile;
use mclv::data::{self, Binarize, DataSpec};
use mclv::partition::{Effort, Inputs, LadderTourSettings, ladder};
use mclv::progress::Silent;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, source, steps, seeds, clusters @ ..] = args.as_slice() else {
        return Err("usage: ladder MODEL DATA STEPS SEEDS CLUSTERS…".into());
    };
    let rbm = ModelFile::load(model)?.rbm;
    let spec = DataSpec { source: source.clone(), binarize: Binarize::Threshold(0.5), ..Default::default() };
    let rows = data::load(&spec, &Silent)?.rows;
    let inputs = Inputs { rows: Some(&rows), ..Inputs::default() };
    for n_clusters in clusters {
        let n_clusters: usize = n_clusters.parse()?;
        for seed in 0..seeds.parse()? {
            let settings = LadderTourSettings {
                effort: Effort::TargetSe(0.01),
                n_clusters,
                max_steps: Some(steps.parse()?),
                seed,
                ..Default::default()
            };
            let z = ladder(&rbm, &inputs, &settings, &Silent)?;
            let std_err = z.std_err.map_or("unknown".into(), |se| format!("{se:.4}"));
            println!(
                "{n_clusters} clusters, seed {seed}: {:.4} ± {std_err}, {:.1e} steps, {:.1} s, {}",
                z.value,
                z.n_states,
                z.seconds,
                if z.interval.is_some() { "interval" } else { "no interval" }
            );
            z.notes.iter().for_each(|note| println!("  {note}"));
        }
    }
    Ok(())
}
