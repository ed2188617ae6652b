//! Damage small valid files. A case number always gives the same file.

use mclv::rng::{Purpose, stream};

use super::readers::{Reader, WORDS};

/// Numbers at the edges of types.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7f80_0000,
    0x7ff0_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Draws numbers below a bound.
pub(crate) struct Draws<'a>(&'a mut dyn FnMut(u64) -> u64);

impl Draws<'_> {
    fn below(&mut self, n: usize) -> usize {
        (self.0)(n as u64) as usize
    }

    /// A number from 1 to `most`: 1 half of the time, 2 half of the rest, and so on.
    fn few(&mut self, most: usize) -> usize {
        1 + (1..most).take_while(|_| self.below(2) == 1).count()
    }
}

/// Returns the file of a case: some parts of a valid file are damaged before its lengths and
/// checksums are made, or its bytes afterwards.
pub(crate) fn file(reader: &Reader, seeds: &[Vec<Vec<u8>>], case: u64) -> Vec<u8> {
    let mut stream = stream(2026, Purpose::SelfTest, case).reader();
    let mut below = |n: u64| stream.below(n);
    let mut draws = Draws(&mut below);
    let mut parts = seeds[draws.below(seeds.len())].clone();
    let is_raw = draws.below(4) == 0;
    if !is_raw {
        for _ in 0..draws.few(3) {
            let at = draws.below(parts.len());
            damage(&mut parts[at], seeds, &mut draws);
        }
    }
    let mut bytes = (reader.join)(&parts);
    if is_raw {
        damage(&mut bytes, seeds, &mut draws);
    }
    bytes
}

/// Makes one to five changes.
fn damage(bytes: &mut Vec<u8>, seeds: &[Vec<Vec<u8>>], draws: &mut Draws<'_>) {
    for _ in 0..draws.few(5) {
        let at = draws.below(bytes.len() + 1);
        let here = at.min(bytes.len().saturating_sub(1));
        // Half of the changes keep the length: they leave more files that are read to their end.
        let kind = if draws.below(2) == 0 { [0, 1, 6][draws.below(3)] } else { draws.below(10) };
        match kind {
            0 if !bytes.is_empty() => bytes[here] ^= 1 << draws.below(8),
            1 if !bytes.is_empty() => bytes[here] = draws.below(256) as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, draws.below(256) as u8),
            4 => {
                let end = (at + draws.below(20)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let end = (at + 1 + draws.below(40)).min(bytes.len());
                let copy = bytes[at..end].repeat(1 + draws.below(3));
                bytes.splice(at..at, copy);
            }
            6 => {
                // A number at the edge of its type, in either order of bytes.
                let number =
                    EDGES[draws.below(EDGES.len())].wrapping_add(draws.below(3) as u64).wrapping_sub(1);
                let little = number.to_le_bytes();
                let size = [1, 2, 4, 8][draws.below(4)];
                let mut word = little[..size].to_vec();
                if draws.below(2) == 1 {
                    word.reverse();
                }
                let end = (at + size).min(bytes.len());
                bytes.splice(at..end, word);
            }
            7 => {
                let word = WORDS[draws.below(WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
            8 => replace_number(bytes, at, WORDS[draws.below(WORDS.len())]),
            _ => {
                // A piece of another valid file.
                let parts = &seeds[draws.below(seeds.len())];
                let part = &parts[draws.below(parts.len())];
                let from = draws.below(part.len() + 1);
                let end = (from + draws.below(40)).min(part.len());
                bytes.splice(at..at, part[from..end].iter().copied());
            }
        }
    }
}

/// Replaces the first number in digits after a place by a word.
fn replace_number(bytes: &mut Vec<u8>, at: usize, word: &str) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) else { return };
    let length = bytes[start..].iter().take_while(|b| b.is_ascii_digit() || b".eE-+".contains(b)).count();
    bytes.splice(start..start + length, word.bytes());
}
