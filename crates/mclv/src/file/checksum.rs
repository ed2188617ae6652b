//! Protect a `.safetensors` file by a checksum of its whole content.
//!
//! The JSON in the file's metadata has the member `checksum`: the SHA-256 of the file with 64 zeros
//! in the place of the checksum. So the file stays a valid `.safetensors` file.

use crate::source::hex;
use crate::{Error, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;

const NAME: &str = "checksum";
/// The value of the member before the checksum is known. A serialised structure must have it as its
/// last member.
pub(crate) const NO_CHECKSUM: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Puts the checksum into a serialised file that holds [`NO_CHECKSUM`].
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let place = place(&bytes, NO_CHECKSUM).expect("a place for the checksum");
    let digest = hex(&Sha256::digest(&bytes));
    bytes[place..place + digest.len()].copy_from_slice(digest.as_bytes());
    bytes
}

/// Checks the content of a file against its checksum. Files of earlier versions and of other
/// programs have none.
///
/// # Errors
/// If the file is damaged.
pub(crate) fn check(path: &Path, bytes: &[u8], metadata: Option<&HashMap<String, String>>) -> Result<()> {
    // All metadata is searched, so that damage to a name does not hide the checksum.
    for text in metadata.into_iter().flat_map(HashMap::values) {
        let Ok(Value::Object(facts)) = serde_json::from_str(text) else { continue };
        let is_digest = |value: &Value| value.as_str().is_some_and(|text| text.len() == NO_CHECKSUM.len());
        for (name, value) in &facts {
            let is_checksum = name == NAME && value.as_str().is_some_and(|sum| is_intact(bytes, sum));
            let is_misspelt = name != NAME && name.len() == NAME.len() && is_digest(value);
            if is_misspelt || name == NAME && !is_checksum {
                let problem = "is damaged: its content does not match its checksum; get an intact copy";
                return Err(Error::malformed(path, problem));
            }
        }
    }
    Ok(())
}

fn is_intact(bytes: &[u8], sum: &str) -> bool {
    let Some(place) = place(bytes, sum).filter(|_| sum.len() == NO_CHECKSUM.len()) else { return false };
    let mut hash = Sha256::new();
    hash.update(&bytes[..place]);
    hash.update(NO_CHECKSUM);
    hash.update(&bytes[place + sum.len()..]);
    hex(&hash.finalize()) == sum
}

/// Returns the last place of a text in the header of a `.safetensors` file.
fn place(bytes: &[u8], text: &str) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let at = header.windows(text.len().max(1)).rposition(|window| window == text.as_bytes())?;
    Some(length.len() + at)
}
