//! The folder of a sweep, and the file that says what was asked for.
//!
//! ```text
//! SWEEP/sweep.toml     data, settings and seeds
//! SWEEP/runs/          a run folder for each combination of settings and each seed, and its record
//! SWEEP/sweep.csv      a line for each run
//! SWEEP/report.html    the comparison of the runs
//! ```

use super::args::{Axis, Grid, Seeds};
use crate::commands::MAX_TEXT;
use anyhow::{Context, anyhow};
use mclv::train::RunInput;
use mclv::{Error, read_text, team, write_inside};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a sweep was asked for: the content of `sweep.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sweep {
    /// The seeds, with commas between them.
    pub(super) seeds: String,
    /// The data, and the settings that all runs share.
    pub(super) run: RunInput,
    /// The settings of the command line, each with its values.
    #[serde(default)]
    pub(super) settings: Vec<Axis>,
}

impl Sweep {
    pub(super) fn grid(&self) -> Grid {
        Grid(self.settings.clone())
    }

    pub(super) fn seeds(&self) -> anyhow::Result<Vec<u64>> {
        let seeds: Result<Seeds, String> = self.seeds.parse();
        Ok(seeds.map_err(|problem| anyhow!("seeds: {problem}"))?.0)
    }
}

/// The files of a sweep.
pub(super) struct SweepFolder(PathBuf);

impl SweepFolder {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn definition(&self) -> PathBuf {
        self.0.join("sweep.toml")
    }

    pub(super) fn csv(&self) -> PathBuf {
        self.0.join("sweep.csv")
    }

    pub(super) fn report(&self) -> PathBuf {
        self.0.join("report.html")
    }

    /// Rejects a folder that holds a sweep.
    pub(super) fn check_new(&self) -> anyhow::Result<()> {
        // With several ranks, the first may already have begun to write when others look.
        let is_taken = team::is_first() && self.definition().exists();
        let taken = Error::InvalidSetting {
            name: "sweep folder",
            value: self.0.display().to_string(),
            cure: "it holds a sweep already: resume that sweep, or choose another folder",
        };
        Ok(team::together(if is_taken { Err(taken) } else { Ok(()) })?)
    }

    /// Writes the definition of a new sweep into the folder, of which this process is the owner.
    pub(super) fn create(&self, sweep: &Sweep) -> anyhow::Result<()> {
        self.check_new()?;
        let text = toml::to_string_pretty(sweep).context("sweep.toml")?;
        Ok(write_inside(&self.definition(), text.as_bytes())?)
    }

    /// Reads the definition.
    pub(super) fn read(&self) -> anyhow::Result<Sweep> {
        let path = self.definition();
        let text = read_text(&path, MAX_TEXT)?;
        toml::from_str(&text).map_err(|e| Error::malformed(&path, e.message().to_owned()).into())
    }
}
