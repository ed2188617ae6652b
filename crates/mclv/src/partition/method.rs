//! Name the methods that compute or estimate `log Z`.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A method that computes or estimates `log Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Enumeration of the smaller layer.
    Exact,
    /// Las Vegas tours (see [`mclv`](super::mclv())).
    Mclv,
    /// Tours with a ladder (see [`ladder`](super::ladder())).
    Ladder,
    /// Annealed importance sampling, from a base model to the model.
    Ais,
    /// Annealed importance sampling in the other direction, from the model to the base model.
    ReverseAis,
    /// Bennett's acceptance ratio over a ladder of temperatures.
    Bar,
}

impl Method {
    /// All methods, in this order.
    pub const ALL: [Self; 6] =
        [Self::Exact, Self::Mclv, Self::Ladder, Self::Ais, Self::ReverseAis, Self::Bar];

    /// Returns true if the method uses rows of data.
    pub fn uses_data(self) -> bool {
        self != Self::Exact
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Exact => "exact",
            Self::Mclv => "mclv",
            Self::Ladder => "ladder",
            Self::Ais => "ais",
            Self::ReverseAis => "reverse-ais",
            Self::Bar => "bar",
        })
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.to_string() == text).ok_or_else(|| Error::InvalidSetting {
            name: "method",
            value: text.into(),
            cure: "choose exact, mclv, ladder, ais, reverse-ais or bar",
        })
    }
}
