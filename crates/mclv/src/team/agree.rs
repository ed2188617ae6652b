//! End work whose ranks were not started alike.

use super::current;
use crate::{Error, Result};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// How a message with facts begins. Another version of the program may send something else.
const MARK: &[u8] = b"mclv facts\n";
/// The most differences that an error names, and the most characters of a value in it.
const MOST_NAMED: usize = 3;
const MOST_SHOWN: usize = 80;

/// What must be the same for all ranks: names with values. Large values are given as digests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(BTreeMap<String, String>);

impl Facts {
    /// Facts that begin with the version of this library.
    pub fn of_program() -> Self {
        Self::default().with("version", &env!("CARGO_PKG_VERSION"))
    }

    /// Adds a value. The fields of a structure become facts of their own.
    pub fn with(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        self.add(name, serde_json::to_value(value).unwrap_or_else(|error| error.to_string().into()));
        self
    }

    fn add(&mut self, name: &str, value: Value) {
        match value {
            Value::Object(fields) => {
                for (field, value) in fields {
                    self.add(&if name.is_empty() { field } else { format!("{name}.{field}") }, value);
                }
            }
            Value::String(text) => drop(self.0.insert(name.into(), text)),
            value => drop(self.0.insert(name.into(), value.to_string())),
        }
    }

    /// Adds the digest of bytes.
    pub fn with_bytes(self, name: &str, bytes: &[u8]) -> Self {
        let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        self.with(name, &digest)
    }

    /// Leaves out a fact that may differ.
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Names the first differences to `first`, the facts of the first rank.
    fn differences(&self, first: &Self) -> Vec<String> {
        let of = |facts: &Self, name: &String| {
            facts.0.get(name).map_or("not given".to_owned(), |value| shortened(value))
        };
        let names = self.0.keys().chain(first.0.keys().filter(|name| !self.0.contains_key(*name)));
        let differs = |name: &&String| self.0.get(*name) != first.0.get(*name);
        names
            .filter(differs)
            .map(|name| format!("{name} is {}, not {}", of(self, name), of(first, name)))
            .collect()
    }
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.into(),
    }
}

/// Compares facts with those of the other ranks. Each rank calls this before the first work that
/// depends on them, because ranks that disagree would mix their results or wait for ever.
///
/// # Errors
/// [`Error::RanksDiffer`] on all ranks, if a rank has other facts than the first.
pub fn agree(mine: &Facts) -> Result<()> {
    let Some(team) = current().filter(|team| team.size() > 1) else { return Ok(()) };
    let text = serde_json::to_vec(&mine.0).expect("texts are plain JSON");
    let answers = team.gather(&[MARK, &text].concat());
    let read = |answer: &Vec<u8>| serde_json::from_slice(answer.strip_prefix(MARK)?).ok().map(Facts);
    let all: Vec<Option<Facts>> = answers.iter().map(read).collect();
    let differ = |rank: usize, how: String| Err(Error::RanksDiffer { rank, how });
    for (rank, facts) in all.iter().enumerate() {
        match (facts, &all[0]) {
            (Some(facts), Some(first)) if facts == first => {}
            (Some(facts), Some(first)) => {
                let mut differences = facts.differences(first);
                let n_more = differences.len().saturating_sub(MOST_NAMED);
                differences.truncate(MOST_NAMED);
                if n_more > 0 {
                    differences.push(format!("{n_more} more differences"));
                }
                return differ(rank, differences.join("; "));
            }
            _ => return differ(rank, "it does other work, or runs another version".into()),
        }
    }
    Ok(())
}
