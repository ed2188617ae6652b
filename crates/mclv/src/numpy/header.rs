//! Read the header of a `.npy` file: a Python dictionary that describes an array.
//!
//! The file may come from a stranger. The parser looks at each byte once, and nesting is limited.

use std::io::{self, Read};

/// The longest header. NumPy itself rejects longer ones.
const MAX_LENGTH: usize = 10_000;
/// The deepest nesting. The fields of a structured type need four levels.
const MAX_DEPTH: usize = 8;
/// The most letters of a type that an error shows.
const MAX_SHOWN: usize = 60;

/// What the data of an array are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) element: Element,
    /// True if the first index changes fastest.
    pub(crate) is_fortran: bool,
    pub(crate) shape: Vec<usize>,
}

/// The type of the elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    /// NumPy's name of the type, such as `<f8`.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The bytes of an element.
    pub(crate) size: usize,
    pub(crate) is_big_endian: bool,
}

/// What an element holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Signed,
    Unsigned,
    Float,
    /// Four bytes for each character.
    Unicode,
    Bytes,
    /// Nothing that can be read here.
    Other,
}

impl Header {
    /// Reads a header. The data follow it.
    pub(super) fn read(reader: &mut (impl Read + ?Sized)) -> io::Result<Self> {
        let mut start = [0; 10];
        reader.read_exact(&mut start)?;
        if !start.starts_with(b"\x93NUMPY") {
            return Err(invalid("does not begin like a NumPy file"));
        }
        let mut length = [start[8], start[9], 0, 0];
        if start[6] > 1 {
            reader.read_exact(&mut length[2..])?;
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_LENGTH {
            return Err(invalid(format!(
                "has a header of {length} bytes; NumPy writes at most {MAX_LENGTH}"
            )));
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text)?;
        Self::parse(&text)
    }

    /// Parses the text of a header.
    fn parse(text: &[u8]) -> io::Result<Self> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let Value::Dictionary(entries) = parser.value()? else {
            return Err(unreadable("it is no dictionary"));
        };
        if parser.next().is_some() {
            return Err(parser.unexpected());
        }
        // As in Python, the last entry of a name counts.
        let entry = |name: &str| {
            let mut entries = entries.iter().rev();
            let found = entries.find(|(key, _)| matches!(key, Value::Text(text) if *text == name.as_bytes()));
            found.map(|(_, value)| value).ok_or_else(|| unreadable(format!("it has no {name:?}")))
        };
        let element = match entry("descr")? {
            Value::Text(name) => Element::of_name(name),
            Value::List(text) => Element::other(text),
            _ => return Err(unreadable("\"descr\" is no type")),
        };
        let Value::Boolean(is_fortran) = *entry("fortran_order")? else {
            return Err(unreadable("\"fortran_order\" is neither True nor False"));
        };
        let Value::Tuple(sizes) = entry("shape")? else {
            return Err(unreadable("\"shape\" is no tuple"));
        };
        let size = |value: &Value<'_>| match value {
            Value::Whole(size) => Ok(*size),
            _ => Err(unreadable("a size is no whole number")),
        };
        let sizes: Vec<Option<usize>> = sizes.iter().map(size).collect::<io::Result<_>>()?;
        let shape = sizes.into_iter().collect::<Option<Vec<usize>>>();
        // Sizes of zero do not hide sizes that no machine can hold.
        let product = |shape: &Vec<usize>| {
            shape.iter().try_fold(element.size.max(1), |product, &n| product.checked_mul(n.max(1)))
        };
        match shape.filter(|shape| product(shape).is_some_and(|n| isize::try_from(n).is_ok())) {
            Some(shape) => Ok(Self { element, is_fortran, shape }),
            None => Err(invalid("promises more data than any file can hold")),
        }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The number of bytes of the data. `None` if they have no fixed size.
    pub(crate) fn n_bytes(&self) -> Option<u64> {
        (self.element.kind != Kind::Other).then(|| (self.len() * self.element.size) as u64)
    }
}

impl Element {
    /// The type that NumPy gives a name: byte order, kind and size.
    fn of_name(name: &[u8]) -> Self {
        let (order, rest) = match name {
            [order @ (b'<' | b'>' | b'|' | b'='), rest @ ..] => (*order, rest),
            _ => (b'=', name),
        };
        let Some((&letter, digits)) = rest.split_first() else { return Self::other(name) };
        let size = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
        let (kind, size) = match (letter, size) {
            (b'b', Some(1)) => (Kind::Boolean, 1),
            (b'i', Some(size @ (1 | 2 | 4 | 8))) => (Kind::Signed, size),
            (b'u', Some(size @ (1 | 2 | 4 | 8))) => (Kind::Unsigned, size),
            (b'f', Some(size @ (2 | 4 | 8))) => (Kind::Float, size),
            (b'U', Some(n)) if n <= MAX_LETTERS => (Kind::Unicode, 4 * n),
            (b'S', Some(n)) if n <= MAX_LETTERS => (Kind::Bytes, n),
            _ => return Self::other(name),
        };
        let is_big_endian = order == b'>' || (order == b'=' && cfg!(target_endian = "big"));
        Self { name: String::from_utf8_lossy(name).into_owned(), kind, size, is_big_endian }
    }

    /// A type that cannot be read.
    fn other(name: &[u8]) -> Self {
        let text = String::from_utf8_lossy(name);
        let shown: String = text.chars().take(MAX_SHOWN).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        Self { name: shown + more, kind: Kind::Other, size: 0, is_big_endian: false }
    }
}

/// The longest words of an array. No label has this many letters.
const MAX_LETTERS: usize = 1 << 24;

/// A literal of Python, as far as headers have them. Texts are as the file has them.
enum Value<'a> {
    Text(&'a [u8]),
    Boolean(bool),
    /// `None` if it is too large for this machine.
    Whole(Option<usize>),
    Tuple(Vec<Value<'a>>),
    /// Whatever a list holds, with its brackets.
    List(&'a [u8]),
    Dictionary(Vec<(Value<'a>, Value<'a>)>),
    Nothing,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// Returns the next byte that is no space, without taking it.
    fn next(&mut self) -> Option<u8> {
        let rest = &self.text[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.get(self.at).copied()
    }

    /// Takes the next byte if it is `wanted`.
    fn takes(&mut self, wanted: u8) -> bool {
        let is_there = self.next() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn unexpected(&self) -> io::Error {
        match self.text.get(self.at) {
            Some(&byte) => {
                unreadable(format!("{:?} was not expected at its byte {}", char::from(byte), self.at))
            }
            None => unreadable("it ends too early"),
        }
    }

    fn value(&mut self) -> io::Result<Value<'a>> {
        let first = self.next().ok_or_else(|| self.unexpected())?;
        let start = self.at;
        match first {
            b'\'' | b'"' => self.quoted(first).map(Value::Text),
            b'0'..=b'9' => self.whole(),
            b'(' => self.items(b')', Self::value).map(Value::Tuple),
            b'[' => {
                self.items(b']', Self::value)?;
                Ok(Value::List(&self.text[start..self.at]))
            }
            b'{' => self.items(b'}', Self::entry).map(Value::Dictionary),
            _ => self.word(),
        }
    }

    fn entry(&mut self) -> io::Result<(Value<'a>, Value<'a>)> {
        let key = self.value()?;
        if !self.takes(b':') {
            return Err(self.unexpected());
        }
        Ok((key, self.value()?))
    }

    /// Items between brackets, with commas between them. A comma may stand after the last one.
    fn items<T>(&mut self, end: u8, item: fn(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        if self.depth == MAX_DEPTH {
            return Err(invalid("has a header that is nested too deeply for an array of numbers"));
        }
        (self.at, self.depth) = (self.at + 1, self.depth + 1);
        let mut items = Vec::new();
        while self.next() != Some(end) {
            items.push(item(self)?);
            if !self.takes(b',') {
                break;
            }
        }
        if !self.takes(end) {
            return Err(self.unexpected());
        }
        self.depth -= 1;
        Ok(items)
    }

    /// A text in quotes.
    fn quoted(&mut self, quote: u8) -> io::Result<&'a [u8]> {
        let start = self.at + 1;
        let mut is_escaped = false;
        for (n, &byte) in self.text[start..].iter().enumerate() {
            if byte == quote && !is_escaped {
                self.at = start + n + 1;
                return Ok(&self.text[start..start + n]);
            }
            is_escaped = byte == b'\\' && !is_escaped;
        }
        self.at = self.text.len();
        Err(self.unexpected())
    }

    /// A number without sign, point or exponent. Python 2 wrote an `L` after it.
    fn whole(&mut self) -> io::Result<Value<'a>> {
        let rest = &self.text[self.at..];
        let digits = &rest[..rest.iter().take_while(|byte| byte.is_ascii_digit()).count()];
        self.at += digits.len();
        if self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        if self.text.get(self.at).is_some_and(|&byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte)) {
            return Err(self.unexpected());
        }
        let text = std::str::from_utf8(digits).expect("digits");
        Ok(Value::Whole(text.parse().ok()))
    }

    fn word(&mut self) -> io::Result<Value<'a>> {
        for (word, value) in
            [("True", Value::Boolean(true)), ("False", Value::Boolean(false)), ("None", Value::Nothing)]
        {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected())
    }
}

fn unreadable(why: impl std::fmt::Display) -> io::Error {
    invalid(format!("has a header that cannot be read: {why}"))
}

pub(super) fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn file(text: &str) -> Vec<u8> {
        [b"\x93NUMPY\x01\x00", (text.len() as u16).to_le_bytes().as_slice(), text.as_bytes()].concat()
    }

    fn read(text: &str) -> io::Result<Header> {
        Header::read(&mut file(text).as_slice())
    }

    fn error(bytes: &[u8]) -> String {
        Header::read(&mut &bytes[..]).err().unwrap().to_string()
    }

    #[test]
    fn a_header_is_read() {
        let header = read("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }   \n").unwrap();
        assert_eq!((header.shape.as_slice(), header.n_bytes()), ([3, 2].as_slice(), Some(48)));
        // Other spaces and quotes, another order, an older Python, and versions 2 and 3.
        let other = read("{\"shape\":(3L,2L),'descr':'>i2','fortran_order':True}").unwrap();
        assert_eq!(
            (other.shape.as_slice(), other.n_bytes(), other.is_fortran),
            ([3, 2].as_slice(), Some(12), true)
        );
        assert!(other.element.is_big_endian && other.element.kind == Kind::Signed);
        for version in [2, 3] {
            let text = "{'descr': '<U5', 'fortran_order': False, 'shape': ()}";
            let start = [b"\x93NUMPY", [version, 0].as_slice(), &(text.len() as u32).to_le_bytes()].concat();
            let header = Header::read(&mut [&start, text.as_bytes()].concat().as_slice()).unwrap();
            assert_eq!((header.len(), header.n_bytes(), header.element.kind), (1, Some(20), Kind::Unicode));
        }
    }

    /// `npyz` reads every header that NumPy writes.
    #[test]
    fn headers_are_what_another_reader_says_they_are() {
        for (name, shape) in [
            ("|b1", "(2,)"),
            ("|u1", "(4, 0, 3)"),
            ("<i8", "()"),
            (">f4", "(1, 2, 3, 4)"),
            ("<f2", "(7,)"),
            ("|S12", "(3,)"),
            ("<U3", "(2, 1)"),
        ] {
            for order in ["True", "False"] {
                let text = format!("{{'descr': '{name}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
                let (ours, theirs) =
                    (read(&text).unwrap(), npyz::NpyHeader::from_reader(file(&text).as_slice()).unwrap());
                let shape: Vec<u64> = ours.shape.iter().map(|&n| n as u64).collect();
                assert_eq!(shape, theirs.shape(), "{text}");
                assert_eq!(ours.n_bytes(), Some(theirs.len() * theirs.dtype().num_bytes().unwrap() as u64));
                assert_eq!(ours.is_fortran, theirs.order() == npyz::Order::Fortran);
                assert_eq!(format!("'{}'", ours.element.name), theirs.dtype().descr());
            }
        }
    }

    #[test]
    fn hostile_headers_are_refused() {
        for shape in [
            "(4294967296, 4294967296)",
            "(0, 9223372036854775807, 9223372036854775807)",
            "(9223372036854775808,)",
            "(99999999999999999999999, 1)",
        ] {
            let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
            assert!(error(&file(&text)).contains("more data than any file"), "{shape}");
        }
        assert!(error(&file(&"(".repeat(5_000))).contains("nested"));
        assert!(error(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("header of 4294967295 bytes"));
        assert!(error(b"\x93NUMPX\x01\x00\x01\x00").contains("does not begin like"));
        for text in [
            "",
            "{",
            "{'descr'",
            "{'descr': '|u1'}",
            "{'descr': '|u1",
            "('descr',)",
            "{'descr': 1, 'fortran_order': False, 'shape': ()}",
            "{'descr': '|u1', 'fortran_order': 0, 'shape': ()}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': 3}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (0x1,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1_0,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x",
        ] {
            assert!(error(&file(text)).contains("cannot be read"), "{text}");
        }
        for name in ["|O", "<f16", "<c8", "<M8[ns]", "|V4", "", "<", "<U99999999999999999999"] {
            let text = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': (1,), }}");
            assert_eq!(read(&text).unwrap().element.kind, Kind::Other, "{name}");
        }
        let fields =
            "{'descr': [('x', '<f4'), ('y', '<f4', (2, 2))], 'fortran_order': False, 'shape': (1,), }";
        assert_eq!(read(fields).unwrap().element.name, "[('x', '<f4'), ('y', '<f4', (2, 2))]");
    }

    /// A parser that tries again after each bracket needs twice the time for each: years for these.
    #[test]
    fn nested_brackets_take_no_time() {
        let begun = Instant::now();
        for bracket in ["[", "(", "{", "{'a':", "[('", "{'descr': [[[["] {
            error(&file(&format!("{{'descr': {}", bracket.repeat(10))));
            error(&file(&bracket.repeat(MAX_LENGTH / bracket.len())));
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
