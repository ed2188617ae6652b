"""Stopping sets, and the tours of a model's chain between visits to them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._rows import as_rows, seed_of, threads
from ._model import as_model
from ._partition import LogZ

__all__ = ["StoppingSet", "Tours", "tours"]


class StoppingSet:
    """Distinct hidden states at which tours end.

    Parameters
    ----------
    states : array of shape (n_states, n_hidden)
        Zeros and ones; what occurs twice counts once.

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
        """Hidden states drawn from ``p(h|v)`` of each row."""
        rows, native = as_rows(data, "data"), as_model(model)._model
        return cls._wrap(
            _mclv.StoppingSet.from_data(native, rows, samples_per_row, seed_of(seed), threads(n_jobs))
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
        """Hidden states that pilot chains visit, where there are no data."""
        native = as_model(model)._model
        return cls._wrap(
            _mclv.StoppingSet.from_chains(native, n_chains, burn_in, n_steps, seed_of(seed), threads(n_jobs))
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StoppingSet:
        """Read what :meth:`save` wrote."""
        return cls._wrap(_mclv.StoppingSet.load(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the states, all or nothing."""
        self._set.save(path)

    @property
    def states(self) -> npt.NDArray[np.uint8]:
        """The states, a row each."""
        return self._set.states()

    def find(self, states: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The row of each state in the set; -1 for what is not in it."""
        return np.array(self._set.find(as_rows(states, "states")), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._set)

    def __repr__(self) -> str:
        return f"StoppingSet({len(self)} states of {self._set.n_hidden} hidden units)"

    def __reduce__(self) -> Any:
        return StoppingSet, (self.states,)


@dataclass(frozen=True)
class Tours:
    """Independent tours, as arrays with an entry for each."""

    #: The state of the set (or the row of the data) that each tour began in.
    starts: npt.NDArray[np.int64]
    #: Steps until each was in the set again, or until it was cut.
    lengths: npt.NDArray[np.int64]
    #: The state of the set that each ended in; -1 for those that were cut.
    ends: npt.NDArray[np.int64]
    #: Whether each ended in the very state that it began in.
    own_start: npt.NDArray[np.bool_]
    #: The tail function ``p(length > k)``: where it changes, its value, and 95 % limits (pointwise).
    ccdf_k: npt.NDArray[np.int64]
    ccdf_p: npt.NDArray[np.float64]
    ccdf_low: npt.NDArray[np.float64]
    ccdf_high: npt.NDArray[np.float64]
    #: Tours that were cut say nothing of larger lengths; None: none was cut.
    known_up_to: int | None
    #: ``value``, ``std_err`` and ``guarantee`` of the mean length, an estimate of ``Z / Z_S``.
    mean_length: dict[str, Any]
    #: A geometric tail fitted to the longest tours; empirical.
    tail_fit: dict[str, Any] | None
    log_z_s: float
    n_steps: int
    seconds: float
    #: ``verdict`` (``"memorised"``, ``"mixing"``, ``"stuck"`` or ``"unclear"``), the numbers that it rests on, and ``text``.
    conclusion: dict[str, Any]
    #: Log Z from these tours; None if they began at data rows.
    log_z: LogZ | None

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Whether each tour returned."""
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
    """Make tours: Gibbs chains from a state of the stopping set until they are in the set again.

    Parameters
    ----------
    model : RBM, TrainResult or fitted BernoulliRBM
    stopping_set : StoppingSet
        It must not have been made from tours.
    n_tours : int
    data : rows, optional
        Begin at hidden states of these rows instead of at draws from ``pi_S``; such tours say nothing of Z.
    visible : {"sampled", "mean-field"}
        A true Gibbs chain, or the paper's, to which no guarantee applies.
    stratified : bool
        Starts spread evenly over ``pi_S``.
    max_length, max_steps, max_seconds : optional
        Limits; they cut all tours at the same length.
    seed, n_jobs
        As everywhere.

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
        "n-tours": n_tours, "visible": visible, "stratified": stratified, "max-length": max_length,
        "max-steps": max_steps, "max-seconds": max_seconds, "seed": seed_of(seed),
    }  # fmt: skip
    rows = None if data is None else as_rows(data, "data")
    facts = _mclv.tours(as_model(model)._model, stopping_set._set, settings, rows, threads(n_jobs))
    log_z = facts.pop("log_z")
    return Tours(**facts, log_z=log_z and LogZ(**log_z))
