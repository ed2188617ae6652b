//! Open a data file: uncompress, hash and count it while reading, and verify everything that it
//! promises.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::allowance::Allowance;
use crate::progress::{Progress, Silent};
use crate::{Error, Result, team};

/// The largest factor by which a deflate stream can grow.
const MAX_DEFLATE_RATIO: u64 = 1032;
/// The largest initial size of a buffer, whatever a header promises.
const MAX_INITIAL_CAPACITY: u64 = 1 << 26;
const BUFFER: usize = 1 << 16;
/// The length of a block of a file that ranks compare, and the most blocks.
const SAMPLE: u64 = 1 << 12;
const MOST_SAMPLES: u64 = 1 << 10;

/// Returns bytes as two hexadecimal digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns true if bytes begin like a gzip file.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Opens a regular file and returns its length. Folders, pipes, devices and missing files are
/// rejected.
///
/// Every file is opened through this function, because files may come from strangers: a pipe would
/// wait for ever, and a device may have no end.
///
/// # Errors
/// If the file is missing or not a regular file, or if the system refuses to open it.
pub fn open_file(path: &Path) -> Result<(File, u64)> {
    // The check comes before opening, because opening a pipe would wait for its writer.
    let metadata = path.metadata().map_err(Error::io("read", path))?;
    if metadata.is_dir() {
        return Err(Error::IsAFolder { path: path.into() });
    }
    if !metadata.is_file() {
        return Err(Error::malformed(path, "is not a regular file; save its content as one first"));
    }
    Ok((File::open(path).map_err(Error::io("read", path))?, metadata.len()))
}

/// Reads a whole regular file of at most `at_most` bytes.
///
/// Every file of a run, a model or a configuration is read through this function, because such files
/// may come from strangers: what [`open_file`] rejects is rejected, and so are longer files.
///
/// # Errors
/// If the file is missing, not a regular file, longer than `at_most`, or larger than memory.
pub fn read_file(path: &Path, at_most: u64) -> Result<Vec<u8>> {
    let (file, length) = open_file(path)?;
    let too_long = |n: u64| Error::malformed(path, format!("has {n} bytes; at most {at_most} are read"));
    if length > at_most {
        return Err(too_long(length));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize).map_err(|e| Error::io("read", path)(e.into()))?;
    // The file may grow while it is read.
    let read =
        file.take(at_most.saturating_add(1)).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    if read as u64 > at_most { Err(too_long(read as u64)) } else { Ok(bytes) }
}

/// Reads a whole regular file of at most `at_most` bytes as text.
///
/// # Errors
/// Those of [`read_file`], or if the file is not UTF-8.
pub fn read_text(path: &Path, at_most: u64) -> Result<String> {
    String::from_utf8(read_file(path, at_most)?).map_err(|error| {
        let place = format!("byte {}", error.utf8_error().valid_up_to());
        Error::malformed_at(path, place, "is not text in UTF-8")
    })
}

/// Returns the name of a file without its folder.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The uncompressed content of a plain or gzipped file. The first bytes decide which it is.
pub(crate) struct Source<'a> {
    path: PathBuf,
    reader: BufReader<Hashing<'a>>,
    /// The number of bytes handed out so far.
    position: u64,
    /// The largest possible length of the content.
    at_most: u64,
    /// The memory that the content may take.
    allowance: Allowance,
    /// True if the content is being uncompressed.
    pub is_gzip: bool,
}

/// A reader that hashes everything it reads.
struct Hashing<'a> {
    inner: Heeding<'a, Box<dyn Read + 'a>>,
    hash: Sha256,
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hash.update(&buffer[..n]);
        Ok(n)
    }
}

/// A reader that fails as soon as a listener cancels.
pub(crate) struct Heeding<'a, R> {
    inner: R,
    progress: &'a dyn Progress,
}

impl<'a, R> Heeding<'a, R> {
    pub(crate) fn new(inner: R, progress: &'a dyn Progress) -> Self {
        Self { inner, progress }
    }
}

impl<R: Read> Read for Heeding<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.cancelled() {
            return Err(io::Error::other(Error::Cancelled));
        }
        self.inner.read(buffer)
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.position += n as u64;
        // A plain file is never longer than its allowance.
        if self.position > self.allowance.at_most() && self.is_gzip {
            return Err(io::Error::other(self.allowance.exceeded(self.position)));
        }
        Ok(n)
    }
}

impl Source<'static> {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (file, length) = open_file(path)?;
        Self::new(path, BufReader::with_capacity(BUFFER, file), length)
    }

    /// Opens a file that all ranks of a team see. Each rank reads its part of the bytes, and
    /// receives the other parts. If that fails, all ranks know of it. Ranks also compare samples of
    /// the file, because parts of different files would make a file that nobody has.
    pub(crate) fn open_together(path: &Path) -> Result<Self> {
        let (rank, size) = (team::rank(), team::size());
        if size == 1 {
            return Self::open(path);
        }
        let parts = team::share(size, |mine| mine.map(|rank| read_part(path, rank, size)).collect())
            .map_err(|error| match error {
                Error::OtherRank { .. } => error,
                own => Error::OtherRank { rank, problem: own.to_string() },
            })?;
        let length = parts[0].length;
        for (rank, part) in parts.iter().enumerate() {
            let problem = match part {
                Part { length: other, .. } if *other != length => {
                    format!("has {length} bytes for rank 0 and {other} for rank {rank}")
                }
                part if part.samples != parts[0].samples => {
                    format!("has another content for rank {rank} than for rank 0")
                }
                _ => continue,
            };
            let problem = Error::malformed(path, problem + "; all ranks must see the same file");
            return Err(Error::OtherRank { rank, problem: problem.to_string() });
        }
        let bytes = parts.into_iter().map(|part| part.bytes).collect::<Vec<_>>().concat();
        Self::new(path, Cursor::new(bytes), length)
    }
}

/// What one rank reads of a file that all read together.
struct Part {
    /// The length of the file.
    length: u64,
    /// The digest of blocks that are spread over the whole file.
    samples: Vec<u8>,
    /// The bytes of this part.
    bytes: Vec<u8>,
}

team::parcel!(Part { length, samples, bytes });

/// Reads the part of one of `size` ranks.
fn read_part(path: &Path, rank: usize, size: usize) -> Result<Part> {
    let (mut file, length) = open_file(path)?;
    let samples = samples(&mut file, length).map_err(Error::io("read", path))?;
    let mine = team::part(usize::try_from(length).expect("a file that memory holds"), rank, size);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(mine.len()).map_err(|e| Error::io("read", path)(e.into()))?;
    file.seek(SeekFrom::Start(mine.start as u64))
        .and_then(|_| file.take(mine.len() as u64).read_to_end(&mut bytes))
        .map_err(Error::io("read", path))?;
    if bytes.len() < mine.len() {
        let found = (mine.start + bytes.len()) as u64;
        return Err(Error::Truncated { path: path.into(), expected: length, found });
    }
    Ok(Part { length, samples, bytes })
}

/// Returns the digest of blocks that are spread over the whole file. They cover a small file.
fn samples(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let mut hash = Sha256::new();
    let n = length.div_ceil(SAMPLE).min(MOST_SAMPLES);
    for k in 0..n {
        let from = length.saturating_sub(SAMPLE) * k / (n - 1).max(1);
        file.seek(SeekFrom::Start(from))?;
        let mut block = Vec::new();
        file.take(SAMPLE).read_to_end(&mut block)?;
        hash.update(&block);
    }
    Ok(hash.finalize().to_vec())
}

impl<'a> Source<'a> {
    /// Takes `bytes` as the content of a file. `path` names it in errors.
    pub(crate) fn from_bytes(path: &Path, bytes: &'a [u8]) -> Result<Self> {
        Self::new(path, bytes, bytes.len() as u64)
    }

    fn new(path: &Path, mut raw: impl BufRead + 'a, length: u64) -> Result<Self> {
        let is_gzip = is_gzip(raw.fill_buf().map_err(Error::io("read", path))?);
        let (inner, at_most): (Box<dyn Read + 'a>, _) = if is_gzip {
            (Box::new(MultiGzDecoder::new(raw)), length.saturating_mul(MAX_DEFLATE_RATIO))
        } else {
            (Box::new(raw), length)
        };
        let inner = Heeding::new(inner, &Silent);
        let reader = BufReader::with_capacity(BUFFER, Hashing { inner, hash: Sha256::new() });
        let allowance = Allowance::of_file(path, length)?;
        Ok(Self { path: path.into(), reader, position: 0, at_most, allowance, is_gzip })
    }

    /// Returns the source with a listener: reading ends if it cancels.
    pub(crate) fn heeding(mut self, progress: &'a dyn Progress) -> Self {
        self.reader.get_mut().inner.progress = progress;
        self
    }

    /// The memory that the content may take.
    pub(crate) fn allowance(&mut self) -> &mut Allowance {
        &mut self.allowance
    }

    /// Returns the path that the source was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the next bytes, without consuming them.
    pub(crate) fn peek(&mut self) -> Result<&[u8]> {
        let (path, is_gzip) = (&self.path, self.is_gzip);
        self.reader.fill_buf().map_err(|e| broken(path, is_gzip, e))
    }

    /// Reads `N` bytes of a header.
    pub(crate) fn header<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof if !self.is_gzip => {
                Error::malformed(&self.path, "ends within its header; download or copy the file again")
            }
            _ => self.broken(e),
        })?;
        Ok(bytes)
    }

    /// Rejects a header that promises `n` more bytes than the file can hold. `None` is a number too
    /// large to represent.
    pub(crate) fn check_promise(&self, n: Option<u64>) -> Result<u64> {
        let left = self.at_most - self.position.min(self.at_most);
        match n {
            Some(n) if n <= left => Ok(n),
            _ => Err(Error::Truncated {
                path: self.path.clone(),
                expected: n.unwrap_or(u64::MAX),
                found: left,
            }),
        }
    }

    /// Reads exactly the next `n` bytes.
    pub(crate) fn read_exactly(&mut self, n: u64) -> Result<Vec<u8>> {
        self.allowance.charge(n)?;
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(n.min(MAX_INITIAL_CAPACITY) as usize);
        reserved.map_err(|e| self.broken(e.into()))?;
        self.by_ref().take(n).read_to_end(&mut bytes).map_err(|e| self.broken(e))?;
        if (bytes.len() as u64) < n {
            return Err(Error::Truncated { path: self.path.clone(), expected: n, found: bytes.len() as u64 });
        }
        Ok(bytes)
    }

    /// Checks that nothing is left, and returns the SHA-256 of the whole content.
    pub(crate) fn finish(mut self) -> Result<String> {
        let position = self.position;
        if !self.peek()?.is_empty() {
            return Err(Error::malformed_at(
                &self.path,
                format!("byte {position}"),
                "has more bytes than its header announces; download or copy the file again",
            ));
        }
        Ok(hex(&self.reader.into_inner().hash.finalize()))
    }

    /// Translates an I/O error that occurred while reading this source.
    pub(crate) fn broken(&self, error: io::Error) -> Error {
        broken(&self.path, self.is_gzip, error)
    }
}

/// Translates an I/O error that occurred while reading a file.
pub(crate) fn broken(path: &Path, is_gzip: bool, error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof if is_gzip => {
            Error::malformed(path, "is a gzip file that was cut short; download or copy it again")
        }
        InvalidData | InvalidInput if is_gzip => {
            Error::malformed(path, format!("is a damaged gzip file ({error}); download or copy it again"))
        }
        UnexpectedEof => Error::malformed(path, "ends too early; download or copy the file again"),
        InvalidData | InvalidInput => Error::malformed(path, error.to_string()),
        _ => Error::io("read", path)(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn content(bytes: &[u8], n: u64) -> Result<(Vec<u8>, String)> {
        let mut source = Source::from_bytes(Path::new("x"), bytes)?;
        let content = source.read_exactly(n)?;
        Ok((content, source.finish()?))
    }

    #[test]
    fn plain_and_gzipped_content_have_one_digest() {
        let plain = content(b"abc", 3).unwrap();
        assert_eq!(plain, content(&gzip(b"abc"), 3).unwrap());
        // FIPS 180-2, appendix B.1.
        assert_eq!(plain.1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn cut_trailed_and_corrupt_gzip_is_refused() {
        let good = gzip(&[7; 1000]);
        for cut in [3, good.len() / 2, good.len() - 1] {
            let error = content(&good[..cut], 1000).unwrap_err().to_string();
            assert!(error.contains("cut short"), "{error}");
        }
        let error = content(&[good.clone(), b"garbage".to_vec()].concat(), 1000).unwrap_err().to_string();
        assert!(error.contains("gzip"), "{error}");
        let mut wrong_sum = good.clone();
        let at = good.len() - 8;
        wrong_sum[at] ^= 1;
        let error = content(&wrong_sum, 1000).unwrap_err().to_string();
        assert!(error.contains("damaged gzip file"), "{error}");
    }

    #[test]
    fn parts_of_a_file_make_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for n in [0, 2, 10] {
            let bytes: Vec<u8> = (0..n).collect();
            std::fs::write(&path, &bytes).unwrap();
            let parts: Vec<_> = (0..4).map(|rank| read_part(&path, rank, 4).unwrap()).collect();
            assert!(parts.iter().all(|part| part.length == u64::from(n) && part.bytes.len() <= 3));
            assert_eq!(parts.into_iter().flat_map(|part| part.bytes).collect::<Vec<_>>(), bytes);
        }
    }

    #[test]
    fn a_whole_file_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"abc").unwrap();
        assert_eq!(read_file(&path, 3).unwrap(), b"abc");
        let error = read_file(&path, 2).unwrap_err().to_string();
        assert!(error.contains("has 3 bytes; at most 2 are read"), "{error}");
        assert!(matches!(read_file(dir.path(), 9), Err(Error::IsAFolder { .. })));
        assert_eq!(read_text(&path, 3).unwrap(), "abc");
        std::fs::write(&path, b"ab\xff").unwrap();
        assert!(read_text(&path, 3).unwrap_err().to_string().contains("is not text in UTF-8 (byte 2)"));
        let error = read_file(Path::new("/dev/null"), 9).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn too_little_and_too_much_content_is_refused() {
        assert!(matches!(content(b"abc", 4), Err(Error::Truncated { expected: 4, found: 3, .. })));
        let error = content(b"abc", 2).unwrap_err().to_string();
        assert!(error.contains("(byte 2)"), "{error}");
        // A bomb is read no further than promised.
        assert!(content(&gzip(&vec![0; 1 << 20]), 10).is_err());
    }

    #[test]
    fn impossible_promises_are_refused() {
        let bytes = gzip(&[0; 100]);
        let source = Source::from_bytes(Path::new("x"), &bytes).unwrap();
        assert_eq!(source.check_promise(Some(100)).unwrap(), 100);
        assert!(matches!(source.check_promise(Some(1 << 40)), Err(Error::Truncated { .. })));
        assert!(matches!(source.check_promise(None), Err(Error::Truncated { .. })));
    }
}
