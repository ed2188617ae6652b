//! Read weights of rows, check them, and average with them.

use crate::numpy::read_npy;
use crate::source::{Source, broken};
use crate::{Error, Result};
use std::path::Path;

/// Rejects weights that are not one non-negative number for each row, or that are all zero.
pub(super) fn check(weights: &[f32], n_rows: usize) -> Result<()> {
    if weights.len() != n_rows {
        let (expected, got) = (n_rows, weights.len());
        return Err(Error::ShapeMismatch { what: "sample weights, one per row".into(), expected, got });
    }
    let wrong = |value: String, cure| Err(Error::InvalidSetting { name: "sample weights", value, cure });
    match weights.iter().find(|w| !is_weight(**w)) {
        Some(bad) => wrong(bad.to_string(), "must be 0 or more"),
        None if weights.iter().all(|&w| w == 0.0) => {
            wrong("0 throughout".into(), "at least one must be positive")
        }
        None => Ok(()),
    }
}

fn is_weight(weight: f32) -> bool {
    weight.is_finite() && weight >= 0.0
}

/// Reads one weight per row from a `.npy` file of any shape with a single long side, or from a
/// `.csv` file of one column with or without a header. Also returns the SHA-256 of the content.
pub(super) fn read(path: &Path) -> Result<(Vec<f32>, String)> {
    let name = path.to_string_lossy().to_lowercase();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let (weights, sha256) = if plain.ends_with(".npy") {
        let (array, sha256) = read_npy(Source::open(path)?)?;
        if array.shape.iter().filter(|&&n| n != 1).count() > 1 {
            let problem = format!("has the shape {:?}; give one weight per row", array.shape);
            return Err(Error::malformed(path, problem));
        }
        (array.into_reals(), sha256)
    } else if plain.ends_with(".csv") {
        read_csv(path)?
    } else {
        return Err(Error::UnknownFormat { path: path.into(), known: ".npy and .csv, one weight per row" });
    };
    if let Some(row) = weights.iter().position(|&w| !is_weight(w)) {
        let problem = format!("holds the weight {}; give 0 (left out) or more, and finite", weights[row]);
        return Err(Error::malformed_at(path, format!("row {}", row + 1), problem));
    }
    if weights.iter().all(|&w| w == 0.0) {
        return Err(Error::malformed(path, "has no positive weight; at least one row must count"));
    }
    Ok((weights, sha256))
}

fn read_csv(path: &Path) -> Result<(Vec<f32>, String)> {
    let mut source = Source::open(path)?;
    let is_gzip = source.is_gzip;
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&mut source);
    let mut weights = Vec::new();
    for (line, record) in reader.byte_records().enumerate() {
        let record = record.map_err(|e| match e.into_kind() {
            ::csv::ErrorKind::Io(e) => broken(path, is_gzip, e),
            other => Error::malformed(path, format!("{other:?}")),
        })?;
        let place = || format!("line {}", record.position().map_or(line as u64 + 1, |p| p.line()));
        if record.len() != 1 {
            let problem = format!("has {} cells; give one weight per line", record.len());
            return Err(Error::malformed_at(path, place(), problem));
        }
        let cell = String::from_utf8_lossy(&record[0]);
        match cell.trim().parse() {
            Ok(weight) => weights.push(weight),
            // A first line that is not a number is a header.
            Err(_) if line == 0 => {}
            Err(_) => {
                let problem = format!("holds {:?}; give a number, 0 or more", cell.trim());
                return Err(Error::malformed_at(path, place(), problem));
            }
        }
    }
    drop(reader);
    Ok((weights, source.finish()?))
}

/// Returns the weighted mean of `values`.
pub(super) fn mean(values: &[f64], weights: Option<&[f32]>) -> f64 {
    match weights {
        None => values.iter().sum::<f64>() / values.len() as f64,
        Some(weights) => {
            let (sum, total) = values.iter().zip(weights).fold((0.0, 0.0), |(sum, total), (x, &w)| {
                let w = f64::from(w);
                (if w == 0.0 { sum } else { sum + w * x }, total + w)
            });
            sum / total
        }
    }
}

/// Returns the standard error of [`mean`] from the choice of rows. `None` for a single row.
pub(super) fn std_err(values: &[f64], weights: Option<&[f32]>) -> Option<f64> {
    let mean = mean(values, weights);
    let weight = |r: usize| weights.map_or(1.0, |weights| f64::from(weights[r]));
    // Rows of weight zero may have any value.
    let rows = || values.iter().enumerate().map(|(r, x)| (weight(r), x)).filter(|(w, _)| *w > 0.0);
    let (n, total) = rows().fold((0.0, 0.0), |(n, total), (w, _)| (n + 1.0, total + w));
    let squares: f64 = rows().map(|(w, x)| (w / total * (x - mean)).powi(2)).sum();
    (n > 1.0).then(|| (squares * n / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numpy::to_npy;

    fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<f32>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read(&path).map(|(weights, _)| weights)
    }

    /// By hand: rows of weight 2 count as two parts of the mean, and rows of weight 0 not at all.
    #[test]
    fn the_error_of_a_mean_counts_its_rows() {
        let values = [1.0, 2.0, 4.0, 5.0];
        let by_hand = (((4.0 + 1.0 + 1.0 + 4.0) / 3.0) / 4.0f64).sqrt();
        assert!((std_err(&values, None).unwrap() - by_hand).abs() < 1e-12);
        assert!((std_err(&values, Some(&[3.0; 4])).unwrap() - by_hand).abs() < 1e-12);
        let with_nan = [1.0, 2.0, 4.0, 5.0, f64::NAN];
        let weights = [1.0, 1.0, 1.0, 1.0, 0.0];
        assert!((std_err(&with_nan, Some(&weights)).unwrap() - by_hand).abs() < 1e-12);
        // A mean of 1.5 from the shares 3/4 and 1/4: (3/4 · 0.5)² + (1/4 · 1.5)², times 2/1.
        let uneven = std_err(&[1.0, 3.0], Some(&[3.0, 1.0])).unwrap();
        assert!((uneven - (2.0f64 * (0.375f64.powi(2) + 0.375f64.powi(2))).sqrt()).abs() < 1e-12);
        assert_eq!(std_err(&[1.0], None), None);
    }

    #[test]
    fn columns_and_lines_are_read() {
        let expected = [1.0, 0.0, 2.5];
        for (name, bytes) in [
            ("w.npy", to_npy(&[3], &expected)),
            ("w.npy", to_npy(&[3, 1], &[1.0f64, 0.0, 2.5])),
            ("w.csv", b"1\n0\n2.5\n".to_vec()),
            ("w.CSV", b"weight\n1\n 0 \n2.5".to_vec()),
        ] {
            assert_eq!(read_bytes(name, &bytes).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_weight_is_refused_with_its_place_and_the_cure() {
        for (name, bytes, parts) in [
            ("w.npy", to_npy(&[2, 2], &[1.0f32; 4]), ["[2, 2]", "one weight per row"]),
            ("w.npy", to_npy(&[2], &[1.0f32, -1.0]), ["holds the weight -1", "row 2"]),
            ("w.npy", to_npy(&[2], &[f32::NAN, 1.0]), ["holds the weight NaN", "row 1"]),
            ("w.npy", to_npy(&[2], &[0.0f32, 0.0]), ["no positive weight", "at least one"]),
            ("w.csv", b"1\n2,3\n".to_vec(), ["has 2 cells", "line 2"]),
            ("w.csv", b"w\n1\nmany\n".to_vec(), ["\"many\"", "line 3"]),
            ("w.csv", b"1\n-inf\n".to_vec(), ["holds the weight -inf", "row 2"]),
            ("w.csv", b"".to_vec(), ["w.csv", "no positive weight"]),
            ("w.txt", b"1\n".to_vec(), ["w.txt", ".npy and .csv"]),
        ] {
            let error = read_bytes(name, &bytes).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn a_mean_counts_by_weight_and_leaves_out_what_has_none() {
        assert_eq!(mean(&[1.0, 2.0, 6.0], None), 3.0);
        assert_eq!(mean(&[1.0, 3.0, f64::NEG_INFINITY], Some(&[3.0, 1.0, 0.0])), 1.5);
    }
}
