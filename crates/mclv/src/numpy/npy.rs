//! Read and write NumPy's `.npy` files.

use std::io::{self, Read};
use std::path::Path;

use npyz::{AutoSerialize, DType, NpyFile, NpyHeader, Order, WriteOptions, WriterBuilder};

use crate::source::Source;
use crate::{Error, Result};

/// The longest header. NumPy itself rejects longer ones.
const MAX_HEADER: usize = 10_000;
/// The most brackets in a header. A shape and a plain element type need one each.
const MAX_BRACKETS: usize = 16;

/// Reads a whole file. Also returns the SHA-256 of its content.
pub(crate) fn read(mut source: Source<'_>) -> Result<(Array, String)> {
    let path = &source.path().to_owned();
    let header = read_header(&mut source).map_err(|e| source.broken(e))?;
    source.check_promise(n_bytes(&header))?;
    let array = Array::read(&header, &mut source, path)?;
    Ok((array, source.finish()?))
}

/// Returns the bytes of a `.npy` file of numbers of any type.
pub(crate) fn to_bytes<T: AutoSerialize>(shape: &[usize], values: &[T]) -> Vec<u8> {
    let shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
    let mut bytes = Vec::new();
    let mut write = || {
        let mut writer = WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd()?;
        writer.extend(values)?;
        writer.finish()
    };
    write().expect("memory takes all that is written to it");
    bytes
}

/// Returns the number of data bytes that a header promises, if it fits a number.
pub(super) fn n_bytes(header: &NpyHeader) -> Option<u64> {
    header.len().checked_mul(header.dtype().num_bytes()? as u64)
}

/// Reads a header. `npyz` allocates, recurses and multiplies as the header says, so the header is
/// checked first.
pub(super) fn read_header(reader: &mut impl Read) -> io::Result<NpyHeader> {
    let mut bytes = vec![0; 10];
    reader.read_exact(&mut bytes)?;
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(invalid("does not begin like a NumPy file"));
    }
    if bytes[6] > 1 {
        bytes.resize(12, 0);
        reader.read_exact(&mut bytes[10..])?;
    }
    let start = bytes.len();
    let length = bytes[8..].iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
    if length > MAX_HEADER {
        return Err(invalid(format!("has a header of {length} bytes; NumPy writes at most {MAX_HEADER}")));
    }
    bytes.resize(start + length, 0);
    reader.read_exact(&mut bytes[start..])?;
    check_header(&String::from_utf8_lossy(&bytes[start..]))?;
    NpyHeader::from_reader(bytes.as_slice())
        .map_err(|e| invalid(format!("has a header that cannot be read: {e}")))
}

/// Rejects deep nesting, and sizes whose product overflows. Every number in the header counts as a
/// size; other numbers only make the check a little stricter.
fn check_header(text: &str) -> io::Result<()> {
    if text.matches(['(', '[', '{']).count() > MAX_BRACKETS {
        return Err(invalid("has a header that is nested too deeply for an array of numbers"));
    }
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .try_fold(1u64, |product, word| product.checked_mul(word.parse::<u64>().ok()?.max(1)))
        .map(drop)
        .ok_or_else(|| invalid("promises more data than any file can hold"))
}

fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}

/// An array as it was read, in C order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Numbers,
}

/// The numbers of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Numbers {
    /// Booleans, or integers from 0 to 255. A file of them would take four times its size as reals.
    Bytes(Vec<u8>),
    Reals(Vec<f32>),
}

impl Array {
    /// Reads the data that follow a header.
    pub(super) fn read(header: &NpyHeader, reader: &mut impl Read, path: &Path) -> Result<Self> {
        let shape: Vec<usize> = header.shape().iter().map(|&n| n as usize).collect();
        let is_fortran = header.order() == Order::Fortran;
        let are_bytes = ["'|b1'", "'|u1'"].contains(&header.dtype().descr().as_str());
        let numbers = if are_bytes {
            let bytes = read_bytes(header.len(), reader, path)?;
            Numbers::Bytes(if is_fortran { to_c_order(&bytes, &shape) } else { bytes })
        } else {
            let reals = read_numbers(header, reader, path, |x| x as f32)?;
            Numbers::Reals(if is_fortran { to_c_order(&reals, &shape) } else { reals })
        };
        Ok(Self { shape, numbers })
    }

    /// Returns all numbers as reals.
    pub(crate) fn into_reals(self) -> Vec<f32> {
        match self.numbers {
            Numbers::Bytes(bytes) => bytes.into_iter().map(f32::from).collect(),
            Numbers::Reals(reals) => reals,
        }
    }
}

/// Reads the `n` bytes that follow a header, in the order of the file. One element at a time takes
/// many times as long.
fn read_bytes(n: u64, reader: &mut impl Read, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(n).read_to_end(&mut bytes).map_err(|e| cannot_read(e, path))?;
    if (bytes.len() as u64) < n {
        return Err(cannot_read(io::ErrorKind::UnexpectedEof.into(), path));
    }
    Ok(bytes)
}

/// The labels or parts of an array: words, or whole numbers.
pub(crate) enum Words {
    Texts(Vec<String>),
    Numbers(Vec<f64>),
    /// True and false, which name nothing.
    Booleans,
}

impl Words {
    /// Reads the array that follows a header.
    pub(crate) fn read(header: &NpyHeader, reader: &mut impl Read, path: &Path) -> Result<Self> {
        let descr = header.dtype().descr();
        let kind: String = descr.chars().filter(char::is_ascii_alphabetic).collect();
        let size = header.dtype().num_bytes().unwrap_or(0);
        let is_little = !descr.contains('>');
        // Characters that are not there are zeros at the end.
        let text = |word: &[u8]| -> String {
            let letters = word.chunks_exact(4).map(|letter| <[u8; 4]>::try_from(letter).expect("four bytes"));
            let letters =
                letters.map(|b| if is_little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) });
            letters.filter(|&letter| letter > 0).map(|letter| char::from_u32(letter).unwrap_or('?')).collect()
        };
        let read_all = |reader| -> Result<Vec<u8>> {
            let n = header.len().checked_mul(size as u64);
            read_bytes(n.unwrap_or(u64::MAX), reader, path)
        };
        Ok(match kind.as_str() {
            "U" if size > 0 => Self::Texts(read_all(reader)?.chunks_exact(size).map(text).collect()),
            "S" if size > 0 => {
                let text = |word: &[u8]| String::from_utf8_lossy(word).trim_end_matches('\0').to_owned();
                Self::Texts(read_all(reader)?.chunks_exact(size).map(text).collect())
            }
            "b" => {
                read_all(reader)?;
                Self::Booleans
            }
            _ => Self::Numbers(read_numbers(header, reader, path, |x| x)?),
        })
    }
}

/// Reads a whole file of words or whole numbers, one for each row. Also returns the SHA-256 of its
/// content.
pub(crate) fn read_words(mut source: Source<'_>) -> Result<(Words, String)> {
    let path = &source.path().to_owned();
    let header = read_header(&mut source).map_err(|e| source.broken(e))?;
    if header.shape().iter().filter(|&&n| n != 1).count() > 1 {
        let problem = format!("has the shape {:?}; give one word or number per row", header.shape());
        return Err(Error::malformed(path, problem));
    }
    source.check_promise(n_bytes(&header))?;
    let words = Words::read(&header, &mut source, path)?;
    Ok((words, source.finish()?))
}

/// Returns the number that the bits of a float16 stand for.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    match i32::from(bits >> 10 & 0x1f) {
        0 => sign * fraction * 2f32.powi(-14),
        31 if fraction > 0.0 => f32::NAN,
        31 => sign * f32::INFINITY,
        exponent => sign * (1.0 + fraction) * 2f32.powi(exponent - 15),
    }
}

/// Reads the numbers that follow a header, in the order of the file.
pub(crate) fn read_numbers<T>(
    header: &NpyHeader,
    reader: &mut impl Read,
    path: &Path,
    convert: impl Fn(f64) -> T,
) -> Result<Vec<T>> {
    let halves: Option<fn([u8; 2]) -> u16> = match header.dtype().descr().as_str() {
        "'<f2'" => Some(u16::from_le_bytes),
        "'>f2'" => Some(u16::from_be_bytes),
        _ => None,
    };
    if let Some(bits_of) = halves {
        let bytes = read_bytes(header.len().saturating_mul(2), reader, path)?;
        let pairs = bytes.chunks_exact(2).map(|pair| bits_of([pair[0], pair[1]]));
        return Ok(pairs.map(|bits| convert(f64::from(half(bits)))).collect());
    }
    let mut file = NpyFile::with_header(header.clone(), reader);
    macro_rules! try_types {
        ($($number:ty),*) => {$(
            file = match file.try_data::<$number>() {
                // Collecting results reserves no memory ahead, so a false length costs none.
                Ok(data) => return collect(data.map(|x| x.map(|x| convert(x as f64))), path),
                Err(file) => file,
            };
        )*};
    }
    try_types!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
    match file.try_data::<bool>() {
        Ok(data) => collect(data.map(|x| x.map(|x| convert(f64::from(u8::from(x))))), path),
        Err(_) => Err(Error::malformed(
            path,
            format!(
                "holds elements of type {}; save booleans, integers, float16, float32 or float64",
                match header.dtype() {
                    DType::Plain(kind) => kind.to_string(),
                    other => other.descr(),
                }
            ),
        )),
    }
}

fn collect<T>(numbers: impl Iterator<Item = io::Result<T>>, path: &Path) -> Result<Vec<T>> {
    numbers.collect::<io::Result<_>>().map_err(|e| cannot_read(e, path))
}

fn cannot_read(error: io::Error, path: &Path) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::malformed(path, "was cut short; download or copy the file again")
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Error::malformed(path, error.to_string()),
        _ => Error::io("read", path)(error),
    }
}

/// Reorders values from first index fastest to last index fastest.
fn to_c_order<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let mut index = vec![0; shape.len()];
    (0..values.len())
        .map(|_| {
            let at = index.iter().zip(shape).rev().fold(0, |at, (&i, &n)| at * n + i);
            for (i, &n) in index.iter_mut().zip(shape).rev() {
                *i += 1;
                if *i < n {
                    break;
                }
                *i = 0;
            }
            values[at]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Vec<u8> {
        [b"\x93NUMPY\x01\x00", (text.len() as u16).to_le_bytes().as_slice(), text.as_bytes()].concat()
    }

    fn error(bytes: &[u8]) -> String {
        read_header(&mut &bytes[..]).err().unwrap().to_string()
    }

    #[test]
    fn a_header_is_read() {
        let bytes = header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }\n");
        let header = read_header(&mut bytes.as_slice()).unwrap();
        assert_eq!((header.shape(), n_bytes(&header)), ([3, 2].as_slice(), Some(48)));
    }

    #[test]
    fn hostile_headers_are_refused() {
        for shape in [
            "(4294967296, 4294967296)",
            "(0, 9223372036854775807, 9223372036854775807)",
            "(0xffffffffffffffff, 0xffffffffffffffff)",
            "(99999999999999999999999, 1)",
        ] {
            let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
            assert!(error(&header(&text)).contains("more data than any file"), "{shape}");
        }
        assert!(error(&header(&"(".repeat(5_000))).contains("nested"));
        assert!(error(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("header of 4294967295 bytes"));
        assert!(error(b"\x93NUMPX\x01\x00\x01\x00").contains("does not begin like"));
        assert!(error(&header("{'descr': '|u1'}")).contains("cannot be read"));
    }

    #[test]
    fn halves_are_what_numpy_says_they_are() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xbc00, -1.0),
            (0x3800, 0.5),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x5bf8, 255.0),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:04x}");
        }
        assert!(half(0x7e00).is_nan() && half(0x8000).is_sign_negative());
    }

    #[test]
    fn fortran_order_is_transposed() {
        // Element (i, j, k) of a 2 × 3 × 2 array holds 100 i + 10 j + k.
        let fortran = [0., 100., 10., 110., 20., 120., 1., 101., 11., 111., 21., 121.];
        let c = [0., 1., 10., 11., 20., 21., 100., 101., 110., 111., 120., 121.];
        assert_eq!(to_c_order(&fortran, &[2, 3, 2]), c);
    }
}
