//! Read the sparse matrices that SciPy saves in `.npz` archives (`scipy.sparse.save_npz`).

use std::path::Path;

use super::file::{Reading, Table};
use super::scale::Columns;
use super::sparse::SparseRows;
use crate::numpy::{Archive, read_numbers};
use crate::source::file_name;
use crate::{Error, Result};

/// The arrays of a matrix in compressed form.
const ARRAYS: [&str; 5] = ["format", "shape", "data", "indices", "indptr"];
/// The most values, zeros included, of a matrix that is read: 8 gigabytes of bits.
const MAX_VALUES: u64 = 1 << 36;

/// Returns true if an archive with these arrays holds a sparse matrix.
pub(super) fn is_sparse_matrix(has: &impl Fn(&str) -> bool) -> bool {
    has("format") && has("shape") && has("data")
}

/// Reads a matrix in CSR or CSC form. Values in the same place are added, as SciPy does.
pub(super) fn read(path: &Path, archive: &mut Archive<'_>, reading: &Reading<'_>) -> Result<Table> {
    for (column, name) in [(reading.label_column, "label_column"), (reading.split_column, "split_column")] {
        if let Some(column) = column {
            let cure = "leave it out: a sparse matrix has no other columns";
            return Err(Error::InvalidSetting { name, value: column.into(), cure });
        }
    }
    let damaged = |problem: &str| Error::malformed(path, format!("is no intact sparse matrix: {problem}"));
    let mut form = Vec::new();
    archive.read_with("format", |header, reader| {
        let length = header.dtype().num_bytes().unwrap_or(0).min(64);
        form.resize(length, 0);
        reader.read_exact(&mut form).map_err(|_| damaged("its format cannot be read"))
    })?;
    let form: String =
        form.iter().filter(|byte| byte.is_ascii_alphabetic()).map(|&b| char::from(b)).collect();
    if !["csr", "csc"].contains(&form.as_str()) {
        let problem =
            format!("is a sparse matrix in {form:?} form; save it as CSR: save_npz(path, matrix.tocsr())");
        return Err(Error::malformed(path, problem));
    }
    let mut numbers = |name: &str| {
        archive.read_with(name, |header, mut reader| read_numbers(header, &mut reader, path, |x| x))
    };
    let [_, shape, data, indices, indptr] = ARRAYS;
    let (shape, data) = (numbers(shape)?, numbers(data)?);
    let (indices, indptr) = (numbers(indices)?, numbers(indptr)?);
    let whole = |x: &f64| *x >= 0.0 && x.fract() == 0.0 && *x <= u32::MAX.into();
    let &[n_rows, n_columns] = shape.as_slice() else { return Err(damaged("its shape is not two numbers")) };
    if ![&shape, &indices, &indptr].into_iter().flatten().all(whole) {
        return Err(damaged("an index is not a whole number"));
    }
    let (n_rows, n_columns) = (n_rows as usize, n_columns as usize);
    if (n_rows as u64).saturating_mul(n_columns as u64) > MAX_VALUES {
        let problem = format!("has {n_rows} × {n_columns} values, more than are read; give fewer rows");
        return Err(Error::malformed(path, problem));
    }
    let (n_outer, n_inner) = if form == "csr" { (n_rows, n_columns) } else { (n_columns, n_rows) };
    let is_sound = indptr.len() == n_outer + 1
        && indptr[0] == 0.0
        && indptr.is_sorted()
        && indptr[n_outer] as usize == data.len()
        && indices.len() == data.len()
        && indices.iter().all(|&index| (index as usize) < n_inner);
    if !is_sound {
        return Err(damaged("its indices do not fit its shape and its values"));
    }
    // Row, column and value of each entry.
    let mut entries: Vec<(u32, u32, f32)> = Vec::with_capacity(data.len());
    for (outer, ends) in (0u32..).zip(indptr.windows(2)) {
        for at in ends[0] as usize..ends[1] as usize {
            let (inner, value) = (indices[at] as u32, data[at] as f32);
            entries.push(if form == "csr" { (outer, inner, value) } else { (inner, outer, value) });
        }
    }
    entries.sort_by_key(|&(row, column, _)| (row, column));
    entries.dedup_by(|next, first| {
        let is_same = (next.0, next.1) == (first.0, first.1);
        if is_same {
            first.2 += next.2;
        }
        is_same
    });
    entries.retain(|&(_, _, value)| value != 0.0);

    let mut starts = vec![0; n_rows + 1];
    entries.iter().for_each(|&(row, _, _)| starts[row as usize + 1] += 1);
    (0..n_rows).for_each(|row| starts[row + 1] += starts[row]);
    let columns: Vec<u32> = entries.iter().map(|entry| entry.1).collect();
    let values = entries.iter().map(|entry| entry.2).collect();
    let name = file_name(path);
    let table = Columns::of_array(&name, n_columns);
    let share = if n_rows * n_columns > 0 { entries.len() as f64 / (n_rows * n_columns) as f64 } else { 0.0 };
    if n_rows * n_columns == 0 {
        return Err(super::rows::no_rows(&name));
    }
    Ok(Table {
        rows: reading.values.rows_of_sparse(&table, SparseRows::new(n_columns, &starts, &columns, values))?,
        labels: None,
        splits: None,
        image_shape: None,
        preprocessing: reading.values.preprocessing(),
        format: format!("SciPy sparse matrix ({form}), {:.1} % stored", 100.0 * share),
        column_names: Vec::new(),
        sha256: archive.sha256.clone(),
    })
}
