//! Identify a model by its parameters.

use super::Rbm;
use crate::source::hex;
use sha2::{Digest, Sha256};

impl Rbm {
    /// Returns the SHA-256 of the parameters.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update((self.n_visible() as u64).to_le_bytes());
        for values in [&self.weights()[..], self.visible_bias(), self.hidden_bias()] {
            values.iter().for_each(|x| hash.update(x.to_le_bytes()));
        }
        hex(&hash.finalize())
    }
}
