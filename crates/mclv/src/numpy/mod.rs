//! Read and write NumPy's files, for models and for data.

mod header;
mod npy;
mod npz;

pub(crate) use npy::{Array, Numbers, Words, read as read_npy, read_words, to_bytes as to_npy};
pub(crate) use npz::{Archive, to_bytes as to_npz};
