//! Keep the running state of an estimator in a checkpoint: typed facts, and named arrays.

use crate::bits::{BitRows, words_for};
use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// An array in the state of an estimator.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Packed bits or counts.
    Words(Vec<u64>),
    /// Floating-point numbers.
    Numbers(Vec<f64>),
}

/// The running state of an estimator: a serialisable structure of facts, and named arrays.
///
/// ```
/// use mclv::gradient::State;
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Facts {
///     n_restarts: u64,
/// }
/// let state = State::new(&Facts { n_restarts: 3 }).with_words("chains", vec![0b101]);
/// assert_eq!(state.facts::<Facts>()?.n_restarts, 3);
/// assert_eq!(state.words("chains")?, [0b101]);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub(crate) facts: serde_json::Value,
    pub(crate) arrays: BTreeMap<String, Array>,
}

impl State {
    /// Creates a state with these facts and no arrays.
    ///
    /// # Panics
    /// If the facts cannot be written as JSON, for example maps whose keys are not text.
    pub fn new(facts: &impl Serialize) -> Self {
        let facts = serde_json::to_value(facts).expect("facts are plain JSON");
        Self { facts, arrays: BTreeMap::new() }
    }

    /// Adds an array of packed bits or counts, or replaces the array of that name.
    pub fn with_words(mut self, name: &str, words: Vec<u64>) -> Self {
        self.arrays.insert(name.into(), Array::Words(words));
        self
    }

    /// Adds an array of numbers, or replaces the array of that name.
    pub fn with_numbers(mut self, name: &str, numbers: Vec<f64>) -> Self {
        self.arrays.insert(name.into(), Array::Numbers(numbers));
        self
    }

    /// Returns the facts.
    ///
    /// # Errors
    /// If the facts are not of type `T`.
    pub fn facts<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.facts).map_err(|_| Error::MissingState { what: "the facts of the estimator" })
    }

    /// Returns facts that hold no other numbers than counts and measurements. Counts beyond 2⁵³ are
    /// damage, and would overflow.
    pub(crate) fn counts<T: DeserializeOwned>(&self) -> Result<T> {
        fn is_sound(facts: &serde_json::Value) -> bool {
            match facts {
                serde_json::Value::Number(n) => n.as_u64().is_none_or(|n| n <= 1 << 53),
                serde_json::Value::Array(values) => values.iter().all(is_sound),
                serde_json::Value::Object(values) => values.values().all(is_sound),
                _ => true,
            }
        }
        if is_sound(&self.facts) {
            self.facts()
        } else {
            Err(Error::MissingState { what: "sound counts of the estimator" })
        }
    }

    /// Returns an array of words.
    ///
    /// # Errors
    /// If there is no array of words of that name.
    pub fn words(&self, name: &'static str) -> Result<&[u64]> {
        match self.arrays.get(name) {
            Some(Array::Words(words)) => Ok(words),
            _ => Err(Error::MissingState { what: name }),
        }
    }

    /// Returns an array of numbers.
    ///
    /// # Errors
    /// If there is no array of numbers of that name.
    pub fn numbers(&self, name: &'static str) -> Result<&[f64]> {
        match self.arrays.get(name) {
            Some(Array::Numbers(numbers)) => Ok(numbers),
            _ => Err(Error::MissingState { what: name }),
        }
    }

    /// Returns an array of words as packed states of `n_bits` units.
    ///
    /// # Errors
    /// If there is no array of words of that name, if its words do not make whole rows, or if rows
    /// have ones beyond their units.
    pub fn bit_rows(&self, name: &'static str, n_bits: usize) -> Result<BitRows> {
        let words = self.words(name)?;
        if !words.len().is_multiple_of(words_for(n_bits)) {
            return Err(Error::MissingState { what: name });
        }
        let rows = BitRows::from_words(n_bits, words.to_vec());
        if rows.is_padded_with_zeros() { Ok(rows) } else { Err(Error::MissingState { what: name }) }
    }
}
