//! Read the sparse matrices that SciPy saves in `.npz` archives (`scipy.sparse.save_npz`).

use std::path::Path;

use super::file::{Reading, Table};
use super::scale::Columns;
use super::sparse::SparseRows;
use crate::numpy::{Archive, Words};
use crate::source::file_name;
use crate::{Error, Result};

/// The arrays of a matrix in compressed form.
const ARRAYS: [&str; 5] = ["format", "shape", "data", "indices", "indptr"];
/// Bytes of memory for each stored value while a matrix is read.
const ENTRY: u64 = 40;

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
    let form = match archive.read_with("format", |body| body.words())? {
        Words::Texts(texts) if texts.len() == 1 => texts.concat(),
        _ => return Err(damaged("its format is not one word")),
    };
    if !["csr", "csc"].contains(&form.as_str()) {
        let problem =
            format!("is a sparse matrix in {form:?} form; save it as CSR: save_npz(path, matrix.tocsr())");
        return Err(Error::malformed(path, problem));
    }
    let mut numbers = |name: &str| archive.read_with(name, |body| body.numbers(|x| x));
    let [_, shape, data, indices, indptr] = ARRAYS;
    let (shape, data) = (numbers(shape)?, numbers(data)?);
    let (indices, indptr) = (numbers(indices)?, numbers(indptr)?);
    let whole = |x: &f64| *x >= 0.0 && x.fract() == 0.0 && *x <= u32::MAX.into();
    let &[n_rows, n_columns] = shape.as_slice() else { return Err(damaged("its shape is not two numbers")) };
    if ![&shape, &indices, &indptr].into_iter().flatten().all(whole) {
        return Err(damaged("an index is not a whole number"));
    }
    let (n_rows, n_columns) = (n_rows as usize, n_columns as usize);
    // A matrix has no places for its zeros, but rows have: a bit each, or a real number.
    let row = if reading.values.keep_zeros() { n_columns.div_ceil(64) * 8 } else { n_columns * 4 };
    archive.allowance.charge_rows(n_rows)?;
    archive.allowance.charge((row as u64).checked_mul(n_rows as u64))?;
    archive.allowance.charge((data.len() as u64).checked_mul(ENTRY))?;
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
    let mut entries: Vec<(u32, u32, f32)> = Vec::new();
    entries.try_reserve_exact(data.len()).map_err(|e| Error::io("read", path)(e.into()))?;
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
