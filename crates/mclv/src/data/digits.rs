//! Unpack the built-in handwritten digits: 1,797 pictures of 8 × 8 pixels.
//!
//! E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine Learning
//! Repository, CC BY 4.0; from the copy in scikit-learn (BSD 3-Clause). See `assets/README.md`.

use std::path::Path;

use super::idx::Idx;
use super::{DataProvenance, Dataset, Labels, Rows, Split};
use crate::Result;
use crate::source::Source;

const IMAGES: &[u8] = include_bytes!("../../assets/digits-images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../assets/digits-labels-idx1-ubyte.gz");
const NAME: &str = "digits";
/// The value of a pixel that is fully on.
const FULL: u8 = 16;

/// The number of rows of the whole set.
pub(super) const N_ROWS: usize = 1797;
/// The number of pixels per row.
pub(super) const N_COLUMNS: usize = 64;

/// Returns a part of the digits, by position.
pub(super) fn make(split: Split) -> Result<Dataset> {
    let images = Idx::parse(Source::from_bytes(Path::new(NAME), IMAGES)?)?;
    let labels = Idx::parse(Source::from_bytes(Path::new(NAME), LABELS)?)?;
    let range = match split {
        Split::Train => 0..1297,
        Split::Validation => 1297..1497,
        Split::Test => 1497..N_ROWS,
        Split::All => 0..N_ROWS,
    };
    let pixels = range.start * N_COLUMNS..range.end * N_COLUMNS;
    Ok(Dataset {
        name: NAME.into(),
        rows: Rows::from_bytes(N_COLUMNS, &images.bytes[pixels], FULL),
        labels: Some(Labels {
            ids: labels.bytes[range.clone()].iter().map(|&b| u32::from(b)).collect(),
            names: (0..10).map(|digit| digit.to_string()).collect(),
        }),
        image_shape: images.image_shape(),
        best_log_likelihood: None,
        provenance: DataProvenance {
            name: NAME.into(),
            source: "built in".into(),
            sha256: images.sha256,
            preprocessing: "value/16".into(),
            split,
            division: None,
            seed: None,
            n_rows: range.len(),
            n_columns: N_COLUMNS,
            image_shape: None,
            column_names: Vec::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_the_published_ones() {
        let all = make(Split::All).unwrap();
        assert_eq!((all.n_rows(), all.n_columns(), all.image_shape), (1797, 64, Some((8, 8))));
        let Rows::Reals(rows) = &all.rows else { panic!("packed") };
        // First row of the UCI file.
        let first = [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0].map(|x| x / 16.0);
        assert_eq!(rows.row(0)[..8], first);
        // Sum of all pixels and size of each class, as scikit-learn has them.
        let sum: f64 = rows.values().iter().map(|&v| f64::from(v) * 16.0).sum();
        assert_eq!(sum, 561_718.0);
        let ids = &all.labels.unwrap().ids;
        let counts: Vec<_> = (0..10).map(|d| ids.iter().filter(|&&id| id == d).count()).collect();
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    }

    #[test]
    fn the_parts_make_up_the_whole() {
        let parts = [Split::Train, Split::Validation, Split::Test].map(|split| make(split).unwrap());
        assert_eq!(parts.each_ref().map(Dataset::n_rows), [1297, 200, 300]);
        let all = make(Split::All).unwrap();
        let ids: Vec<u32> = parts.iter().flat_map(|part| part.labels.clone().unwrap().ids).collect();
        assert_eq!(ids, all.labels.unwrap().ids);
    }
}
