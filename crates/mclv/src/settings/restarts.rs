//! The epochs at which the schedule of the learning rate begins again.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The epochs at which the schedule of the learning rate begins again, in ascending order.
///
/// ```
/// use mclv::settings::{Restarts, Settings};
/// let settings = Settings {
///     epochs: Some(30.into()),
///     learning_rate: Some(1.0),
///     restarts: Some("10".parse()?),
///     ..Settings::default()
/// };
/// let settings = settings.check(1000).map_err(|e| e.to_string())?;
/// let rate = |epoch| settings.rate(epoch, 0, 8);
/// assert_eq!([rate(0), rate(5), rate(10), rate(20)], [1.0, 0.5, 1.0, 0.5]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restarts(Vec<usize>);

const CURE: &str = "give epochs with commas between them, or `off`";

impl Restarts {
    /// Returns the epochs. There are none if the schedule never begins again.
    pub fn epochs(&self) -> &[usize] {
        &self.0
    }

    /// Returns the last restart up to `epoch`, and the first one after it.
    pub(super) fn around(&self, epoch: usize) -> (Option<usize>, Option<usize>) {
        let n = self.0.partition_point(|&restart| restart <= epoch);
        (n.checked_sub(1).map(|k| self.0[k]), self.0.get(n).copied())
    }

    /// Returns the same with one more restart.
    pub(crate) fn and(mut self, epoch: usize) -> Self {
        self.0.push(epoch);
        Self::from(self.0)
    }
}

impl From<Vec<usize>> for Restarts {
    /// Sorts the epochs.
    fn from(mut epochs: Vec<usize>) -> Self {
        epochs.sort_unstable();
        epochs.dedup();
        Self(epochs)
    }
}

impl Display for Restarts {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.0.as_slice() {
            [] => f.pad("off"),
            epochs => f.pad(&epochs.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for Restarts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::default());
        }
        let epochs: Result<Vec<usize>, _> = text.split(',').map(|epoch| epoch.trim().parse()).collect();
        epochs.map(Self::from).map_err(|_| CURE.to_owned())
    }
}

impl Serialize for Restarts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() { serializer.serialize_str("off") } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Restarts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            List(Vec<usize>),
            One(usize),
            Text(String),
        }
        match Given::deserialize(deserializer).map_err(|_| D::Error::custom(CURE))? {
            Given::List(epochs) if epochs.is_empty() => Err(D::Error::custom(CURE)),
            Given::List(epochs) => Ok(Self::from(epochs)),
            Given::One(epoch) => Ok(Self::from(vec![epoch])),
            Given::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_words_survive_text_and_files() {
        for (text, epochs) in [("off", vec![]), ("100", vec![100]), ("10,20", vec![10, 20])] {
            let restarts: Restarts = text.parse().unwrap();
            assert_eq!((restarts.epochs(), restarts.to_string().as_str()), (epochs.as_slice(), text));
            let json = serde_json::to_value(&restarts).unwrap();
            assert_eq!(serde_json::from_value::<Restarts>(json).unwrap(), restarts);
        }
        assert!(serde_json::from_str::<Restarts>("[]").unwrap_err().to_string().contains("`off`"));
        assert_eq!(serde_json::from_str::<Restarts>("7").unwrap().epochs(), [7]);
        assert_eq!(Restarts::from(vec![20, 10]).and(30).epochs(), [10, 20, 30]);
        for text in ["", "often", "1,,2", "-1", "1.5"] {
            assert!(text.parse::<Restarts>().unwrap_err().contains("`off`"), "{text}");
            assert!(serde_json::from_str::<Restarts>(&format!("[{text},\"a\"]")).is_err());
        }
    }
}
