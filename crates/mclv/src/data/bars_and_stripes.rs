//! Make bars and stripes: every picture whose rows, or whose columns, are each all on or all off
//! (MacKay, *Information Theory, Inference, and Learning Algorithms*, 2003, ch. 43).

use super::{Dataset, Rows};
use crate::bits::BitRows;
use crate::{Error, Result};

/// The largest side. There are already 131,070 pictures of this size.
const MAX_SIDE: usize = 16;

/// Parses the side of the pictures from the text after `bars-and-stripes:`.
pub(super) fn parse_side(text: &str) -> Result<usize> {
    text.parse().ok().filter(|side| (1..=MAX_SIDE).contains(side)).ok_or_else(|| Error::InvalidSetting {
        name: "bars-and-stripes",
        value: text.into(),
        cure: "choose a side from 1 to 16; the number of patterns, 2^(side+1) − 2, doubles with each",
    })
}

/// Makes the 2^(n+1) − 2 distinct patterns of n × n pixels, each once: stripes (rows) first, then
/// bars (columns) except the empty and the full picture, which are stripes too. Any model's
/// expected log-likelihood is at most −ln(2^(n+1) − 2).
pub(super) fn make(side: usize) -> Dataset {
    let n_masks = 1usize << side;
    let n_patterns = 2 * n_masks - 2;
    let mut bits = BitRows::zeros(n_patterns, side * side);
    let mut paint = |pattern, mask: usize, is_stripe| {
        for (y, x) in (0..side).flat_map(|y| (0..side).map(move |x| (y, x))) {
            bits.set(pattern, y * side + x, mask >> (if is_stripe { y } else { x }) & 1 == 1);
        }
    };
    (0..n_masks).for_each(|mask| paint(mask, mask, true));
    (1..n_masks - 1).for_each(|mask| paint(n_masks + mask - 1, mask, false));

    let mut dataset = Dataset::from_rows(format!("bars-and-stripes:{side}"), Rows::Bits(bits));
    dataset.provenance.source = "every pattern once".into();
    dataset.image_shape = Some((side, side));
    dataset.best_log_likelihood = Some(-(n_patterns as f64).ln());
    dataset
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn patterns(dataset: &Dataset) -> HashSet<Vec<u64>> {
        let Rows::Bits(bits) = &dataset.rows else { panic!("not bits") };
        (0..bits.n_rows()).map(|r| bits.row(r).to_vec()).collect()
    }

    #[test]
    fn patterns_are_distinct_and_counted() {
        for side in [1, 2, 3, 4, 9] {
            let set = make(side);
            assert_eq!(set.n_rows(), (1 << (side + 1)) - 2);
            assert_eq!(patterns(&set).len(), set.n_rows());
        }
        assert_eq!(make(4).n_rows(), 30);
        assert_eq!(make(4).best_log_likelihood, Some(-(30f64.ln())));
    }

    #[test]
    fn patterns_are_those_of_brute_force() {
        // Of all 3 × 3 pictures, those whose rows or whose columns are constant.
        let bit = |picture: u64, y: usize, x: usize| picture >> (3 * y + x) & 1;
        let constant = |line: [u64; 3]| line[0] == line[1] && line[1] == line[2];
        let expected: HashSet<Vec<u64>> = (0..1u64 << 9)
            .filter(|&p| {
                (0..3).all(|y| constant([0, 1, 2].map(|x| bit(p, y, x))))
                    || (0..3).all(|x| constant([0, 1, 2].map(|y| bit(p, y, x))))
            })
            .map(|p| vec![p])
            .collect();
        assert_eq!(patterns(&make(3)), expected);
    }

    #[test]
    fn sides_out_of_reach_are_refused() {
        assert_eq!(parse_side("16").unwrap(), 16);
        for text in ["0", "17", "-1", "x", ""] {
            assert!(matches!(parse_side(text), Err(Error::InvalidSetting { .. })), "{text}");
        }
    }
}
