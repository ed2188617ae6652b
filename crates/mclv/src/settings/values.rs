//! Settings that are a number or a word: `auto`, `off`, `never`, `dynamic`.

use serde::de::{DeserializeOwned, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Display, Formatter};
use std::marker::PhantomData;
use std::str::FromStr;

/// A number, or the word `auto` if the library decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auto<T> {
    /// The library decides.
    #[default]
    Auto,
    /// This number.
    Given(T),
}

/// A limit, or the word `off` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit<T> {
    /// There is no limit.
    #[default]
    Off,
    /// This limit.
    At(T),
}

/// When to evaluate the likelihood: a number of epochs, `auto`, or `never`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvalEvery {
    /// As often as 10 % of the training time allows on a nominal machine.
    #[default]
    Auto,
    /// After this number of epochs, and at the end.
    Epochs(usize),
    /// Not even at the end.
    Never,
}

/// The number of Gibbs steps of an update or, for tours, the word `dynamic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TourLength {
    /// This number of steps.
    Steps(u32),
    /// Until the tour returns.
    Dynamic,
}

/// A dynamic tour is cut after this number of steps, counted, and treated as unfinished.
pub(crate) const MAX_DYNAMIC_STEPS: u32 = 100_000;

impl TourLength {
    /// The largest number of steps of a tour.
    pub(crate) fn limit(self) -> u32 {
        match self {
            Self::Steps(k) => k,
            Self::Dynamic => MAX_DYNAMIC_STEPS,
        }
    }
}

impl<T: Copy> Limit<T> {
    /// The limit, if there is one.
    pub fn get(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::At(limit) => Some(limit),
        }
    }
}

impl<T> From<Option<T>> for Limit<T> {
    fn from(limit: Option<T>) -> Self {
        limit.map_or(Self::Off, Self::At)
    }
}

impl<T: Copy> Auto<T> {
    /// The number, if it was given.
    pub fn get(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Given(number) => Some(number),
        }
    }
}

impl<T> From<Option<T>> for Auto<T> {
    fn from(number: Option<T>) -> Self {
        number.map_or(Self::Auto, Self::Given)
    }
}

/// The number types of settings that may also be a word: `usize`, `u32`, `f64`.
pub trait Number: Copy + Display + FromStr + Serialize + DeserializeOwned {}
impl Number for usize {}
impl Number for u32 {}
impl Number for f64 {}

/// Reads a number or a word.
struct Reader<T>(&'static str, PhantomData<T>);

impl<'de, N: Number, T: From<N> + FromStr<Err = String>> Visitor<'de> for Reader<(N, T)> {
    type Value = T;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "a number or {}", self.0)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        N::deserialize(number.into_deserializer()).map(T::from)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        N::deserialize(number.into_deserializer()).map(T::from)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        N::deserialize(number.into_deserializer()).map(T::from)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Implements `From`, `Display`, `FromStr`, `Serialize` and `Deserialize` for an enum of one number
/// and some words.
macro_rules! number_or_word {
    ([$($generic:tt)*] $Type:ty: $Number:ty as $Variant:ident $(, $word:literal as $Word:ident)+) => {
        impl<$($generic)*> From<$Number> for $Type {
            fn from(number: $Number) -> Self {
                Self::$Variant(number)
            }
        }

        impl<$($generic)*> Display for $Type {
            fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                match self {
                    Self::$Variant(number) => number.fmt(f),
                    $(Self::$Word => f.pad($word),)+
                }
            }
        }

        impl<$($generic)*> FromStr for $Type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$Word),)+
                    _ => text.parse().map(Self::$Variant).map_err(|_| {
                        format!("give a number, or {}", [$(concat!("`", $word, "`")),+].join(" or "))
                    }),
                }
            }
        }

        impl<$($generic)*> Serialize for $Type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::$Variant(number) => number.serialize(serializer),
                    $(Self::$Word => serializer.serialize_str($word),)+
                }
            }
        }

        impl<'de, $($generic)*> Deserialize<'de> for $Type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let words = concat!($("`", $word, "` "),+).trim_end();
                deserializer.deserialize_any(Reader::<($Number, Self)>(words, PhantomData))
            }
        }
    };
}

number_or_word!([T: Number] Auto<T>: T as Given, "auto" as Auto);
number_or_word!([T: Number] Limit<T>: T as At, "off" as Off);
number_or_word!([] EvalEvery: usize as Epochs, "auto" as Auto, "never" as Never);
number_or_word!([] TourLength: u32 as Steps, "dynamic" as Dynamic);

#[cfg(test)]
mod tests {
    use super::*;

    fn same<T>(text: &str, value: T)
    where
        T: FromStr<Err = String> + Display + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        assert_eq!(text.parse::<T>().unwrap(), value);
        assert_eq!(value.to_string(), text);
        let json = serde_json::to_value(&value).unwrap();
        assert_eq!(json.is_number(), text.parse::<f64>().is_ok(), "{json}");
        assert_eq!(serde_json::from_value::<T>(json).unwrap(), value);
    }

    #[test]
    fn numbers_and_words_survive_text_and_files() {
        same("auto", Auto::<usize>::Auto);
        same("7", Auto::Given(7usize));
        same("0.25", Auto::Given(0.25));
        same("off", Limit::<usize>::Off);
        same("1.5", Limit::At(1.5));
        same("never", EvalEvery::Never);
        same("auto", EvalEvery::Auto);
        same("3", EvalEvery::Epochs(3));
        same("dynamic", TourLength::Dynamic);
        same("10", TourLength::Steps(10));
        // A whole number is a real number too.
        assert_eq!(serde_json::from_str::<Limit<f64>>("1").unwrap(), Limit::At(1.0));
    }

    #[test]
    fn other_words_and_other_numbers_are_refused() {
        let text = "soon".parse::<EvalEvery>().unwrap_err();
        assert_eq!(text, "give a number, or `auto` or `never`");
        let json = |text: &str| serde_json::from_str::<Auto<usize>>(text).unwrap_err().to_string();
        assert!(json("-1").contains("expected usize"), "{}", json("-1"));
        assert!(json("1.5").contains("expected usize"), "{}", json("1.5"));
        assert!(json("true").contains("expected a number or `auto`"), "{}", json("true"));
        assert!(json("\"of\"").contains("`auto`"), "{}", json("\"of\""));
    }
}
