//! Keep a stopping set in a file: `.safetensors` with one tensor of packed words.

use super::StoppingSet;
use crate::bits::{BitRows, words_for};
use crate::file::MAX_MODEL;
use crate::source::read_file;
use crate::team::{Facts, agree};
use crate::{Error, Result, write_atomically};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::HashMap;
use std::path::Path;

/// The metadata key; its value is the number of hidden units.
const KEY: &str = "mclv-stopping-set";

impl StoppingSet {
    /// Writes the states to `path`. A failed write leaves no partial file.
    ///
    /// ```
    /// use mclv::{StoppingSet, bits::BitRows};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("set.safetensors");
    /// let set = StoppingSet::new(&BitRows::from_words(70, vec![1, 2, 3, 4]));
    /// set.save(&path)?;
    /// assert_eq!(StoppingSet::load(&path)?.states(), set.states());
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let states = self.states();
        let bytes: Vec<u8> = states.words().iter().flat_map(|w| w.to_le_bytes()).collect();
        let view = TensorView::new(Dtype::U64, vec![states.n_rows(), states.n_words()], &bytes)
            .expect("as many bytes as the shape says");
        let facts = HashMap::from([(KEY.into(), states.n_bits().to_string())]);
        let bytes = safetensors::serialize([("states", view)], Some(facts)).expect("one valid tensor");
        write_atomically(path, &bytes)
    }

    /// Reads a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If the file cannot be read or is not a stopping set.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = read_file(path, MAX_MODEL)?;
        let broken = |problem: &dyn std::fmt::Display| {
            Error::malformed(path, format!("is not an intact stopping set: {problem}; make it again"))
        };
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| broken(&e))?;
        let n_bits: usize = metadata
            .metadata()
            .as_ref()
            .and_then(|m| m.get(KEY))
            .and_then(|n| n.parse().ok())
            .filter(|&n| n > 0)
            .ok_or_else(|| broken(&"it does not say how many hidden units there are"))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|e| broken(&e))?;
        let tensor = tensors.tensor("states").map_err(|e| broken(&e))?;
        if tensor.dtype() != Dtype::U64 || tensor.shape().get(1..) != Some(&[words_for(n_bits)]) {
            return Err(broken(&format!("{:?} of shape {:?}", tensor.dtype(), tensor.shape())));
        }
        let words: Vec<u64> = tensor.data().as_chunks().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
        let states = BitRows::from_words(n_bits, words);
        if !states.is_padded_with_zeros() {
            return Err(broken(&format!("states have ones beyond their {n_bits} units")));
        }
        let set = Self::new(&states);
        if set.len() != states.n_rows() {
            return Err(broken(&"a state occurs twice"));
        }
        agree(&Facts::default().with_bytes(&format!("the content of {}", path.display()), &bytes))?;
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(n_bits: &str, shape: Vec<usize>, words: &[u64]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set");
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let view = TensorView::new(Dtype::U64, shape, &bytes).unwrap();
        let facts = HashMap::from([(KEY.into(), n_bits.into())]);
        std::fs::write(&path, safetensors::serialize([("states", view)], Some(facts)).unwrap()).unwrap();
        StoppingSet::load(&path).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_stopping_set_is_refused() {
        assert!(error("5", vec![2, 1], &[1, 1]).contains("twice"));
        assert!(error("5", vec![2, 1], &[1, 32]).contains("beyond their 5 units"));
        assert!(error("70", vec![2, 1], &[1, 2]).contains("of shape [2, 1]"));
        assert!(error("none", vec![2, 1], &[1, 2]).contains("how many hidden units"));
        assert!(error("0", vec![2, 1], &[1, 2]).contains("how many hidden units"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set");
        std::fs::write(&path, b"no tensors at all").unwrap();
        assert!(StoppingSet::load(&path).unwrap_err().to_string().contains("not an intact stopping set"));
        assert!(StoppingSet::load(folder.path()).is_err());
    }
}
