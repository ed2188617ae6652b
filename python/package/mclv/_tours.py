"""Stopping sets and tours: Gibbs chains from a stopping set until they return to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._rows import STEPS, as_rows, seed_of, threads, whole
from ._model import as_model
from ._partition import LogZ

__all__ = ["StoppingSet", "Tours", "tours"]


class StoppingSet:
    """A set of distinct hidden states in which tours start and end.

    Parameters
    ----------
    states : array of shape (n_states, n_hidden)
        Zeros and ones. Duplicate states count once.

    Examples
    --------
    >>> import mclv
    >>> s = mclv.StoppingSet([[0, 1], [1, 1], [0, 1]])
    >>> len(s), s.find([[1, 1], [1, 0]]).tolist()
    (2, [1, -1])
    """

    _set: _mclv.StoppingSet

    def __init__(self, states: npt.ArrayLike) -> None:
        self._set = _mclv.StoppingSet.from_states(as_rows(states, "states"))

    @classmethod
    def _wrap(cls, native: _mclv.StoppingSet) -> StoppingSet:
        stopping_set = cls.__new__(cls)
        stopping_set._set = native
        return stopping_set

    @classmethod
    def from_data(
        cls, model: Any, data: Any, *, samples_per_row: int = 1, seed: Any = 0, n_jobs: int | None = None
    ) -> StoppingSet:
        """A set of hidden states drawn from ``p(h|v)`` of each row."""
        rows, native = as_rows(data, "data"), as_model(model)._model
        return cls._wrap(
            _mclv.StoppingSet.from_data(native, rows, whole(samples_per_row, "samples_per_row"), seed_of(seed), threads(n_jobs))
        )

    @classmethod
    def from_chains(
        cls,
        model: Any,
        *,
        n_chains: int = 64,
        burn_in: int = 1000,
        n_steps: int = 500,
        seed: Any = 0,
        n_jobs: int | None = None,
    ) -> StoppingSet:
        """A set of hidden states visited by pilot chains. It needs no data."""
        native, n_chains = as_model(model)._model, whole(n_chains, "n_chains")
        burn_in, n_steps = whole(burn_in, "burn_in", STEPS), whole(n_steps, "n_steps", STEPS)
        return cls._wrap(
            _mclv.StoppingSet.from_chains(native, n_chains, burn_in, n_steps, seed_of(seed), threads(n_jobs))
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StoppingSet:
        """Read a file written by :meth:`save`."""
        return cls._wrap(_mclv.StoppingSet.load(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the states to a file. The file is complete or not written at all."""
        self._set.save(path)

    @property
    def states(self) -> npt.NDArray[np.uint8]:
        """The states, one per row."""
        return self._set.states()

    def find(self, states: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The row of each state in the set; -1 for states that are not in it."""
        return np.array(self._set.find(as_rows(states, "states")), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._set)

    def __repr__(self) -> str:
        return f"StoppingSet({len(self)} states of {self._set.n_hidden} hidden units)"

    def __reduce__(self) -> Any:
        return StoppingSet, (self.states,)


@dataclass(frozen=True)
class Tours:
    """Independent tours, as arrays with one entry per tour."""

    #: The state of the set (or the row of the data) in which each tour started.
    starts: npt.NDArray[np.int64]
    #: Number of steps until each tour was in the set again, or until it was cut.
    lengths: npt.NDArray[np.int64]
    #: The state of the set in which each tour ended; -1 for tours that were cut.
    ends: npt.NDArray[np.int64]
    #: True for tours that ended in the state in which they started.
    own_start: npt.NDArray[np.bool_]
    #: The lengths k at which the tail function ``p(length > k)`` changes.
    ccdf_k: npt.NDArray[np.int64]
    #: The values of the tail function there.
    ccdf_p: npt.NDArray[np.float64]
    #: Lower pointwise 95 % limits of the tail function.
    ccdf_low: npt.NDArray[np.float64]
    #: Upper pointwise 95 % limits of the tail function.
    ccdf_high: npt.NDArray[np.float64]
    #: The length up to which the tail function is known; None if no tour was cut.
    known_up_to: int | None
    #: ``value``, ``std_err`` and ``guarantee`` of the mean length, which estimates ``Z / Z_S``.
    mean_length: dict[str, Any]
    #: A geometric tail fitted to the longest tours. It has no guarantee.
    tail_fit: dict[str, Any] | None
    #: The logarithm of the known weight of the stopping set.
    log_z_s: float
    #: Steps of all tours together.
    n_steps: int
    #: The time it took.
    seconds: float
    #: ``verdict`` (``"concentrated"``, ``"mixing"``, ``"stuck"`` or ``"unclear"``), the numbers behind
    #: it, and ``text``.
    conclusion: dict[str, Any]
    #: Log Z from these tours; None if they started at data rows.
    log_z: LogZ | None

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """True for tours that returned."""
        return self.ends >= 0

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        n = int(self.complete.sum())
        mean, verdict = self.mean_length["value"], self.conclusion["verdict"]
        return f"Tours({len(self)} tours, {n} complete, mean length {mean:.4g}, {verdict})"


def tours(
    model: Any,
    stopping_set: StoppingSet,
    n_tours: int = 10_000,
    *,
    data: Any = None,
    visible: str = "sampled",
    stratified: bool = False,
    max_length: int | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    seed: Any = 0,
    n_jobs: int | None = None,
) -> Tours:
    """Run tours: Gibbs chains from a state of the stopping set until they are in the set again.

    Parameters
    ----------
    model : RBM, TrainResult or fitted BernoulliRBM
    stopping_set : StoppingSet
        The stopping set. It must not depend on these tours.
    n_tours : int
        Number of tours.
    data : rows, optional
        Start at hidden states of these rows instead of draws from ``pi_S``. Such tours do not
        estimate Z.
    visible : {"sampled", "mean-field"}
        A true Gibbs chain, or the chain of the paper's code, which has no guarantee.
    stratified : bool
        Spread the starts evenly over ``pi_S``.
    max_length, max_steps, max_seconds : optional
        Limits on the length of a tour, on the steps of all tours together, and on the time. All
        tours are cut at the same length.
    seed : int, RandomState, Generator or None
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads. It does not change the result.

    Examples
    --------
    >>> import mclv
    >>> rbm = mclv.RBM([[0.8] * 3] * 4, [-1.0] * 4, [-1.0] * 3)
    >>> s = mclv.StoppingSet([[0, 0, 0], [1, 1, 1]])
    >>> t = mclv.tours(rbm, s, 2000)
    >>> bool(t.complete.all()), t.log_z.guarantee_z
    (True, 'unbiased')
    >>> t.conclusion["verdict"]
    'mixing'
    >>> t.lengths.shape, bool((t.ccdf_p[1:] < 1).all())
    ((2000,), True)
    """
    settings = {
        "n-tours": whole(n_tours, "n_tours"), "visible": visible, "stratified": stratified, "max-length": whole(max_length, "max_length", STEPS),
        "max-steps": whole(max_steps, "max_steps"), "max-seconds": max_seconds, "seed": seed_of(seed),
    }  # fmt: skip
    rows = None if data is None else as_rows(data, "data")
    facts = _mclv.tours(as_model(model)._model, stopping_set._set, settings, rows, threads(n_jobs))
    log_z = facts.pop("log_z")
    return Tours(**facts, log_z=log_z and LogZ(**log_z))
