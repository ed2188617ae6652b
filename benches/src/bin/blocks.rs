//! Test intervals of `log Z` on large models whose truth is known: small models side by side.
//!
//! `cargo run --release -p mclv-benches --bin blocks -- FILE [METHODS] [HIDDEN] [MODELS] [SEEDS] [KINDS] [TARGET]`,
//! for example `easy.txt ladder,ais,bar 200 20 10 easy 0.05`. Each block has 40 visible and 10 hidden
//! units, and the units of all blocks are mixed. In `easy:10`, each block has 10 visible units; its
//! weights are twice as large, so that the model is as hard, and steps take a quarter of the time.
//! Kinds:
//!
//! - `easy`: weak weights, one mode
//! - `middling`: strong random weights
//! - `hard`: two far modes in each of three blocks, with a barrier of 10.9 nats between them; the
//!   other blocks are easy
//! - `harder`: two modes in each block, with a barrier of 2.7 nats
//! - `impossible`: two far modes in each block, with a barrier of 10.9 nats
//!
//! TARGET is the standard error that tours aim for. The method `saved-ladder` runs tours of all seeds
//! with the ladder that seed 0 makes, which takes most of the time. AIS and BAR make as many steps as
//! tours with a ladder made on the same model with the same seed, so `ladder` comes first.
//!
//! Each estimate is a line of FILE. Estimates that are there already are not made again, so a study
//! can be stopped, continued, and made in parts.

#[path = "../../../crates/mclv/tests/hard_models/mod.rs"]
#[allow(dead_code)]
mod hard_models;

use hard_models::{TwoModes, random, reader, side_by_side};
use mclv::Rbm;
use mclv::partition::{Budget, Effort, Inputs, Ladder, Method, MethodSettings, Plan, StepLimit};
use mclv::progress::Silent;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;

/// Hidden units of a block.
const HIDDEN: usize = 10;
/// The weights of easy blocks and of blocks with two far modes, and the number of the latter in a
/// hard model.
const EASY: f64 = 0.3;
const FAR: f64 = 0.4;
const N_FAR: usize = 3;
/// Steps of each ladder of the run of BAR that counts the steps of its ladders.
const SHORT: usize = 100;
/// The method that makes one ladder for each model.
const SAVED: &str = "saved-ladder";

/// What was estimated.
#[derive(Clone, Debug, PartialEq)]
struct Task {
    kind: String,
    n_hidden: usize,
    method: String,
    target: String,
    model: u64,
    seed: u64,
}

/// One estimate: its error, its interval minus the truth, and its cost.
#[derive(Clone, Debug)]
struct Line {
    task: Task,
    error: f64,
    interval: Option<(f64, f64)>,
    steps: f64,
    seconds: f64,
}

impl Line {
    fn parse(line: &str) -> Result<Self, Box<dyn Error>> {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, n_hidden, method, target, model, seed, error, low, high, steps, seconds] = words[..]
        else {
            return Err(format!("not a line of a study: {line}").into());
        };
        let (kind, method, target) = (kind.into(), method.into(), target.into());
        let (n_hidden, model, seed) = (n_hidden.parse()?, model.parse()?, seed.parse()?);
        let interval = if low == "-" { None } else { Some((low.parse()?, high.parse()?)) };
        let task = Task { kind, n_hidden, method, target, model, seed };
        let (error, steps, seconds) = (error.parse()?, steps.parse()?, seconds.parse()?);
        Ok(Self { task, error, interval, steps, seconds })
    }

    fn text(&self) -> String {
        let Task { kind, n_hidden, method, target, model, seed } = &self.task;
        let mut text = format!("{kind} {n_hidden} {method} {target} {model} {seed} {:.6} ", self.error);
        match self.interval {
            Some((low, high)) => write!(text, "{low:.6} {high:.6}").expect("a string"),
            None => text.push_str("- -"),
        }
        write!(text, " {} {:.1}", self.steps, self.seconds).expect("a string");
        text
    }

    fn holds(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low <= 0.0 && 0.0 <= high)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(file) = args.first() else {
        return Err("usage: blocks FILE [METHODS] [HIDDEN] [MODELS] [SEEDS] [KINDS] [TARGET]".into());
    };
    let word = |k: usize, default: &'static str| args.get(k).map_or(default, String::as_str);
    let n_hidden: usize = word(2, "200").parse()?;
    let (n_models, n_seeds): (u64, u64) = (word(3, "20").parse()?, word(4, "10").parse()?);
    let target = word(6, "0.05");
    let before = fs::read_to_string(file).unwrap_or_default();
    let mut lines: Vec<Line> = before.lines().map(Line::parse).collect::<Result<_, _>>()?;
    let mut output = OpenOptions::new().create(true).append(true).open(file)?;
    for kind in word(5, "easy,middling,hard,harder,impossible").split(',') {
        for method in word(1, "ladder").split(',') {
            for number in 0..n_models {
                let task = |method: &str, seed: u64| Task {
                    kind: kind.into(),
                    n_hidden,
                    method: method.into(),
                    target: target.into(),
                    model: number,
                    seed,
                };
                let is_left = |seed: &u64| !lines.iter().any(|line| line.task == task(method, *seed));
                let left: Vec<u64> = (0..n_seeds).filter(is_left).collect();
                if left.is_empty() {
                    continue;
                }
                let (rbm, truth) = model(kind, n_hidden, number)?;
                let ladder = (method == SAVED).then(|| make_ladder(&rbm, target)).transpose()?;
                for seed in left {
                    let tours = lines.iter().find(|line| line.task == task("ladder", seed));
                    let steps = tours.map(|line| line.steps);
                    let line = estimate(&rbm, truth, task(method, seed), ladder.as_ref(), steps)?;
                    writeln!(output, "{}", line.text())?;
                    lines.push(line);
                }
            }
            let is_asked = |line: &&Line| {
                let task = &line.task;
                (task.kind == kind && task.method == method && task.target == target)
                    && (task.n_hidden == n_hidden && task.model < n_models && task.seed < n_seeds)
            };
            let lines: Vec<&Line> = lines.iter().filter(is_asked).collect();
            println!("{}", summary(&lines, n_models, n_visible(kind)?));
        }
    }
    Ok(())
}

/// One line about all estimates of a kind by a method.
fn summary(lines: &[&Line], n_models: u64, n_visible: usize) -> String {
    let mean = |f: &dyn Fn(&Line) -> f64| lines.iter().map(|line| f(line)).sum::<f64>() / lines.len() as f64;
    let given = lines.iter().filter(|line| line.interval.is_some()).count();
    let held = lines.iter().filter(|line| line.holds()).count();
    let of_model = |model: u64| {
        let of_model = lines.iter().filter(|line| line.task.model == model && line.interval.is_some());
        of_model.fold((0, 0), |(held, given), line| (held + u32::from(line.holds()), given + 1))
    };
    let worst = (0..n_models).map(of_model).max_by_key(|(held, given)| given - held).unwrap_or_default();
    let (steps, square) = (mean(&|line| line.steps), mean(&|line| line.error.powi(2)));
    let task = &lines[0].task;
    format!(
        "{} {} × {}, {}: {held} of {given} intervals hold ({:.1} %), {} of {} declined; worst model {} of {}; \
         mean error {:+.4}, rms error {:.4}; {steps:.2e} steps, {:.1} s each; rms error at 10^6 steps {:.4}",
        task.kind,
        task.n_hidden / HIDDEN * n_visible,
        task.n_hidden,
        task.method,
        100.0 * held as f64 / given as f64,
        lines.len() - given,
        lines.len(),
        worst.0,
        worst.1,
        mean(&|line| line.error),
        square.sqrt(),
        mean(&|line| line.seconds),
        (square * steps / 1e6).sqrt()
    )
}

/// The visible units of a block.
fn n_visible(kind: &str) -> Result<usize, Box<dyn Error>> {
    Ok(kind.split_once(':').map_or(Ok(40), |(_, n)| n.parse())?)
}

/// Model number `m` of a kind, and its `log Z`.
fn model(kind: &str, n_hidden: usize, m: u64) -> Result<(Rbm, f64), Box<dyn Error>> {
    let n_visible = n_visible(kind)?;
    let kind = kind.split(':').next().unwrap_or_default();
    let (first, scale) = match kind {
        "easy" => (1_000, EASY),
        "middling" => (2_000, 0.8),
        "hard" => (5_000, FAR),
        "harder" => (4_000, 0.28),
        "impossible" => (3_000, FAR),
        _ => return Err("kinds: easy, middling, hard, harder, impossible".into()),
    };
    // The spread of inputs to hidden units does not depend on the size of a block.
    let as_large = |scale: f64| scale * (40.0 / n_visible as f64).sqrt();
    let mut rng = reader(first + m);
    let parts: Vec<(Rbm, f64)> = (0..n_hidden / HIDDEN)
        .map(|part| match kind {
            "easy" | "middling" => random(n_visible, HIDDEN, as_large(scale), &mut rng),
            "hard" if part >= N_FAR => random(n_visible, HIDDEN, as_large(EASY), &mut rng),
            _ => {
                let model = TwoModes::new(n_visible, HIDDEN, as_large(scale), &mut rng);
                (model.rbm, model.log_z)
            }
        })
        .collect();
    Ok(side_by_side(&parts, &mut rng))
}

fn settings(rbm: &Rbm, target: &str, seed: u64) -> Result<MethodSettings, Box<dyn Error>> {
    let budget = Budget::command(rbm.n_visible(), rbm.n_hidden());
    Ok(MethodSettings { budget, effort: Effort::TargetSe(target.parse()?), seed, ..Default::default() })
}

fn make_ladder(rbm: &Rbm, target: &str) -> Result<Ladder, Box<dyn Error>> {
    let plan = Plan::new(rbm, Some(Method::Ladder), &settings(rbm, target, 0)?);
    Ok(plan.make_ladder(&Inputs::default(), &Silent)?)
}

fn estimate(
    rbm: &Rbm,
    truth: f64,
    task: Task,
    ladder: Option<&Ladder>,
    steps: Option<f64>,
) -> Result<Line, Box<dyn Error>> {
    let method: Method = if ladder.is_some() { Method::Ladder } else { task.method.parse()? };
    let mut settings = settings(rbm, &task.target, task.seed)?;
    let inputs = Inputs { ladder, ..Inputs::default() };
    let run = |settings: &MethodSettings| Plan::new(rbm, Some(method), settings).run(&inputs, &Silent);
    if method != Method::Ladder {
        let steps = steps.ok_or("run `ladder` first: other methods make as many steps")?;
        settings.budget.n_betas = (steps / settings.budget.n_chains as f64) as usize;
        settings.budget.max_steps = StepLimit::Unlimited;
        if method == Method::Bar {
            let short = run(&MethodSettings { ladder_steps: SHORT, ..settings.clone() })?;
            settings.ladder_steps = (SHORT as f64 * steps / short.n_states) as usize;
        }
    }
    let log_z = run(&settings)?;
    let interval = log_z.interval.map(|(low, high)| (low - truth, high - truth));
    Ok(Line { error: log_z.value - truth, interval, steps: log_z.n_states, seconds: log_z.seconds, task })
}
