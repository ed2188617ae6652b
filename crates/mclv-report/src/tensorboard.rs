//! Writes event files for TensorBoard: scalars, histograms, images.
//!
//! A file is a sequence of TFRecords (length, checksum, bytes, checksum), each with a protocol
//! buffer `Event`. We write the few fields that we need by hand. Their numbers come from
//! `event.proto` and `summary.proto` of TensorFlow.

use mclv::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An event file that is being written.
pub struct EventWriter {
    file: File,
    path: PathBuf,
}

/// The value of an event.
pub enum Value<'a> {
    /// A number.
    Scalar(f64),
    /// The distribution of numbers.
    Histogram(&'a Histogram),
    /// The bytes of a grey PNG, its height and width.
    Image {
        /// The PNG.
        png: &'a [u8],
        /// Height and width.
        shape: (usize, usize),
    },
}

/// A histogram of numbers. It has no buckets if there are no numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The smallest number.
    pub low: f64,
    /// The largest number.
    pub high: f64,
    /// The sum of the numbers.
    pub sum: f64,
    /// The sum of their squares.
    pub sum_of_squares: f64,
    /// The right end of each bucket, and the number of values in it.
    pub buckets: Vec<(f64, f64)>,
}

impl EventWriter {
    /// Creates a file in a folder. TensorBoard uses the name of the folder as the name of the run.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(folder: &Path) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path =
            folder.join(format!("events.out.tfevents.{:010}.{:09}.mclv", now.as_secs(), now.subsec_nanos()));
        let file = File::create_new(&path).map_err(Error::io("write", &path))?;
        let mut writer = Self { file, path };
        let mut event = Message::default();
        event.double(1, wall_time()).bytes(3, b"brain.Event:2");
        writer.record(&event.0)?;
        Ok(writer)
    }

    /// Writes the values of one step with their tags, and flushes the file.
    ///
    /// # Errors
    /// If writing fails, for example because the disk is full.
    pub fn write(&mut self, step: usize, values: &[(&str, Value<'_>)]) -> Result<()> {
        let mut summary = Message::default();
        for (tag, value) in values {
            let mut message = Message::default();
            message.bytes(1, tag.as_bytes());
            match value {
                Value::Scalar(x) => message.float(2, *x as f32),
                Value::Image { png, shape } => {
                    let mut image = Message::default();
                    // 1: one channel.
                    image.integer(1, shape.0 as u64).integer(2, shape.1 as u64).integer(3, 1).bytes(4, png);
                    message.bytes(4, &image.0)
                }
                Value::Histogram(histogram) => message.bytes(5, &encoded(histogram).0),
            };
            summary.bytes(1, &message.0);
        }
        let mut event = Message::default();
        event.double(1, wall_time()).integer(2, step as u64).bytes(5, &summary.0);
        self.record(&event.0)
    }

    /// Writes a TFRecord in one call. A reader sees all of it or, at worst, a part that is shorter
    /// than the recorded length.
    fn record(&mut self, bytes: &[u8]) -> Result<()> {
        let length = (bytes.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend(masked_crc(&length).to_le_bytes());
        record.extend(bytes);
        record.extend(masked_crc(bytes).to_le_bytes());
        self.file.write_all(&record).map_err(Error::io("write", &self.path))
    }
}

fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The protocol buffer `HistogramProto`; empty for a histogram without numbers.
fn encoded(histogram: &Histogram) -> Message {
    let mut message = Message::default();
    let Histogram { low, high, sum, sum_of_squares, buckets } = histogram;
    if buckets.is_empty() {
        return message;
    }
    let packed = |xs: &mut dyn Iterator<Item = f64>| xs.flat_map(f64::to_le_bytes).collect::<Vec<u8>>();
    message.double(1, *low).double(2, *high).double(3, buckets.iter().map(|b| b.1).sum());
    message.double(4, *sum).double(5, *sum_of_squares);
    message.bytes(6, &packed(&mut buckets.iter().map(|b| b.0)));
    message.bytes(7, &packed(&mut buckets.iter().map(|b| b.1)));
    message
}

/// A protocol buffer: a sequence of fields, each with its number and type.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn variable(&mut self, mut x: u64) {
        while x >= 0x80 {
            self.0.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.0.push(x as u8);
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.variable(field << 3 | wire);
    }

    fn integer(&mut self, field: u64, x: u64) -> &mut Self {
        self.key(field, 0);
        self.variable(x);
        self
    }

    fn double(&mut self, field: u64, x: f64) -> &mut Self {
        self.key(field, 1);
        self.0.extend(x.to_le_bytes());
        self
    }

    fn float(&mut self, field: u64, x: f32) -> &mut Self {
        self.key(field, 5);
        self.0.extend(x.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.key(field, 2);
        self.variable(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
}

/// The checksum of TFRecords: CRC-32C, rotated and shifted so that checksums of checksums do not
/// cancel.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32 with Castagnoli's polynomial, a byte at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut k = 0;
        while k < 256 {
            let (mut crc, mut bit) = (k as u32, 0);
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[k] = crc;
            k += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        // RFC 3720, B.4, and the usual check value.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn messages_are_written_as_protocol_buffers_are() {
        let mut message = Message::default();
        message.integer(1, 150).bytes(2, b"testing").float(3, 1.0);
        assert_eq!(
            message.0,
            [&[0x08, 0x96, 0x01, 0x12, 7][..], b"testing", &[0x1d, 0, 0, 0x80, 0x3f]].concat()
        );
    }

    #[test]
    fn histograms_are_written_field_by_field() {
        let buckets = vec![(1.0, 2.0), (3.0, 1.0)];
        let message = encoded(&Histogram { low: 0.0, high: 3.0, sum: 4.0, sum_of_squares: 10.0, buckets });
        let double = |x: f64| x.to_le_bytes().to_vec();
        let fields = [0.0, 3.0, 3.0, 4.0, 10.0].into_iter().enumerate();
        let mut expected: Vec<u8> =
            fields.flat_map(|(k, x)| [vec![(k as u8 + 1) << 3 | 1], double(x)].concat()).collect();
        for (field, list) in [(6, [1.0, 3.0]), (7, [2.0, 1.0])] {
            expected.extend([field << 3 | 2, 16]);
            expected.extend(list.into_iter().flat_map(double));
        }
        assert_eq!(message.0, expected);
        assert!(encoded(&Histogram::default()).0.is_empty());
    }
}
