"""Convert arrays, sparse matrices and data sets to the rows of the library."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ._mclv import Rows
from .errors import DataError, SettingError

_TYPES = (np.float32, np.float64, np.uint8)


def is_sparse(X: Any) -> bool:
    """Return True if `X` is a sparse SciPy matrix or array. This does not import SciPy."""
    return hasattr(X, "tocsr") and hasattr(X, "format")


def readable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers, as float32, float64 or bytes, where the native half can read them.

    The native half reads aligned elements of this machine's byte order. Fields of records need not
    be aligned. A boolean is true if its byte is not 0; the native half knows only 0 and 1.
    """
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
        if array.max(initial=0) > 1:
            array = (array != 0).view(np.uint8)
    elif array.dtype.type not in _TYPES:
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        array = array.copy()
    return array


_CURE = "give numbers in [0, 1]"


def numbers_of(X: Any, name: str, cure: str = _CURE) -> npt.NDArray[Any]:
    """`X` as an array of numbers or booleans."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise DataError(f"{name} has masked values; fill them in with X.filled(...), or leave their rows out")
    try:
        array = np.asarray(X)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{name} is not a matrix: {error}") from None
    if array.dtype.kind == "O" and array.ndim > 0:
        array = _numbers_of_objects(array, name, cure)
    if array.dtype.kind == "c":
        raise DataError(f"{name} holds complex numbers ({array.dtype}); give real ones, such as X.real")
    if array.dtype.kind not in "fbui":
        raise DataError(f"{name} holds {_kind(array.dtype)}; {cure}")
    return array


def _kind(dtype: np.dtype[Any]) -> str:
    if dtype.names:
        return f"records with the fields {', '.join(dtype.names)}"
    return {"U": "texts", "S": "bytes", "T": "texts", "O": "objects", "M": "dates", "m": "durations"}.get(dtype.kind, str(dtype))


def _numbers_of_objects(array: npt.NDArray[Any], name: str, cure: str) -> npt.NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    for at, value in np.ndenumerate(array):
        try:
            float(value)
        except (TypeError, ValueError):
            where = ", ".join(f"{axis} {k + 1}" for axis, k in zip(("row", "column"), at))
            if value is None or "NA" in repr(value):
                cure = "fill in missing values, or leave their rows out"
            raise DataError(f"{name}: {where} is {value!r}, which is not a number; {cure}") from None
    raise DataError(f"{name} holds objects; {cure}")


def floats(values: Any, name: str, ndim: int) -> npt.NDArray[np.float32]:
    """`values` in single precision, with `ndim` dimensions."""
    array = numbers_of(values, name, "give numbers")
    if array.ndim != ndim:
        what = "a matrix (n_visible, n_hidden)" if ndim == 2 else "a list of numbers"
        raise DataError(f"{name} has {array.ndim} dimensions; give {what}")
    with np.errstate(over="ignore"):  # what is not finite is refused with its place
        return readable(array.astype(np.float32, copy=False))


def as_rows(X: Any, name: str = "X", *, clip: bool = False) -> Rows:
    """Convert an array, a data frame, a sparse matrix or a data set to rows.

    With `clip`, values outside [0, 1] are clipped; otherwise they are rejected.
    """
    if isinstance(X, Rows):
        return X
    inner = getattr(X, "_rows", None)
    if isinstance(inner, Rows):  # a data set
        return inner
    if is_sparse(X):
        return _sparse_rows(X, name, clip)
    array = numbers_of(X, name)
    if array.ndim != 2:
        cure = f"{name}.reshape(1, -1) makes one row" if array.ndim == 1 else "reshape it"
        raise DataError(f"{name} has {array.ndim} dimensions; give a matrix with one row per sample ({cure})")
    return Rows.dense(readable(array), name, clip)


def column_names(X: Any) -> list[str]:
    """The names of the columns of a data frame or a data set; empty if there are none."""
    of_set = getattr(X, "provenance", None)
    names = of_set.get("column_names", []) if isinstance(of_set, dict) else getattr(X, "columns", [])
    # Numbers are the places of columns, not their names.
    return list(names) if len(names) and all(isinstance(name, str) for name in names) else []


def _sparse_rows(X: Any, name: str, clip: bool) -> Rows:
    if len(X.shape) != 2:
        raise DataError(f"{name} has {len(X.shape)} dimensions; give a matrix with one row per sample")
    if X.format not in ("csr", "csc"):
        X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    indptr, indices = (np.ascontiguousarray(places, dtype=np.int64) for places in (X.indptr, X.indices))
    data = np.ascontiguousarray(readable(numbers_of(X.data, name)))
    return Rows.sparse(X.shape, indptr, indices, data, X.format == "csc", name, clip)


def warn_outside(rows: Rows, name: str = "X", stacklevel: int = 4) -> None:
    """Warn if values outside [0, 1] were clipped."""
    n, low, high = rows.outside
    if n:
        n_values = rows.shape[0] * rows.shape[1]
        is_bytes = low >= 0 and 1 < high <= 255 and float(high).is_integer()
        warnings.warn(
            f"{n} of {n_values} values of {name} lie outside [0, 1] (from {low:g} to {high:g}) and were clipped; "
            f"{'divide by 255 first' if is_bytes else 'scale them first'}, or set input_range='error'",
            UserWarning,
            stacklevel=stacklevel,
        )


#: The largest number of steps that the native half can count.
STEPS = 2**32 - 1


def whole(value: Any, name: str, most: int = 2**63 - 1) -> Any:
    """`value`, which must be a whole number from 0 to `most`, or None."""
    if value is None:
        return None
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not 0 <= value <= most:
        limit = f"from 0 to {most}" if most == STEPS else "that is not negative"
        raise SettingError(f"{name} = {value!r} is not allowed: give a whole number {limit}")
    return int(value)


def threads(n_jobs: int | None) -> int | None:
    """The number of threads for scikit-learn's `n_jobs`. None: the environment decides."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise SettingError(f"n_jobs = {n_jobs!r} is not allowed: give a number of threads, or -1 for all cores")
    if n_jobs > 0:
        return int(n_jobs)
    import os

    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def seed_of(random_state: Any) -> int:
    """The seed for `random_state`.

    An integer is the seed itself, as on the command line. A generator gives a random seed. None
    takes a random seed from NumPy's global generator.
    """
    if random_state is None:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, numbers.Integral):
        seed = int(random_state)
        if not 0 <= seed < 2**64:
            raise SettingError(f"random_state = {seed} is not allowed: give a number from 0 to 2**64 - 1")
        return seed
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    raise SettingError(f"random_state = {random_state!r} is not allowed: give an integer, a generator, or None")


def uniform(seed: Any, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Random numbers in [0, 1): the next ones of a generator, or those of a seed."""
    if seed is None:
        seed = np.random.mtrand._rand
    if not isinstance(seed, (np.random.RandomState, np.random.Generator)):
        seed = np.random.default_rng(seed_of(seed))
    return np.asarray(seed.random(shape))
