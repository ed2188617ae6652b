//! Turn the arguments of `mclv train`, with a preset or a configuration file, into settings.

use super::args::{Estimator, Preset, Rule, TrainArgs};
use crate::cli::Global;
use anyhow::Context;
use mclv::data::Binarize;
use mclv::gradient::{Gradient, Lvs, Starts, TourLength, VisibleChain};
use mclv::train::{Optimizer, RunInput, TrainSettings};

/// Learning rate of Adam, if none is given.
const ADAM_RATE: f64 = 0.01;

/// The file, or the preset; then the flags.
pub(super) fn resolve(args: &TrainArgs, global: &Global) -> anyhow::Result<RunInput> {
    let mut input = match &args.config {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            RunInput::from_toml(&text, path)?
        }
        None if args.gradient.is_none() && args.preset == Preset::Default => {
            let plain = RunInput::default();
            let n_hidden = args.hidden.unwrap_or(plain.train.n_hidden);
            RunInput { train: TrainSettings::best(n_hidden), ..plain }
        }
        None => RunInput::default(),
    };
    if let Some(source) = &args.data {
        input.data.source.clone_from(source);
    }
    if let Some(binarize) = args.preparation.binarize {
        input.data.binarize = binarize;
    }
    if let Some(column) = &args.preparation.label_column {
        input.data.label_column = Some(column.clone());
    }
    if let Some(path) = &args.weights {
        input.weights = Some(path.clone());
    }
    let mut train = input.train;
    if let Some(estimator) = args.gradient {
        train.gradient = estimator.default_settings();
    }
    if args.preset == Preset::Paper {
        train = TrainSettings::paper(train.gradient);
    }
    set_gradient(args, &mut train.gradient)?;
    if args.optimizer == Some(Rule::Adam) && !matches!(train.optimizer, Optimizer::Adam { .. }) {
        // Its steps are of the size of the rate itself, whatever the gradient's.
        train.learning_rate = ADAM_RATE;
    }
    macro_rules! take {
        ($($flag:ident => $field:ident),* $(,)?) => { $(if let Some(value) = args.$flag { train.$field = value; })* };
    }
    take!(hidden => n_hidden, init => init, epochs => epochs, batch_size => batch_size, learning_rate => learning_rate,
        schedule => schedule, l1 => l1, l2 => l2, clip => clip, warm_up_epochs => warm_up_epochs, eval_every => eval_every,
        patience => patience, offset_rate => offset_rate);
    train.centred &= !args.no_centring;
    train.drop_last |= args.drop_last;
    train.redraw_bits |= args.redraw_bits;
    match (args.optimizer, args.momentum) {
        (Some(Rule::Adam), None) => train.optimizer = Optimizer::ADAM,
        (Some(Rule::Adam), Some(_)) => {
            anyhow::bail!("--momentum goes with --optimizer sgd; Adam has its own")
        }
        (_, Some(momentum)) => train.optimizer = Optimizer::Sgd { momentum },
        (Some(Rule::Sgd), None) => train.optimizer = Optimizer::Sgd { momentum: 0.0 },
        (None, None) => {}
    }
    if let Some(seed) = global.seed {
        (train.seed, input.data.seed) = (seed, seed);
    }
    anyhow::ensure!(
        !train.redraw_bits || input.data.binarize == Binarize::Bernoulli,
        "--redraw-bits needs --binarize bernoulli: there is nothing to draw anew"
    );
    Ok(RunInput { train, ..input })
}

/// Flags of the estimator; a flag that the estimator does not have is refused.
fn set_gradient(args: &TrainArgs, gradient: &mut Gradient) -> anyhow::Result<()> {
    let steps = |k: TourLength| match k {
        TourLength::Steps(k) => Ok(k as usize),
        TourLength::Dynamic => {
            anyhow::bail!("--k dynamic is for tours (--gradient lvs); give a number of Gibbs steps")
        }
    };
    let no = |flag: &str, given: bool, name: &str| {
        anyhow::ensure!(!given, "--{flag} does not go with --gradient {name}");
        Ok(())
    };
    let lvs_flags = [
        ("samples-per-row", args.samples_per_row.is_some()),
        ("row-fraction", args.row_fraction.is_some()),
        ("redraw-every", args.redraw_every.is_some()),
        ("unfinished", args.unfinished.is_some()),
        ("starts", args.starts.is_some()),
        ("statistics", args.statistics.is_some()),
        ("min-ess", args.min_ess.is_some()),
        ("target-completion", args.target_completion.is_some()),
        ("max-states", args.max_states.is_some()),
        ("max-set-cost", args.max_set_cost.is_some()),
    ];
    match gradient {
        Gradient::Cd { k, visible } => {
            lvs_flags.iter().try_for_each(|(flag, given)| no(flag, *given, "cd"))?;
            no("chains", args.chains.is_some(), "cd")?;
            *k = args.k.map_or(Ok(*k), steps)?;
            *visible = args.visible.unwrap_or(*visible);
        }
        Gradient::Pcd { k, n_chains, visible } => {
            lvs_flags.iter().try_for_each(|(flag, given)| no(flag, *given, "pcd"))?;
            *k = args.k.map_or(Ok(*k), steps)?;
            *n_chains = args.chains.unwrap_or(*n_chains);
            *visible = args.visible.unwrap_or(*visible);
        }
        Gradient::Lvs(lvs) => set_lvs(args, lvs),
        Gradient::Exact => {
            lvs_flags.iter().try_for_each(|(flag, given)| no(flag, *given, "exact"))?;
            no("k", args.k.is_some(), "exact")?;
            no("chains", args.chains.is_some(), "exact")?;
            no("visible", args.visible.is_some_and(|v| v == VisibleChain::MeanField), "exact")?;
        }
    }
    Ok(())
}

fn set_lvs(args: &TrainArgs, lvs: &mut Lvs) {
    macro_rules! take {
        ($($flag:ident => $field:ident),* $(,)?) => { $(if let Some(value) = args.$flag { lvs.$field = value; })* };
    }
    take!(k => k, chains => n_tours, samples_per_row => samples_per_row, row_fraction => row_fraction,
        redraw_every => redraw_every, unfinished => unfinished, statistics => statistics, visible => visible,
        min_ess => min_ess, target_completion => target_completion, max_states => max_states,
        max_set_cost => max_set_cost);
    // Starts that suit the policy, unless they were chosen.
    lvs.starts = args.starts.unwrap_or(match (lvs.unfinished, lvs.starts) {
        (mclv::gradient::Unfinished::Carry, Starts::Weighted) => Starts::Metropolis,
        (mclv::gradient::Unfinished::Carry, starts) => starts,
        (_, Starts::Metropolis) => Starts::Weighted,
        (_, starts) => starts,
    });
}

impl Estimator {
    fn default_settings(self) -> Gradient {
        let visible = VisibleChain::Sampled;
        match self {
            Self::Cd => Gradient::Cd { k: 1, visible },
            Self::Pcd => Gradient::Pcd { k: 1, n_chains: 0, visible },
            Self::Lvs => Gradient::Lvs(Lvs::default()),
            Self::Exact => Gradient::Exact,
        }
    }
}
