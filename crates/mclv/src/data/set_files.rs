//! Take parts of a named set, reading each of its files once.

use std::ops::Range;

use super::idx::Idx;
use super::named::{Content, KnownFile, NamedSet, Verified};
use super::{DataProvenance, Dataset, Labels, Mirrors, Rows, SearchPath, Split};
use crate::bits::BitRows;
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
    /// Those of the files of [`NamedSet::files`].
    tables: [Option<BitRows>; 3],
}

/// The seed that divides the persons of [`Content::Pairs`] among the parts. The parts do not depend
/// on the user's seed, so that results of different runs can be compared.
const PERSONS: u64 = 805;

/// Pictures with their labels.
struct Pictures {
    images: Idx,
    labels: Idx,
}

impl NamedSet {
    /// The number of rows of [`Split::All`].
    pub(super) fn n_all_rows(&self) -> usize {
        let [train, validation, test] = self.n_rows;
        train + validation + if matches!(self.content, Content::Pictures { .. }) { 0 } else { test }
    }
}

impl<'a> SetFiles<'a> {
    /// Creates the set without reading a file.
    pub(super) fn new(
        set: &'a NamedSet,
        search: SearchPath,
        mirrors: Mirrors,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { set, search, mirrors, progress, pictures: [None, None], tables: [None, None, None] }
    }

    /// The name of the set.
    pub(super) fn name(&self) -> &'static str {
        self.set.name
    }

    /// The numbers of training, validation and test rows.
    pub(super) fn n_rows(&self) -> [usize; 3] {
        self.set.n_rows
    }

    /// The number of values per row.
    pub(super) fn n_columns(&self) -> usize {
        self.set.n_columns
    }

    /// Returns a part of the set. Missing files are fetched if the listener allows that.
    pub(super) fn part(&mut self, split: Split) -> Result<Dataset> {
        match &self.set.content {
            Content::Pictures { files, classes } => self.pictures(files, classes, split),
            Content::Tables(files) => {
                let wanted = match split {
                    Split::Train => 0..1,
                    Split::Validation => 1..2,
                    Split::Test => 2..3,
                    Split::All => 0..3,
                };
                self.tables(files, wanted, split)
            }
            Content::Pairs(file) => {
                let parts = if split == Split::All { &Split::EACH[..3] } else { &[split] };
                self.pairs(file, parts, split)
            }
        }
    }

    /// Returns the training rows together with the validation rows.
    pub(super) fn train_and_validation(&mut self) -> Result<Dataset> {
        match &self.set.content {
            Content::Pictures { .. } => self.part(Split::All),
            Content::Tables(files) => self.tables(files, 0..2, Split::Train),
            Content::Pairs(file) => self.pairs(file, &Split::EACH[..2], Split::Train),
        }
    }

    fn pictures(
        &mut self,
        files: &[KnownFile; 4],
        classes: &[&'static str; 10],
        split: Split,
    ) -> Result<Dataset> {
        let [train, validation, test] = self.set.n_rows;
        let (pair, range) = match split {
            Split::Train => (0, validation..validation + train),
            Split::Validation => (0, 0..validation),
            Split::All => (0, 0..validation + train),
            Split::Test => (1, 0..test),
        };
        let files = [&files[2 * pair], &files[2 * pair + 1]];
        if self.pictures[pair].is_none() {
            let [images, labels] = files;
            let read = || Ok(Pictures { images: self.read(images)?, labels: self.read(labels)? });
            self.pictures[pair] = Some(in_turn(read)?);
        }
        let Pictures { images, labels } = self.pictures[pair].as_ref().expect("read above");
        let n_columns = images.n_columns();
        // Bytes become four times as large only now.
        let bytes = &images.bytes[range.start * n_columns..range.end * n_columns];
        let rows = Rows::from_bytes(n_columns, bytes, u8::MAX);
        let labels = Labels {
            ids: labels.bytes[range].iter().map(|&b| u32::from(b)).collect(),
            names: classes.map(Into::into).to_vec(),
        };
        let (source, sha256) = (files[0].name.into(), images.sha256.clone());
        let mut dataset = self.dataset(rows, split, source, sha256);
        dataset.provenance.preprocessing = "value/255".into();
        dataset.image_shape = images.image_shape();
        dataset.labels = Some(labels);
        Ok(dataset)
    }

    /// Returns the rows of some of the files.
    fn tables(&mut self, files: &[KnownFile; 3], wanted: Range<usize>, split: Split) -> Result<Dataset> {
        for k in wanted.clone() {
            self.read_table(k, &files[k])?;
        }
        let mut bits = BitRows::zeros(0, self.set.n_columns);
        self.tables[wanted.clone()].iter().flatten().for_each(|table| bits.append(table));
        let names: Vec<&str> = files[wanted.clone()].iter().map(|file| file.name).collect();
        let rows = Rows::Bits(bits);
        let sha256 = match wanted.len() {
            1 => files[wanted.start].sha256.into(),
            _ => rows.sha256(),
        };
        Ok(self.dataset(rows, split, names.join(", "), sha256))
    }

    /// Returns the rows of the persons of some parts, in the order of the file.
    fn pairs(&mut self, file: &KnownFile, parts: &[Split], split: Split) -> Result<Dataset> {
        self.read_table(0, file)?;
        let n_persons = self.set.n_rows.iter().sum::<usize>() / 2;
        let mut persons: Vec<usize> =
            parts.iter().flat_map(|part| part.of_file(n_persons, PERSONS)).collect();
        persons.sort_unstable();
        let indices: Vec<usize> =
            persons.into_iter().flat_map(|person| [2 * person, 2 * person + 1]).collect();
        let rows = Rows::Bits(self.tables[0].as_ref().expect("read above").select(&indices));
        let mut dataset = self.dataset(rows, split, file.name.into(), file.sha256.into());
        dataset.provenance.division = Some("by person, the same for every seed".into());
        Ok(dataset)
    }

    fn dataset(&self, rows: Rows, split: Split, source: String, sha256: String) -> Dataset {
        let name: String = self.set.name.into();
        let provenance = DataProvenance {
            name: name.clone(),
            source,
            sha256,
            preprocessing: "none".into(),
            split,
            division: None,
            seed: None,
            n_rows: rows.n_rows(),
            n_columns: rows.n_columns(),
            image_shape: None,
            column_names: Vec::new(),
        };
        Dataset { name, rows, labels: None, image_shape: None, best_log_likelihood: None, provenance }
    }

    fn read_table(&mut self, k: usize, file: &KnownFile) -> Result<()> {
        if self.tables[k].is_none() {
            let bytes: Vec<u8> = in_turn(|| self.read(file))?;
            // The digest has shown that values and the signs after them alternate.
            let values: Vec<u8> = bytes.into_iter().step_by(2).collect();
            self.tables[k] = Some(BitRows::pack(self.set.n_columns, &values, |&value| value == b'1'));
        }
        Ok(())
    }

    fn read<T: Verified>(&self, file: &KnownFile) -> Result<T> {
        Ok(self.set.open(file, &self.search, &self.mirrors, self.progress)?.1)
    }
}

/// Reads files. With several ranks, the first reads first: it may have to fetch the files, which
/// the others then find.
fn in_turn<T>(read: impl Fn() -> Result<T>) -> Result<T> {
    let first = team::together(team::is_first().then(&read).transpose())?;
    team::together(first.map_or_else(read, Ok))
}

#[cfg(test)]
mod tests {
    use super::super::{density, named::MNIST};
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
        let files: Vec<KnownFile> = MNIST
            .files()
            .iter()
            .map(|file| {
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
            })
            .collect();
        let content = Content::Pictures { files: files.try_into().unwrap(), classes: [""; 10] };
        NamedSet { name: "narrow", folder: "narrow", content, mirrors: &[], npm_package: None, ..MNIST }
    }

    #[test]
    fn each_file_is_read_when_it_is_needed_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let set = narrow(dir.path());
        let open = || SetFiles::new(&set, search(dir.path()), Mirrors::none(), &Silent);
        let remove = |part: &str| {
            for file in set.files().iter().filter(|file| file.name.starts_with(part)) {
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

    /// Writes a table into the folder `folder` of the cache.
    fn write_table(dir: &Path, name: &'static str, rows: &[&str]) -> KnownFile {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::create_dir_all(dir.join("cache/folder")).unwrap();
        fs::write(dir.join("cache/folder").join(name), &text).unwrap();
        let sha256 = crate::source::hex(&Sha256::digest(&text)).leak();
        KnownFile { name, n_bytes: text.len() as u64, sha256 }
    }

    fn binary(set: &NamedSet, dir: &Path, n_rows: [usize; 3], content: Content) -> NamedSet {
        let set = NamedSet { name: "binary", folder: "folder", n_columns: 2, n_rows, content, ..*set };
        assert_eq!(set.find(&search(dir)), Some(dir.join("cache/folder")));
        set
    }

    fn values(dataset: &Dataset) -> Vec<String> {
        let row = |r| (0..2).map(|c| dataset.rows.get(r, c).to_string()).collect();
        (0..dataset.n_rows()).map(row).collect()
    }

    #[test]
    fn tables_have_the_published_parts() {
        let dir = tempfile::tempdir().unwrap();
        let files = [("t", vec!["0,1", "1,1"]), ("v", vec!["0,0"]), ("e", vec!["1,0", "0,0", "1,1"])];
        let files = files.map(|(name, rows)| write_table(dir.path(), name, &rows));
        let set = binary(&density::SETS[0], dir.path(), [2, 1, 3], Content::Tables(files));
        let open = || SetFiles::new(&set, search(dir.path()), Mirrors::none(), &Silent);
        let expected =
            [&["01", "11"][..], &["00"], &["10", "00", "11"], &["01", "11", "00", "10", "00", "11"]];
        for (split, expected) in Split::EACH.into_iter().zip(expected) {
            let part = open().part(split).unwrap();
            assert_eq!(values(&part), expected, "{split}");
            assert_eq!((part.provenance.n_rows, part.provenance.n_columns), (expected.len(), 2));
        }
        let test = open().part(Split::Test).unwrap().provenance;
        assert_eq!((test.source.as_str(), test.sha256.as_str()), ("e", files[2].sha256));
        assert_eq!(values(&open().train_and_validation().unwrap()), ["01", "11", "00"]);
        assert_eq!(set.n_all_rows(), 6);
        // A damaged file is not taken for the set.
        fs::write(dir.path().join("cache/folder/t"), "0,1\n1,0\n").unwrap();
        assert!(matches!(open().part(Split::Train), Err(Error::ChecksumMismatch { .. })));
    }

    #[test]
    fn both_rows_of_a_person_stay_in_one_part() {
        let dir = tempfile::tempdir().unwrap();
        // Person p has the rows "0,0" and "0,1", or "1,0" and "1,1".
        let rows: Vec<&str> = (0..20).flat_map(|p| [["0,0", "0,1"], ["1,0", "1,1"]][p % 2]).collect();
        let file = write_table(dir.path(), "p", &rows);
        let set = binary(&density::SETS[10], dir.path(), [32, 4, 4], Content::Pairs(file));
        let mut files = SetFiles::new(&set, search(dir.path()), Mirrors::none(), &Silent);
        let mut n_ones = 0;
        for (split, n_rows) in Split::EACH.into_iter().zip([32, 4, 4, 40]) {
            let part = files.part(split).unwrap();
            assert_eq!(part.n_rows(), n_rows);
            let (first, second): (Vec<_>, Vec<_>) =
                values(&part).into_iter().enumerate().partition(|(r, _)| r % 2 == 0);
            for ((_, first), (_, second)) in first.iter().zip(&second) {
                assert!(first[..1] == second[..1] && &first[1..] == "0" && &second[1..] == "1");
                n_ones += usize::from(&first[..1] == "1" && split != Split::All);
            }
        }
        assert_eq!(n_ones, 10);
        assert_eq!(files.train_and_validation().unwrap().n_rows(), 36);
    }
}
