//! Find a reader by its name, and give it the files that `cargo fuzz` makes.

#![forbid(unsafe_code)]

#[path = "../crates/mclv/tests/fuzz/readers.rs"]
mod readers;

use std::path::Path;
use std::sync::LazyLock;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

/// Reads a file by the reader of that name.
///
/// # Panics
/// If the reader does, or if there is no such reader.
pub fn read(name: &str, bytes: &[u8]) {
    let reader = readers::READERS.iter().find(|reader| reader.name == name).expect("a known reader");
    (reader.read)(FOLDER.path(), bytes);
}

/// Writes the valid files of every reader into `folder/NAME`, for a corpus.
///
/// # Errors
/// If they cannot be written.
pub fn write_seeds(folder: &Path) -> std::io::Result<()> {
    for reader in readers::READERS {
        let folder = folder.join(reader.name);
        std::fs::create_dir_all(&folder)?;
        for (k, parts) in (reader.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{k}")), (reader.join)(parts))?;
        }
    }
    Ok(())
}
