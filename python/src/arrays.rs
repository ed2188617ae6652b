//! Converts NumPy arrays and sparse matrices to rows, and rows to arrays.

use crate::errors::DataError;
use crate::work::{self, check_memory};
use mclv::bits::{self, BitRows};
use mclv::data::{RealRows, Rows, SparseRows};
use numpy::ndarray::ArrayView2;
use numpy::{
    Element, IntoPyArray, PyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of the library: packed bits if all values are 0 or 1, else 32-bit floats, which are sparse
/// if they came from a sparse matrix.
#[pyclass(frozen, name = "Rows", module = "mclv._mclv")]
pub(crate) struct PyRows {
    pub(crate) rows: Arc<Rows>,
    /// Values outside [0, 1] that were clipped, and their range.
    outside: Outside,
}

/// The number of values outside [0, 1], and their range.
#[derive(Clone, Copy, Default)]
struct Outside {
    n_values: usize,
    low: f64,
    high: f64,
}

impl Outside {
    fn clip(&mut self, value: f64) -> f64 {
        if !(0.0..=1.0).contains(&value) {
            self.n_values += 1;
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
        value.clamp(0.0, 1.0)
    }
}

/// A value of an array.
trait Value: Element + Copy + PartialEq + Sync {
    const ZERO: Self;
    const ONE: Self;
    fn number(self) -> f64;
}

macro_rules! value {
    ($type:ty, $zero:expr, $one:expr, $number:expr) => {
        impl Value for $type {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            fn number(self) -> f64 {
                $number(self)
            }
        }
    };
}

value!(f32, 0.0, 1.0, f64::from);
value!(f64, 0.0, 1.0, |x| x);
value!(u8, 0, 1, f64::from);

/// Refuses an array whose elements are not where its type expects them, such as a field of packed
/// records. The Python half copies such arrays.
fn check_layout<T: Element, D: numpy::ndarray::Dimension>(array: &Bound<'_, PyArray<T, D>>) -> PyResult<()> {
    let size = size_of::<T>() as isize;
    let is_aligned = (array.data() as usize).is_multiple_of(align_of::<T>());
    if is_aligned && array.strides().iter().all(|stride| stride % size == 0) {
        return Ok(());
    }
    Err(DataError::new_err("the elements of the array are not aligned: give a copy of it"))
}

/// Runs `$work` with `$array` as an array of its own type.
macro_rules! with_values {
    ($object:expr, $array:ident, $kind:ident, $work:expr) => {
        if let Ok($array) = $object.extract::<$kind<'_, f32>>() {
            check_layout(&$array)?;
            $work
        } else if let Ok($array) = $object.extract::<$kind<'_, f64>>() {
            check_layout(&$array)?;
            $work
        } else if let Ok($array) = $object.extract::<$kind<'_, u8>>() {
            check_layout(&$array)?;
            $work
        } else {
            let what = match $object.cast::<PyUntypedArray>() {
                Ok(array) => format!("an array of {} with shape {:?}", array.dtype(), array.shape()),
                Err(_) => format!("{}", $object.get_type()),
            };
            return Err(DataError::new_err(format!(
                "cannot read {what}: give an array of float32, float64 or uint8 of the right dimension"
            )));
        }
    };
}

/// The rows as bits, if all values are 0 or 1.
fn pack<T: Value>(values: ArrayView2<'_, T>) -> Option<BitRows> {
    let (n_rows, n_columns) = values.dim();
    let mut packed = BitRows::zeros(n_rows, n_columns);
    for (r, row) in values.outer_iter().enumerate() {
        let row = row.to_slice().map_or_else(|| Cow::Owned(row.to_vec()), Cow::Borrowed);
        let mut are_bits = true;
        for (word, values) in packed.row_mut(r).iter_mut().zip(row.chunks(64)) {
            for (i, &x) in values.iter().enumerate() {
                *word |= u64::from(x == T::ONE) << i;
                are_bits &= (x == T::ONE) | (x == T::ZERO);
            }
        }
        if !are_bits {
            return None;
        }
    }
    Some(packed)
}

fn dense<T: Value>(name: &str, values: ArrayView2<'_, T>, clip: bool) -> mclv::Result<(Rows, Outside)> {
    let (n_rows, n_columns) = values.dim();
    let mut outside = Outside::default();
    if n_rows > 0
        && n_columns > 0
        && let Some(packed) = pack(values)
    {
        return Ok((Rows::Bits(packed), outside));
    }
    let mut number = |x: &T| (if clip { outside.clip(x.number()) } else { x.number() }) as f32;
    let values: Vec<f32> = values.iter().map(&mut number).collect();
    Ok((Rows::from_values(name, n_columns, values)?, outside))
}

/// The non-zero values of a sparse matrix, line by line; lines are rows, or columns if `by_column`.
struct Sparse<'a, T> {
    shape: (usize, usize),
    by_column: bool,
    starts: &'a [i64],
    places: &'a [i64],
    values: &'a [T],
}

impl<T: Value> Sparse<'_, T> {
    fn is_sound(&self) -> bool {
        let (n_rows, n_columns) = self.shape;
        let (n_lines, n_places) = if self.by_column { (n_columns, n_rows) } else { (n_rows, n_columns) };
        let n = self.values.len();
        let is_rising =
            |ends: &[i64]| self.places[ends[0] as usize..ends[1] as usize].is_sorted_by(|a, b| a < b);
        self.starts.len() == n_lines + 1
            && self.places.len() == n
            && self.starts.first() == Some(&0)
            && self.starts.last() == Some(&(n as i64))
            && self.starts.is_sorted()
            && self.places.iter().all(|&p| (0..n_places as i64).contains(&p))
            && self.starts.windows(2).all(is_rising)
    }

    /// The entries in order of rows. Entries stored by columns are sorted into their rows.
    fn by_row(&self, mut number: impl FnMut(T) -> f32) -> SparseRows {
        let (n_rows, n_columns) = self.shape;
        let n = self.values.len();
        if !self.by_column {
            let starts: Vec<usize> = self.starts.iter().map(|&s| s as usize).collect();
            let columns: Vec<u32> = self.places.iter().map(|&p| p as u32).collect();
            return SparseRows::new(
                n_columns,
                &starts,
                &columns,
                self.values.iter().map(|&x| number(x)).collect(),
            );
        }
        let mut starts = vec![0; n_rows + 1];
        self.places.iter().for_each(|&r| starts[r as usize + 1] += 1);
        (0..n_rows).for_each(|r| starts[r + 1] += starts[r]);
        let (mut next, mut columns, mut values) = (starts.clone(), vec![0; n], vec![0.0; n]);
        for (column, ends) in self.starts.windows(2).enumerate() {
            for k in ends[0] as usize..ends[1] as usize {
                let to = &mut next[self.places[k] as usize];
                (columns[*to], values[*to]) = (column as u32, number(self.values[k]));
                *to += 1;
            }
        }
        SparseRows::new(n_columns, &starts, &columns, values)
    }

    fn check(&self, name: &str) -> PyResult<()> {
        let (n_rows, n_columns) = self.shape;
        if u32::try_from(n_columns).is_err() {
            return Err(DataError::new_err(format!(
                "{name} has {n_columns} columns; a sparse matrix may have at most {}",
                u32::MAX
            )));
        }
        // A bit for each value, and where each row begins and ends.
        check_memory(name, work::bytes_of_bits(n_rows, n_columns) + 32 * n_rows as u128)?;
        if !self.is_sound() {
            return Err(DataError::new_err(format!(
                "{name}: the arrays of the sparse matrix contradict each other; create it again from its entries"
            )));
        }
        Ok(())
    }

    fn rows(&self, name: &str, clip: bool) -> mclv::Result<(Rows, Outside)> {
        let mut outside = Outside::default();
        let rows = self.by_row(|x| (if clip { outside.clip(x.number()) } else { x.number() }) as f32);
        Ok((Rows::from_sparse(name, rows)?, outside))
    }
}

#[pymethods]
impl PyRows {
    /// From a two-dimensional array. With `clip`, values outside [0, 1] are counted and clipped
    /// instead of rejected.
    #[staticmethod]
    fn dense(py: Python<'_>, array: &Bound<'_, PyAny>, name: &str, clip: bool) -> PyResult<Self> {
        let (rows, outside) = with_values!(array, a, PyReadonlyArray2, {
            let (values, (n_rows, n_columns)) = (a.as_array(), a.as_array().dim());
            // A view can repeat one row without end. 32-bit floats are all that is made of an array.
            let is_view = a.strides().contains(&0);
            let n_bytes = 4 * n_rows as u128 * n_columns as u128;
            check_memory(name, if is_view { n_bytes } else { 0 })?;
            work::quick(py, || dense(name, values, clip))?
        });
        Ok(Self { rows: Arc::new(rows), outside })
    }

    /// From the arrays of a CSR matrix, or of a CSC matrix if `by_column`.
    #[staticmethod]
    #[pyo3(signature = (shape, indptr, indices, data, by_column, name, clip))]
    fn sparse(
        py: Python<'_>,
        shape: (usize, usize),
        indptr: PyReadonlyArray1<'_, i64>,
        indices: PyReadonlyArray1<'_, i64>,
        data: &Bound<'_, PyAny>,
        by_column: bool,
        name: &str,
        clip: bool,
    ) -> PyResult<Self> {
        let (starts, places) = (indptr.as_slice()?, indices.as_slice()?);
        let (rows, outside) = with_values!(data, values, PyReadonlyArray1, {
            let matrix = Sparse { shape, by_column, starts, places, values: values.as_slice()? };
            matrix.check(name)?;
            work::quick(py, || matrix.rows(name, clip))?
        });
        Ok(Self { rows: Arc::new(rows), outside })
    }

    /// (n_rows, n_columns).
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.rows.n_rows(), self.rows.n_columns())
    }

    /// True if all values are 0 or 1.
    #[getter]
    fn is_binary(&self) -> bool {
        matches!(*self.rows, Rows::Bits(_))
    }

    /// Values outside [0, 1] that were clipped, the smallest and the largest of them.
    #[getter]
    fn outside(&self) -> (usize, f64, f64) {
        (self.outside.n_values, self.outside.low, self.outside.high)
    }

    /// The values: uint8 if all are 0 or 1, else float32.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let n_values = self.rows.n_rows() as u128 * self.rows.n_columns() as u128;
        check_memory("the array", n_values * if self.is_binary() { 1 } else { 4 })?;
        Ok(match &*self.rows {
            Rows::Bits(bits) => bits_to_array(py, bits)?.into_any(),
            Rows::Reals(rows) => reals_to_array(py, rows.clone())?.into_any(),
            Rows::Sparse(rows) => reals_to_array(py, rows.to_reals())?.into_any(),
        })
    }
}

impl PyRows {
    /// The rows, which must be bits.
    pub(crate) fn bits(&self) -> PyResult<&BitRows> {
        match &*self.rows {
            Rows::Bits(bits) => Ok(bits),
            _ => Err(DataError::new_err("states hold 0 or 1, but a value lies between them")),
        }
    }

    pub(crate) fn new(rows: Rows) -> Self {
        Self { rows: Arc::new(rows), outside: Outside::default() }
    }
}

/// A matrix that takes over `values`.
pub(crate) fn matrix<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    n_rows: usize,
    n_columns: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    values.into_pyarray(py).reshape([n_rows, n_columns])
}

/// A vector that takes over `values`.
pub(crate) fn vector<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    values.into_pyarray(py)
}

/// Bits as a matrix of uint8.
pub(crate) fn bits_to_array<'py>(py: Python<'py>, rows: &BitRows) -> PyResult<Bound<'py, PyArray2<u8>>> {
    check_memory("the array", rows.n_rows() as u128 * rows.n_bits() as u128)?;
    let mut values = vec![0u8; rows.n_rows() * rows.n_bits()];
    for (r, row) in values.chunks_exact_mut(rows.n_bits()).enumerate() {
        bits::ones(rows.row(r)).for_each(|i| row[i] = 1);
    }
    matrix(py, values, rows.n_rows(), rows.n_bits())
}

/// Rows of reals as a matrix of float32.
pub(crate) fn reals_to_array(py: Python<'_>, rows: RealRows) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let (n_rows, n_columns) = (rows.n_rows(), rows.n_columns());
    matrix(py, rows.into_values(), n_rows, n_columns)
}
