"""Convert arrays, sparse matrices and data sets to the rows of the library."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np

from ._mclv import Rows
from .errors import DataError, SettingError

_DTYPES = (np.float32, np.float64, np.bool_, np.uint8)


def is_sparse(X: Any) -> bool:
    """Return True if `X` is a sparse SciPy matrix or array. This does not import SciPy."""
    return hasattr(X, "tocsr") and hasattr(X, "format")


def _known(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.type in _DTYPES and array.dtype.isnative else array.astype(np.float32)


def as_rows(X: Any, name: str = "X", *, clip: bool = False) -> Rows:
    """Convert an array, a sparse matrix or a data set to rows.

    With `clip`, values outside [0, 1] are clipped; otherwise they are rejected.
    """
    if isinstance(X, Rows):
        return X
    inner = getattr(X, "_rows", None)
    if isinstance(inner, Rows):  # a data set
        return inner
    if is_sparse(X):
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int64, copy=False)
        return Rows.sparse(X.shape, indptr, indices, _known(X.data), X.format == "csc", name, clip)
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(f"{name} has {array.ndim} dimensions; give a matrix with one row per sample")
    if array.dtype.kind not in "fbui":
        raise DataError(f"{name} holds {array.dtype}; give numbers in [0, 1]")
    return Rows.dense(_known(array), name, clip)


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
