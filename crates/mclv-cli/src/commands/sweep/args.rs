//! The arguments of `mclv sweep`.

use crate::commands::train::InputArgs;
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use mclv::settings::Settings;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv sweep digits --n-hidden 8,16 --learning-rate 0.1,0.3 --seeds 0..2
  mclv sweep rows.csv --gradient pcd,lvs --epochs 50 --output sweeps/gradients
  mclv sweep --resume sweeps/gradients

Every setting of `mclv train` may have several values, with commas between them. Each combination is
trained with each seed, in a run folder of its own under SWEEP/runs. Runs execute side by side, with
one thread each; results do not depend on the number of threads. An interrupted sweep keeps its
finished runs, and --resume continues the others where they stopped.

The setting with the highest mean log-likelihood of validation rows over its seeds is chosen. Test
rows are read only afterwards, and only the models of the chosen setting are evaluated on them. All
runs have the same validation and test rows, which --seed decides.

The sweep folder holds sweep.toml (what was asked for), runs, sweep.csv (a line for each run),
report.html, which compares the runs, and chosen.toml. Where a command takes a model or a run, the
sweep folder stands for the best run of the chosen setting, as in `mclv sample SWEEP`.")]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Folder of the sweep to create [default: sweeps/DATA-1, sweeps/DATA-2, …]
    #[arg(short, long, value_name = "SWEEP", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Continue an interrupted sweep
    #[arg(long, value_name = "SWEEP", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "data", "output", "from", "config", "weights", "binarize", "label_column", "shape", "seeds"])]
    pub(crate) resume: Option<PathBuf>,
    /// Seeds of training: a range such as 0..2 (that is 0, 1 and 2), or a list such as 0,5,7
    #[arg(long, value_name = "SEEDS", default_value = "0..2")]
    pub(crate) seeds: Seeds,
    #[command(flatten)]
    pub(crate) grid: Grid,
}

/// The seeds of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Vec<u64>);

/// The most seeds of a sweep.
const MOST_SEEDS: u64 = 1000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim()
                .parse::<u64>()
                .map_err(|_| "give a range such as 0..2, or a list such as 0,5,7".to_owned())
        };
        let mut seeds = match text.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first || last - first >= MOST_SEEDS {
                    return Err(format!(
                        "give a range from the lower to the higher seed, of at most {MOST_SEEDS}"
                    ));
                }
                (first..=last).collect()
            }
            None => text.split(',').map(number).collect::<Result<Vec<_>, _>>()?,
        };
        seeds.sort_unstable();
        seeds.dedup();
        Ok(Self(seeds))
    }
}

impl Display for Seeds {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let seeds: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&seeds.join(","))
    }
}

/// A setting and its values, in the spelling of flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Axis {
    /// The name of the setting, such as `n-hidden`.
    pub(crate) setting: String,
    /// Its values.
    pub(crate) values: Vec<String>,
}

/// The settings of a sweep, each with one or more values, in the order of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grid(pub(crate) Vec<Axis>);

/// Settings whose one value may contain commas.
const LISTS: [&str; 2] = ["restarts", "snapshots"];

impl Args for Grid {
    fn augment_args(command: Command) -> Command {
        let settings = Settings::augment_args(Command::new("settings"));
        settings.get_arguments().fold(command, |command, arg| {
            let values = arg.get_possible_values();
            let parser = match values.is_empty() {
                true => ValueParser::string(),
                false => PossibleValuesParser::new(values).into(),
            };
            let arg = arg.clone().value_parser(parser).action(ArgAction::Append);
            let is_list = LISTS.contains(&arg.get_id().as_str());
            command.arg(if is_list { arg } else { arg.value_delimiter(',') }.conflicts_with("resume"))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Grid {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut axes: Vec<(usize, Axis)> = Vec::new();
        for id in Settings::NAMES.iter().filter(|id| matches.try_contains_id(id).unwrap_or(false)) {
            // `--seed` is a number, and decides the parts of the data.
            let Ok(Some(given)) = matches.try_get_many::<String>(id) else { continue };
            let mut values: Vec<String> = Vec::new();
            for value in given {
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            let place = matches.indices_of(id).and_then(|mut places| places.next()).unwrap_or_default();
            axes.push((place, Axis { setting: id.replace('_', "-"), values }));
        }
        axes.sort_by_key(|(place, _)| *place);
        let grid = Self(axes.into_iter().map(|(_, axis)| axis).collect());
        // Each value must be one that `mclv train` accepts.
        for axis in &grid.0 {
            for value in &axis.values {
                settings(&[(axis.setting.clone(), value.clone())])?;
            }
        }
        Ok(grid)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Grid {
    /// All combinations of values, the last setting fastest.
    pub(crate) fn combinations(&self) -> Vec<Vec<(String, String)>> {
        self.0.iter().fold(vec![Vec::new()], |combinations, axis| {
            let with = |combination: &Vec<(String, String)>, value: &String| {
                let mut longer = combination.clone();
                longer.push((axis.setting.clone(), value.clone()));
                longer
            };
            combinations
                .iter()
                .flat_map(|combination| axis.values.iter().map(move |value| with(combination, value)))
                .collect()
        })
    }

    /// The settings that have several values.
    pub(crate) fn varied(&self) -> Vec<&str> {
        self.0.iter().filter(|axis| axis.values.len() > 1).map(|axis| axis.setting.as_str()).collect()
    }
}

/// Parses settings as `mclv train` does.
pub(crate) fn settings(values: &[(String, String)]) -> Result<Settings, clap::Error> {
    let command = Settings::augment_args(Command::new("mclv sweep").no_binary_name(true));
    let flags = values.iter().map(|(name, value)| format!("--{name}={value}"));
    let matches = command.try_get_matches_from(flags).map_err(|error| match error.kind() {
        ErrorKind::UnknownArgument => error,
        _ => crate::cli::with_tip(error),
    })?;
    Settings::from_arg_matches(&matches)
}

/// A combination as flags, for messages.
pub(crate) fn spelled(values: &[(String, String)]) -> String {
    values.iter().map(|(name, value)| format!("--{name} {value}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_ranges_and_lists() {
        let seeds = |text: &str| text.parse::<Seeds>();
        assert_eq!(seeds("0..2").unwrap().0, [0, 1, 2]);
        assert_eq!(seeds("7").unwrap().0, [7]);
        assert_eq!(seeds("5, 0,5").unwrap().0, [0, 5]);
        let largest = format!("{}..{}", u64::MAX - 1, u64::MAX);
        assert_eq!(seeds(&largest).unwrap().0, [u64::MAX - 1, u64::MAX]);
        assert_eq!(seeds("0..2").unwrap().to_string().parse(), seeds("0..2"));
        for text in ["", "a", "2..0", "0..", "-1", "0..100000", "1.5"] {
            assert!(seeds(text).is_err(), "{text}");
        }
    }

    fn grid(flags: &[&str]) -> Result<Grid, clap::Error> {
        let command = SweepArgs::augment_args(Command::new("sweep").no_binary_name(true));
        SweepArgs::from_arg_matches(&command.try_get_matches_from(flags)?).map(|args| args.grid)
    }

    #[test]
    fn a_grid_is_all_combinations_in_the_order_of_the_command_line() {
        let flags = ["digits", "--lr", "0.1,0.2", "--n-hidden", "4", "--centred=true,false", "--lr", "0.3"];
        let grid = grid(&flags).unwrap();
        let combinations = grid.combinations();
        assert_eq!(combinations.len(), 6);
        let text = |k: usize| {
            combinations[k]
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(text(0), "learning-rate=0.1 n-hidden=4 centred=true");
        assert_eq!(text(5), "learning-rate=0.3 n-hidden=4 centred=false");
        assert_eq!(grid.varied(), ["learning-rate", "centred"]);
        let parsed = settings(&combinations[5]).unwrap();
        assert_eq!(
            (parsed.learning_rate, parsed.n_hidden, parsed.centred),
            (Some(0.3), Some(4), Some(false))
        );
        assert_eq!(super::Grid::default().combinations(), [Vec::new()]);
    }

    #[test]
    fn lists_stay_whole_and_wrong_values_are_refused() {
        let snapshots = grid(&["digits", "--snapshots", "1,2", "--restarts", "3,5"]).unwrap();
        assert_eq!(snapshots.combinations().len(), 1);
        let error = |flags: &[&str]| grid(flags).unwrap_err().to_string();
        assert!(error(&["digits", "--n-hidden", "4,x"]).contains("'x' for '--n-hidden <N>'"));
        assert!(error(&["digits", "--gradient", "cd,magic"]).contains("possible values"));
        assert!(error(&["--resume", "s", "--n-hidden", "4"]).contains("cannot be used with"));
    }
}
