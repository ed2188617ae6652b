//! Read and write NumPy's `.npy` files.

use std::io::{self, Read};
use std::path::Path;

use super::header::{Header, Kind};
use crate::allowance::Allowance;
use crate::source::Source;
use crate::{Error, Result};

/// The number of bytes that are read at a time.
const BLOCK: usize = 1 << 16;
/// Memory of a word besides its letters.
const WORD: u64 = 48;

/// A header that was read, and the data that follow it.
pub(crate) struct Body<'a> {
    pub(crate) header: Header,
    pub(super) reader: &'a mut dyn Read,
    pub(super) path: &'a Path,
    pub(super) allowance: &'a mut Allowance,
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

/// The labels or parts of an array: words, or whole numbers.
pub(crate) enum Words {
    Texts(Vec<String>),
    Numbers(Vec<f64>),
    /// True and false, which name nothing.
    Booleans,
}

/// Reads a whole file. Also returns the SHA-256 of its content.
pub(crate) fn read(source: Source<'_>) -> Result<(Array, String)> {
    read_with(source, |body| body.array())
}

/// Reads a whole file of words or whole numbers, one for each row. Also returns the SHA-256 of its
/// content.
pub(crate) fn read_words(source: Source<'_>) -> Result<(Words, String)> {
    read_with(source, |body| {
        let shape = &body.header.shape;
        if shape.iter().filter(|&&n| n != 1).count() > 1 {
            let problem = format!("has the shape {shape:?}; give one word or number per row");
            return Err(Error::malformed(body.path, problem));
        }
        body.words()
    })
}

fn read_with<T>(mut source: Source<'_>, read: impl FnOnce(Body<'_>) -> Result<T>) -> Result<(T, String)> {
    let (path, mut allowance) = (source.path().to_owned(), source.allowance().clone());
    let header = Header::read(&mut source).map_err(|e| source.broken(e))?;
    // Elements of no known size are rejected when they are read.
    source.check_promise(header.n_bytes().or(Some(0)))?;
    let value = read(Body { header, reader: &mut source, path: &path, allowance: &mut allowance })?;
    Ok((value, source.finish()?))
}

impl Array {
    /// Returns all numbers as reals.
    pub(crate) fn into_reals(self) -> Vec<f32> {
        match self.numbers {
            Numbers::Bytes(bytes) => bytes.into_iter().map(f32::from).collect(),
            Numbers::Reals(reals) => reals,
        }
    }
}

impl Body<'_> {
    /// Reads the array.
    pub(crate) fn array(self) -> Result<Array> {
        let Header { element, is_fortran, shape } = self.header.clone();
        self.allowance.charge_rows(shape.first().copied().unwrap_or(1))?;
        let are_bytes = element.size == 1 && matches!(element.kind, Kind::Boolean | Kind::Unsigned);
        let numbers = if are_bytes {
            let bytes = self.bytes()?;
            Numbers::Bytes(if is_fortran { to_c_order(&bytes, &shape) } else { bytes })
        } else {
            let reals = self.numbers(|x| x as f32)?;
            Numbers::Reals(if is_fortran { to_c_order(&reals, &shape) } else { reals })
        };
        Ok(Array { shape, numbers })
    }

    /// Reads words or numbers.
    pub(crate) fn words(self) -> Result<Words> {
        let is_big_endian = self.header.element.is_big_endian;
        let order = if is_big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        // Characters that are not there are zeros at the end.
        let unicode = |word: &[u8]| -> String {
            let letters = word.as_chunks().0.iter().map(|&letter| order(letter));
            letters.filter(|&letter| letter > 0).map(|letter| char::from_u32(letter).unwrap_or('?')).collect()
        };
        let bytes = |word: &[u8]| String::from_utf8_lossy(word).trim_end_matches('\0').to_owned();
        Ok(match self.header.element.kind {
            Kind::Unicode if self.header.element.size > 0 => Words::Texts(self.texts(unicode)?),
            Kind::Bytes if self.header.element.size > 0 => Words::Texts(self.texts(bytes)?),
            Kind::Boolean => {
                self.bytes()?;
                Words::Booleans
            }
            _ => Words::Numbers(self.numbers(|x| x)?),
        })
    }

    /// Reads the numbers in the order of the file.
    pub(crate) fn numbers<T>(self, convert: impl Fn(f64) -> T) -> Result<Vec<T>> {
        let element = &self.header.element;
        self.allowance.charge((self.header.len() as u64).checked_mul(size_of::<T>() as u64))?;
        macro_rules! read_as {
            ($number:ty, $real:expr) => {
                if element.is_big_endian {
                    self.blocks(|block, to| {
                        to.extend(
                            block.as_chunks().0.iter().map(|&b| convert($real(<$number>::from_be_bytes(b)))),
                        )
                    })
                } else {
                    self.blocks(|block, to| {
                        to.extend(
                            block.as_chunks().0.iter().map(|&b| convert($real(<$number>::from_le_bytes(b)))),
                        )
                    })
                }
            };
        }
        match (element.kind, element.size) {
            (Kind::Boolean, _) | (Kind::Unsigned, 1) => read_as!(u8, f64::from),
            (Kind::Unsigned, 2) => read_as!(u16, f64::from),
            (Kind::Unsigned, 4) => read_as!(u32, f64::from),
            (Kind::Unsigned, 8) => read_as!(u64, |x| x as f64),
            (Kind::Signed, 1) => read_as!(i8, f64::from),
            (Kind::Signed, 2) => read_as!(i16, f64::from),
            (Kind::Signed, 4) => read_as!(i32, f64::from),
            (Kind::Signed, 8) => read_as!(i64, |x| x as f64),
            (Kind::Float, 2) => read_as!(u16, |bits| f64::from(half(bits))),
            (Kind::Float, 4) => read_as!(f32, f64::from),
            (Kind::Float, 8) => read_as!(f64, |x| x),
            _ => {
                let problem = format!(
                    "holds elements of type {}; save booleans, integers, float16, float32 or float64",
                    element.name
                );
                Err(Error::malformed(self.path, problem))
            }
        }
    }

    /// Reads words.
    fn texts(self, text: impl Fn(&[u8]) -> String) -> Result<Vec<String>> {
        let size = self.header.element.size;
        self.allowance.charge((self.header.len() as u64).checked_mul(WORD + size as u64))?;
        self.blocks(|block, to| to.extend(block.chunks_exact(size).map(&text)))
    }

    /// Reads all bytes.
    fn bytes(self) -> Result<Vec<u8>> {
        self.allowance.charge(self.header.n_bytes())?;
        self.blocks(|block, to| to.extend_from_slice(block))
    }

    /// Reads blocks of whole elements. No memory is reserved for data before they are there.
    fn blocks<T>(self, mut take: impl FnMut(&[u8], &mut Vec<T>)) -> Result<Vec<T>> {
        let size = self.header.element.size;
        let n = self.header.len();
        if n == 0 {
            return Ok(Vec::new());
        }
        let per_block = (BLOCK / size).clamp(1, n);
        let mut block = vec![0; per_block * size];
        let mut values = Vec::new();
        let mut left = n;
        while left > 0 {
            let here = per_block.min(left);
            let part = &mut block[..here * size];
            self.reader.read_exact(part).map_err(|e| cannot_read(e, self.path))?;
            values.try_reserve(here).map_err(|e| cannot_read(e.into(), self.path))?;
            take(part, &mut values);
            left -= here;
        }
        Ok(values)
    }
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

/// A number that can be written.
pub(crate) trait Number: Copy {
    /// NumPy's name of the type.
    const NAME: &'static str;

    /// Adds the bytes of the number.
    fn write(self, to: &mut Vec<u8>);
}

macro_rules! number {
    ($($number:ty = $name:literal),*) => {$(
        impl Number for $number {
            const NAME: &'static str = $name;

            fn write(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

number!(u8 = "|u1", i8 = "|i1", i64 = "<i8", f32 = "<f4", f64 = "<f8");

/// Returns the bytes of a `.npy` file.
///
/// # Panics
/// If the shape does not fit the number of values.
pub(crate) fn to_bytes<T: Number>(shape: &[usize], values: &[T]) -> Vec<u8> {
    assert_eq!(shape.iter().product::<usize>(), values.len(), "a value for each place");
    const START: usize = 10;
    const ALIGNMENT: usize = 64;
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({sizes}), }}", T::NAME);
    header.push_str(&" ".repeat(ALIGNMENT - 1 - (START + header.len()) % ALIGNMENT));
    header.push('\n');
    let mut bytes = Vec::with_capacity(START + header.len() + size_of_val(values));
    bytes.extend_from_slice(b"\x93NUMPY\x01\x00");
    bytes.extend_from_slice(&u16::try_from(header.len()).expect("a shape of few sizes").to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    values.iter().for_each(|value| value.write(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use npyz::WriterBuilder;

    /// `npyz` writes the same bytes, and reads them.
    #[test]
    fn files_are_those_of_another_writer() {
        fn compare<T: Number + npyz::AutoSerialize>(shape: &[usize], values: &[T]) {
            let sizes: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
            let mut theirs = Vec::new();
            let mut writer = npyz::WriteOptions::new()
                .default_dtype()
                .shape(&sizes)
                .writer(&mut theirs)
                .begin_nd()
                .unwrap();
            writer.extend(values).unwrap();
            writer.finish().unwrap();
            assert!(to_bytes(shape, values) == theirs, "{} {shape:?}", T::NAME);
        }
        compare(&[2, 3], &[1u8, 2, 3, 255, 0, 7]);
        compare(&[3], &[-1i8, 0, 1]);
        compare(&[1, 2], &[i64::MIN, i64::MAX]);
        compare(&[1, 1, 1, 2], &[0.5f32, f32::NEG_INFINITY]);
        compare::<f32>(&[0, 123_456_789], &[]);
        compare(&[1000, 1000], &vec![0.25f32; 1_000_000]);
    }

    fn numbers(name: &str, data: &[u8]) -> Result<Vec<f64>> {
        let n = data.len() / name[2..].parse::<usize>().unwrap();
        let header = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': ({n},), }}\n");
        let file = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data];
        let file = file.concat();
        let body = |body: Body<'_>| body.numbers(|x| x);
        Ok(read_with(Source::from_bytes(Path::new("x"), &file)?, body)?.0)
    }

    /// All types, in both orders, over several blocks.
    #[test]
    fn numbers_are_those_that_were_written() {
        let n = BLOCK / 4 + 3;
        macro_rules! check {
            ($($number:ty = $name:literal),*) => {$(
                let values: Vec<$number> = (0..n).map(|k| ((k * 37) % 251) as $number).chain([<$number>::MIN, <$number>::MAX]).collect();
                let expected: Vec<f64> = values.iter().map(|&x| x as f64).collect();
                let little: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                let big: Vec<u8> = values.iter().flat_map(|x| x.to_be_bytes()).collect();
                assert!(numbers(concat!("<", $name), &little).unwrap() == expected, $name);
                assert!(numbers(concat!(">", $name), &big).unwrap() == expected, $name);
            )*};
        }
        check!(u8 = "u1", i8 = "i1", u16 = "u2", i16 = "i2", u32 = "u4", i32 = "i4", u64 = "u8", i64 = "i8");
        check!(f32 = "f4", f64 = "f8");
        assert_eq!(numbers(">f2", &[0x3c, 0, 0xbc, 0]).unwrap(), [1.0, -1.0]);
        assert!(numbers("<f16", &[0; 32]).unwrap_err().to_string().contains("elements of type <f16"));
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
