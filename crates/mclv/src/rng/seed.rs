//! Write seeds to files, and read them again.
//!
//! Whole numbers of TOML end at 2⁶³ − 1, so larger seeds are written as text. A reader accepts both.

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt::Formatter;

/// Writes a seed.
pub(crate) fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*seed) {
        Ok(_) => serializer.serialize_u64(*seed),
        Err(_) => serializer.collect_str(seed),
    }
}

/// Reads a seed.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Seed)
}

/// Writes and reads a seed that may be missing.
pub(crate) mod optional {
    use super::{Deserializer, Seed, Serializer};

    pub(crate) fn serialize<S: Serializer>(seed: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match seed {
            Some(seed) => super::serialize(seed, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        struct Optional;

        impl<'de> super::Visitor<'de> for Optional {
            type Value = Option<u64>;

            fn expecting(&self, f: &mut super::Formatter<'_>) -> std::fmt::Result {
                Seed.expecting(f)
            }

            fn visit_none<E: super::Error>(self) -> Result<Option<u64>, E> {
                Ok(None)
            }

            fn visit_unit<E: super::Error>(self) -> Result<Option<u64>, E> {
                Ok(None)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
                super::deserialize(deserializer).map(Some)
            }
        }

        deserializer.deserialize_option(Optional)
    }
}

struct Seed;

impl Visitor<'_> for Seed {
    type Value = u64;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "a whole number from 0 to {}", u64::MAX)
    }

    fn visit_u64<E: Error>(self, seed: u64) -> Result<u64, E> {
        Ok(seed)
    }

    fn visit_i64<E: Error>(self, seed: i64) -> Result<u64, E> {
        u64::try_from(seed).map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(seed), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use crate::data::DataSpec;
    use crate::settings::Settings;

    #[test]
    fn seeds_of_all_sizes_survive_toml_and_json() {
        for seed in [0, 7, i64::MAX as u64, 1 << 63, u64::MAX] {
            let settings = Settings { seed: Some(seed), ..Settings::default() };
            let toml = toml::to_string(&settings).unwrap();
            assert_eq!(toml::from_str::<Settings>(&toml).unwrap(), settings);
            let json = serde_json::to_value(&settings).unwrap();
            assert_eq!(serde_json::from_value::<Settings>(json.clone()).unwrap(), settings);
            // Seeds that fit stay numbers.
            assert_eq!(json["seed"].is_u64(), seed < 1 << 63);
            let spec = DataSpec { seed, ..DataSpec::default() };
            let toml = toml::to_string(&spec).unwrap();
            assert_eq!(toml::from_str::<DataSpec>(&toml).unwrap(), spec);
        }
        // Files of earlier versions may hold large seeds as numbers of JSON.
        let large: Settings = serde_json::from_str("{\"seed\": 18446744073709551615}").unwrap();
        assert_eq!(large.seed, Some(u64::MAX));
        assert_eq!(toml::from_str::<Settings>("").unwrap().seed, None);
    }

    #[test]
    fn other_seeds_are_refused_with_the_range() {
        for text in ["seed = -1", "seed = \"18446744073709551616\"", "seed = \"x\"", "seed = 1.5"] {
            let error = toml::from_str::<Settings>(text).unwrap_err().to_string();
            assert!(error.contains("a whole number from 0 to 18446744073709551615"), "{error}");
        }
    }
}
