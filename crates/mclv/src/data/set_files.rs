//! Take parts of a named set, reading each of its files once.

use super::idx::Idx;
use super::named::{KnownFile, NamedSet};
use super::{DataProvenance, Dataset, Labels, Mirrors, Rows, SearchPath, Split};
use crate::progress::Progress;
use crate::{Result, team};

/// The files of a named set. Each is read when a part first needs it, and kept.
pub(super) struct SetFiles<'a> {
    set: &'a NamedSet,
    search: SearchPath,
    mirrors: Mirrors,
    progress: &'a dyn Progress,
    /// Those of the training files and those of the test files.
    pictures: [Option<Pictures>; 2],
}

/// The number of pixels per row.
pub(super) const N_COLUMNS: usize = 784;

/// Pictures with their labels.
struct Pictures {
    images: Idx,
    labels: Idx,
}

impl<'a> SetFiles<'a> {
    /// Creates the set without reading a file.
    pub(super) fn new(
        set: &'a NamedSet,
        search: SearchPath,
        mirrors: Mirrors,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { set, search, mirrors, progress, pictures: [None, None] }
    }

    /// The name of the set.
    pub(super) fn name(&self) -> &'static str {
        self.set.name
    }

    /// Returns a part of the set. Missing files are fetched if the listener allows that.
    pub(super) fn part(&mut self, split: Split) -> Result<Dataset> {
        let (pair, range) = match split {
            Split::Train => (0, 5_000..60_000),
            Split::Validation => (0, 0..5_000),
            Split::All => (0, 0..60_000),
            Split::Test => (1, 0..10_000),
        };
        let files = [self.set.files[2 * pair], self.set.files[2 * pair + 1]];
        if self.pictures[pair].is_none() {
            self.pictures[pair] = Some(self.read_in_turn(&files)?);
        }
        let Pictures { images, labels } = self.pictures[pair].as_ref().expect("read above");
        let n_columns = images.n_columns();
        // Bytes become four times as large only now.
        let bytes = &images.bytes[range.start * n_columns..range.end * n_columns];
        let name = self.set.name;
        Ok(Dataset {
            name: name.into(),
            rows: Rows::from_bytes(n_columns, bytes, u8::MAX),
            labels: Some(Labels {
                ids: labels.bytes[range.clone()].iter().map(|&b| u32::from(b)).collect(),
                names: self.set.classes.map(Into::into).to_vec(),
            }),
            image_shape: images.image_shape(),
            best_log_likelihood: None,
            provenance: DataProvenance {
                name: name.into(),
                source: files[0].name.into(),
                sha256: images.sha256.clone(),
                preprocessing: "value/255".into(),
                split,
                division: None,
                seed: None,
                n_rows: range.len(),
                n_columns,
                image_shape: None,
            },
        })
    }

    /// Reads pictures and labels. With several ranks, the first reads first: it may have to fetch
    /// the files, which the others then find.
    fn read_in_turn(&self, files: &[KnownFile; 2]) -> Result<Pictures> {
        let first = team::together(team::is_first().then(|| self.read(files)).transpose())?;
        team::together(first.map_or_else(|| self.read(files), Ok))
    }

    fn read(&self, files: &[KnownFile; 2]) -> Result<Pictures> {
        let read = |file| self.set.open(file, &self.search, &self.mirrors, self.progress);
        Ok(Pictures { images: read(&files[0])?.1, labels: read(&files[1])?.1 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::named::MNIST;
    use super::*;
    use crate::Error;
    use crate::progress::Silent;
    use crate::team::tests::on_ranks;
    use sha2::{Digest, Sha256};
    use std::fs;
    use std::path::Path;

    fn search(dir: &Path) -> SearchPath {
        SearchPath { data_dir: None, cache_dir: dir.join("cache") }
    }

    /// A set of MNIST's numbers of rows, one pixel each, in files that hold `n % 251` at row `n`.
    fn narrow(dir: &Path) -> NamedSet {
        fs::create_dir_all(dir.join("cache/narrow")).unwrap();
        let files = MNIST.files.map(|file| {
            let n: u32 = if file.name.starts_with("train") { 60_000 } else { 10_000 };
            let rows = n.to_be_bytes();
            let header = match file.name.contains("images") {
                true => [&[0, 0, 8, 3][..], &rows, &[0, 0, 0, 1, 0, 0, 0, 1]].concat(),
                false => [&[0, 0, 8, 1][..], &rows].concat(),
            };
            let bytes: Vec<u8> = header.into_iter().chain((0..n).map(|row| (row % 251) as u8)).collect();
            fs::write(dir.join("cache/narrow").join(file.name), &bytes).unwrap();
            let sha256 = crate::source::hex(&Sha256::digest(&bytes));
            KnownFile { name: file.name, n_bytes: bytes.len() as u64, sha256: sha256.leak() }
        });
        NamedSet { name: "narrow", files, mirrors: &[], npm_package: None, ..MNIST }
    }

    #[test]
    fn each_file_is_read_when_it_is_needed_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let set = narrow(dir.path());
        let open = || SetFiles::new(&set, search(dir.path()), Mirrors::none(), &Silent);
        let remove = |part: &str| {
            for file in set.files.iter().filter(|file| file.name.starts_with(part)) {
                fs::remove_file(dir.path().join("cache/narrow").join(file.name)).unwrap();
            }
        };
        let expected = Split::EACH.map(|split| open().part(split).unwrap());
        assert_eq!(expected.each_ref().map(Dataset::n_rows), [55_000, 5_000, 10_000, 60_000]);
        assert_eq!(expected[0].rows.get(0, 0), (5_000 % 251) as f32 / 255.0);
        assert_eq!(expected[0].labels.as_ref().unwrap().ids[0], 5_000 % 251);

        let mut files = open();
        assert_eq!(files.part(Split::Test).unwrap(), expected[2]);
        remove("t10k");
        assert_eq!(files.part(Split::Train).unwrap(), expected[0]);
        remove("train");
        for (split, part) in Split::EACH.into_iter().zip(&expected) {
            assert_eq!(files.part(split).unwrap(), *part);
        }
        assert!(matches!(open().part(Split::Train), Err(Error::NotAvailable { .. })));
    }

    #[test]
    fn all_ranks_read_a_set_or_hear_why_not() {
        let dir = tempfile::tempdir().unwrap();
        let set = narrow(dir.path());
        let part = |cache: &Path| {
            let part = SetFiles::new(&set, search(cache), Mirrors::none(), &Silent).part(Split::Test);
            part.map_err(|error| error.to_string())
        };
        let alone = part(dir.path());
        assert!(alone.is_ok());
        assert!(on_ranks(3, |_| part(dir.path())).into_iter().all(|part| part == alone));
        let nowhere = dir.path().join("nowhere");
        for (rank, part) in on_ranks(3, |_| part(&nowhere)).into_iter().enumerate() {
            let word = part.unwrap_err();
            assert!(word.contains("narrow is not on this machine"), "{word}");
            assert_eq!(word.starts_with("rank 0: "), rank > 0, "{word}");
        }
    }
}
