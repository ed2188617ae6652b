//! The file of a sweep that says what was asked for: data, settings and seeds.

use super::args::{Axis, Grid, Seeds};
use crate::commands::MAX_TEXT;
use anyhow::{Context, anyhow};
use mclv::train::{RunInput, SweepFolder};
use mclv::{Error, read_text, team, write_inside};
use serde::{Deserialize, Serialize};

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

    /// Writes the definition of a new sweep into the folder, of which this process is the owner.
    pub(super) fn create(&self, folder: &SweepFolder) -> anyhow::Result<()> {
        check_new(folder)?;
        let text = toml::to_string_pretty(self).context("sweep.toml")?;
        Ok(write_inside(&folder.definition(), text.as_bytes())?)
    }

    /// Reads the definition.
    pub(super) fn read(folder: &SweepFolder) -> anyhow::Result<Self> {
        let path = folder.definition();
        let text = read_text(&path, MAX_TEXT)?;
        toml::from_str(&text).map_err(|e| Error::malformed(&path, e.message().to_owned()).into())
    }
}

/// Rejects a folder that holds a sweep.
pub(super) fn check_new(folder: &SweepFolder) -> anyhow::Result<()> {
    // With several ranks, the first may already have begun to write when others look.
    let is_taken = team::is_first() && folder.definition().exists();
    let taken = Error::InvalidSetting {
        name: "sweep folder",
        value: folder.path().display().to_string(),
        cure: "it holds a sweep already: resume that sweep, or choose another folder",
    };
    Ok(team::together(if is_taken { Err(taken) } else { Ok(()) })?)
}
