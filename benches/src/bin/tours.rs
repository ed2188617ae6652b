//! Compare a step of the tour engine with a bare block-Gibbs step of the same model, in the same
//! run: `cargo run --release -p mclv-benches --bin tours [MODEL.safetensors DATA]`. Without
//! arguments, the model is a random one of 784 × 32 units whose tours are cut after 50 steps and
//! after 3.
//!
//! `cpu` is the processor time of a step divided by that of the bare step, which a busy machine
//! hardly changes. `wall` is the best time of a step, times threads, divided by the best bare one;
//! it needs a quiet machine.

use mclv::bits::{BitRows, words_for};
use mclv::data::{DataSpec, Split};
use mclv::progress::Silent;
use mclv::tour::{PilotSettings, TourEngine, TourSettings};
use mclv::{ModelFile, Rbm, StoppingSet, data};
use mclv_benches::{best_seconds, machine};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Affine, Scratch, States, sample};
use mclv_kernels::rng::{Draws, Stream};
use mclv_kernels::tiles::Tiles;

/// Chains of the bare step.
const N_ROWS: usize = 64;

fn main() -> mclv::Result<()> {
    println!("{}", machine());
    println!(
        "{:>8} {:>24} {:>8} {:>8} {:>8} {:>6} {:>6}",
        "threads", "tours", "mean ξ", "step ns", "bare ns", "cpu", "wall"
    );
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (rbm, sets) = match arguments.as_slice() {
        [model, name] => {
            let rbm = ModelFile::load(model)?.rbm;
            let spec = DataSpec { source: name.clone(), split: Split::Train, ..DataSpec::default() };
            let rows = data::load(&spec, &Silent)?.rows;
            let all: Vec<usize> = (0..rows.n_rows()).collect();
            let set = StoppingSet::draw(&rbm, &rows, &all, 1, 1, 0)?;
            (rbm, vec![("set from data", set, None)])
        }
        _ => {
            let rbm = random_rbm();
            let far = StoppingSet::new(&BitRows::zeros(1, 32));
            let pilot = PilotSettings { n_chains: 64, burn_in: 100, n_steps: 2, seed: 1 };
            let near = StoppingSet::from_pilot(&rbm, None, &pilot)?;
            (rbm, vec![("never return, K = 50", far, Some(50)), ("K = 3", near, Some(3))])
        }
    };
    for n_threads in [1, std::thread::available_parallelism().map_or(1, |n| n.get())] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("a thread pool");
        for (name, set, max_length) in &sets {
            let engine = TourEngine::new(&rbm, set)?;
            let settings =
                TourSettings { n_tours: 20_000, max_length: *max_length, seed: 1, ..Default::default() };
            let tours = engine.run(&settings, &Silent)?;
            let n_steps = tours.n_steps() as f64;
            let step = Cost::of(n_steps, || pool.install(|| engine.run(&settings, &Silent)));
            let bare = bare_step(&rbm);
            println!(
                "{n_threads:>8} {name:>24} {:>8.2} {:>8.0} {:>8.0} {:>6.2} {:>6.2}",
                n_steps / tours.n_tours() as f64,
                step.cpu * 1e9,
                bare.cpu * 1e9,
                step.cpu / bare.cpu,
                step.wall * n_threads as f64 / bare.wall
            );
        }
    }
    Ok(())
}

/// Makes a model with about a fifth of the visible and half of the hidden units on.
fn random_rbm() -> Rbm {
    let (n_visible, n_hidden) = (784, 32);
    let mut rng = Stream::new(1, 0).reader();
    let w: Vec<f32> = (0..n_visible * n_hidden).map(|_| (rng.normal() * 0.1) as f32).collect();
    let b: Vec<f32> = (0..n_visible).map(|_| (rng.normal() - 2.0) as f32).collect();
    let a: Vec<f32> =
        (0..n_hidden).map(|j| (0..n_visible).map(|i| -0.2 * w[i * n_hidden + j]).sum()).collect();
    Rbm::new(n_visible, n_hidden, &w, &b, &a).expect("sizes fit")
}

/// The seconds of a step.
struct Cost {
    cpu: f64,
    wall: f64,
}

impl Cost {
    /// Measures `work` that makes `n_steps`, over two seconds of processor time.
    fn of<T>(n_steps: f64, mut work: impl FnMut() -> T) -> Self {
        let begun = cpu_seconds();
        let (mut n, mut wall) = (0.0, f64::INFINITY);
        while cpu_seconds() - begun < 2.0 {
            wall = best_seconds(0.0, &mut work).min(wall);
            // `best_seconds` runs it three times.
            n += 3.0 * n_steps;
        }
        Self { cpu: (cpu_seconds() - begun) / n, wall: wall / n_steps }
    }
}

/// Returns the processor time of all threads of this process, in seconds, to a hundredth.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

/// Measures one step h → v → h' of one chain, on one thread.
fn bare_step(rbm: &Rbm) -> Cost {
    let isa = Isa::best();
    let weights = Tiles::from_rows(rbm.n_visible(), rbm.n_hidden(), &rbm.weights());
    let down = Affine::new(weights.transposed(), rbm.visible_bias());
    let up = Affine::new(weights, rbm.hidden_bias());
    let mut v = vec![0; N_ROWS * words_for(rbm.n_visible())];
    let mut h = vec![0; N_ROWS * words_for(rbm.n_hidden())];
    let mut scratch = Scratch::default();
    let draws = |t: u32| -> Vec<Draws> { (0..N_ROWS).map(|r| Stream::new(7, r as u64).at(t)).collect() };
    let mut t = 0;
    let mut step = || {
        sample(isa, &down, States::Bits(&h), &draws(t), &mut scratch, &mut v, None);
        sample(isa, &up, States::Bits(&v), &draws(t + 1), &mut scratch, &mut h, None);
        t += 2;
    };
    (0..100).for_each(|_| step());
    Cost::of((1000 * N_ROWS) as f64, || (0..1000).for_each(|_| step()))
}
