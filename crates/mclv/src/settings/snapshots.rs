//! The epochs after which the model is kept.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The epochs after which a copy of the model is kept.
///
/// ```
/// use mclv::settings::Snapshots;
/// let snapshots: Snapshots = "log".parse()?;
/// let kept: Vec<usize> = (0..=100).filter(|&epoch| snapshots.is_due(epoch)).collect();
/// assert_eq!(kept, [1, 2, 5, 10, 20, 50, 100]);
/// assert_eq!("10,0,3".parse::<Snapshots>()?, Snapshots::from(vec![0, 3, 10]));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Snapshots {
    /// No copies.
    #[default]
    Off,
    /// Epochs 1, 2, 5, 10, 20, 50, 100, …
    Log,
    /// These epochs, in ascending order; 0 is the initial model.
    At(Vec<usize>),
}

impl Snapshots {
    /// Returns true if the model is kept after `epoch`.
    pub fn is_due(&self, epoch: usize) -> bool {
        match self {
            Self::Off => false,
            Self::Log => {
                let mut leading = epoch;
                while leading >= 10 && leading.is_multiple_of(10) {
                    leading /= 10;
                }
                matches!(leading, 1 | 2 | 5)
            }
            Self::At(epochs) => epochs.binary_search(&epoch).is_ok(),
        }
    }

    /// The last epoch of a list.
    pub(super) fn last(&self) -> Option<usize> {
        if let Self::At(epochs) = self { epochs.last().copied() } else { None }
    }
}

impl From<Vec<usize>> for Snapshots {
    /// Sorts the epochs. No epochs are [`Snapshots::Off`].
    fn from(mut epochs: Vec<usize>) -> Self {
        epochs.sort_unstable();
        epochs.dedup();
        if epochs.is_empty() { Self::Off } else { Self::At(epochs) }
    }
}

impl Display for Snapshots {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.pad("off"),
            Self::Log => f.pad("log"),
            Self::At(epochs) => f.pad(&epochs.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for Snapshots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "log" => Ok(Self::Log),
            _ => {
                let epochs: Result<Vec<usize>, _> =
                    text.split(',').map(|epoch| epoch.trim().parse()).collect();
                let problem = "give epochs with commas between them, or `log` or `off`";
                epochs.map(Self::from).map_err(|_| problem.to_owned())
            }
        }
    }
}

impl Serialize for Snapshots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(epochs) => epochs.serialize(serializer),
            word => serializer.collect_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for Snapshots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Snapshots;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of epochs, `log` or `off`")
            }

            fn visit_u64<E: serde::de::Error>(self, epoch: u64) -> Result<Snapshots, E> {
                let epoch = usize::try_from(epoch).map_err(E::custom)?;
                Ok(Snapshots::from(vec![epoch]))
            }

            fn visit_i64<E: serde::de::Error>(self, epoch: i64) -> Result<Snapshots, E> {
                let epoch = usize::try_from(epoch).map_err(E::custom)?;
                Ok(Snapshots::from(vec![epoch]))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Snapshots, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Snapshots, A::Error> {
                let mut epochs = Vec::new();
                while let Some(epoch) = items.next_element()? {
                    epochs.push(epoch);
                }
                if epochs.is_empty() {
                    return Err(serde::de::Error::custom("give at least one epoch, or `log` or `off`"));
                }
                Ok(Snapshots::from(epochs))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_words_survive_text_and_files() {
        for (text, value) in [
            ("off", Snapshots::Off),
            ("log", Snapshots::Log),
            ("0,1,7", Snapshots::At(vec![0, 1, 7])),
            ("12", Snapshots::At(vec![12])),
        ] {
            assert_eq!(text.parse::<Snapshots>().unwrap(), value);
            assert_eq!(value.to_string(), text);
            let json = serde_json::to_value(&value).unwrap();
            assert_eq!(serde_json::from_value::<Snapshots>(json).unwrap(), value);
        }
        let read = |text: &str| serde_json::from_str::<Snapshots>(text);
        assert_eq!(read("[5, 2, 5, 0]").unwrap(), Snapshots::At(vec![0, 2, 5]));
        assert_eq!(read("3").unwrap(), Snapshots::At(vec![3]));
        assert_eq!(read("\"1, 3\"").unwrap(), Snapshots::At(vec![1, 3]));
    }

    #[test]
    fn other_words_and_numbers_are_refused() {
        for text in ["", "often", "1,,2", "-1", "1.5", "1;2"] {
            assert!(text.parse::<Snapshots>().unwrap_err().contains("`log`"), "{text}");
        }
        for text in ["[]", "-1", "1.5", "true", "[1, -2]", "[\"a\"]", "\"of\""] {
            assert!(serde_json::from_str::<Snapshots>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn epochs_of_the_logarithmic_list_are_dense_at_the_beginning() {
        let due = |epoch| Snapshots::Log.is_due(epoch);
        assert!([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 50_000].into_iter().all(due));
        assert!(![0, 3, 4, 6, 11, 12, 15, 21, 25, 51, 101, 110, 120, 505].into_iter().any(due));
    }
}
