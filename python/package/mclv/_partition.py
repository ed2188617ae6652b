"""Log Z by several methods, and likelihoods, with their uncertainty and their guarantees."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._rows import as_rows, seed_of, threads, whole
from ._model import as_model
from .errors import SettingError, UncertainWarning

__all__ = ["Likelihood", "LogZ", "log_likelihood", "log_likelihoods", "log_partition"]


@dataclass(frozen=True)
class LogZ:
    """An estimate of log Z in nats. ``float(log_z)`` is its value."""

    #: Log Z in nats.
    value: float
    #: Standard error; 0 if exact, ``None`` if unknown.
    std_err: float | None
    #: A 95 % confidence interval; ``None`` if the method declines to give one.
    interval: tuple[float, float] | None
    #: ``"exact"``, ``"unbiased-z"``, ``"lower-bound"``, ``"upper-bound"`` or ``"none"``.
    guarantee: str
    #: The method that made the estimate, such as ``"exact"`` or ``"mclv"``.
    method: str
    #: Number of states summed and Gibbs steps made, including pilots.
    n_states: float
    #: The time it took.
    seconds: float
    #: Things to know before relying on the value, one sentence each.
    notes: list[str]
    #: What is guaranteed for Z, in words.
    guarantee_z: str
    #: What is guaranteed for log Z, in words.
    guarantee_log_z: str
    #: What is guaranteed for a likelihood computed with it, in words.
    guarantee_likelihood: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.guarantee == "exact":
            number = f"{self.value:.4f}"
        elif self.std_err is None:
            number = f"≈ {self.value:.4f}"
        else:
            number = f"{self.value:.4f} ± {self.std_err:.4f}"
        return f"{number} ({self.method}; Z {self.guarantee_z})"


@dataclass(frozen=True)
class Likelihood:
    """The average log-likelihood of rows, in nats per row. ``float(likelihood)`` is its mean."""

    #: The mean over rows, in nats.
    mean: float
    #: Standard error over rows: how much the mean varies between samples of rows. ``None`` for a
    #: single row.
    std_err_rows: float | None
    #: Standard error of log Z, the same for all rows; 0 if exact, ``None`` if unknown.
    std_err_log_z: float | None
    #: A 95 % interval for the mean over these rows, if log Z has an interval.
    interval: tuple[float, float] | None
    #: The side to which the estimate errs on average.
    guarantee: str
    #: Smallest and largest log-likelihood of a row.
    range: tuple[float, float]
    #: Number of rows.
    n_rows: int
    #: True if rows have values other than 0 and 1. The mean is then a lower bound on the expected
    #: value of binarised rows.
    is_grey: bool
    #: Log Z, with which it was computed.
    log_z: LogZ

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        rows = "" if self.std_err_rows is None else f" ± {self.std_err_rows:.4f}"
        return f"{self.mean:.4f}{rows} nats per row (log Z {self.log_z})"


def log_partition(
    model: Any,
    method: str = "best",
    *,
    data: Any = None,
    stopping_set: Any = None,
    ladder: str | os.PathLike[str] | None = None,
    save_ladder: str | os.PathLike[str] | None = None,
    rungs: Iterable[Any] = (),
    n_tours: int | None = None,
    target_se: float | None = None,
    samples_per_row: int | None = None,
    max_steps: int | str | None = None,
    n_chains: int | None = None,
    n_betas: int | None = None,
    time_limit: float | None = None,
    seed: Any = 0,
    n_jobs: int | None = None,
) -> LogZ:
    """Compute or estimate log Z of a model.

    A warning is given if an estimate has no interval.

    Parameters
    ----------
    model : RBM, TrainResult or fitted BernoulliRBM
    method : {"best", "exact", "mclv", "ladder", "ais", "reverse-ais", "bar"}
        ``"best"``: enumeration if `time_limit` allows it, else tours if they return, else tours
        with a ladder if they climb it, else AIS.
    data : rows, optional
        Rows for stopping sets, base models and starts.
    stopping_set : StoppingSet, optional
        The stopping set to use, instead of one from data or from pilot chains.
    ladder : path, optional
        A file that `save_ladder` or ``mclv logz --save-ladder`` wrote. Tours with a ladder use this
        ladder instead of making one. It must have been made for the same model.
    save_ladder : path, optional
        With ``method="ladder"``: write the ladder to this file, to use it again with other seeds or
        a smaller `target_se`.
    rungs : sequence of models, optional
        With ``method="bar"``: models that lead to `model`, such as snapshots of its training, oldest
        first.
    n_tours, target_se : int or float, optional
        Number of tours, or the wanted standard error (default: 0.01 for tours). For the latter, a
        pilot chooses the number of tours. If you give it, a pilot also chooses the number of
        temperatures of AIS and the number of steps of BAR, which otherwise have a fixed size.
    samples_per_row : int, optional
        Hidden states drawn per row for the stopping set.
    max_steps : int or "none", optional
        Step budget of tours, and of every method that has a `target_se`, including pilots. Default:
        the steps of about one minute on one core. Z by tours is unbiased only with ``"none"``.
    n_chains, n_betas : int, optional
        Number of chains (default: 128) and of temperatures (default: 10,000, fewer for large
        models, or chosen by a pilot if you give `target_se`) of AIS.
    time_limit : float, optional
        Seconds that an enumeration may take. Default: 45, or 3600 for ``method="exact"``.
    seed : int, RandomState, Generator or None
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads. It does not change the result.

    Examples
    --------
    >>> import mclv
    >>> rbm = mclv.RBM([[0.8] * 3] * 4, [-1.0] * 4, [-1.0] * 3)
    >>> exact = mclv.log_partition(rbm)
    >>> exact.guarantee, round(exact.value, 6)
    ('exact', 4.30195)
    >>> tours = mclv.log_partition(rbm, "mclv", data=[[0, 0, 0, 0], [1, 1, 1, 1]], n_tours=5000)
    >>> tours.guarantee_z, abs(tours.value - exact.value) < 4 * tours.std_err
    ('lower bound on average', True)
    """
    if save_ladder is not None and (method != "ladder" or ladder is not None):
        raise SettingError('save_ladder needs method="ladder", and no `ladder` that was made before')
    limits = {
        "n_tours": whole(n_tours, "n_tours"), "target_se": target_se, "samples_per_row": whole(samples_per_row, "samples_per_row"),
        "max_steps": max_steps if isinstance(max_steps, str) else whole(max_steps, "max_steps"), "n_chains": whole(n_chains, "n_chains"),
        "n_betas": whole(n_betas, "n_betas"), "time_limit": time_limit, "seed": seed_of(seed),
    }  # fmt: skip
    facts = _mclv.log_partition(
        as_model(model)._model,
        None if method == "best" else method,
        None if data is None else as_rows(data, "data"),
        None if stopping_set is None else stopping_set._set,
        ladder,
        save_ladder,
        [as_model(rung)._model for rung in rungs],
        limits,
        threads(n_jobs),
    )
    log_z = LogZ(**facts)
    # Reverse AIS never has an interval, so it gives no warning.
    if log_z.guarantee != "exact" and log_z.method != "reverse-ais" and log_z.interval is None:
        warnings.warn(UncertainWarning(f"log Z {log_z} has no interval. {'; '.join(log_z.notes)}"), stacklevel=2)
    return log_z


def log_likelihoods(model: Any, X: Any, log_z: LogZ | float, *, n_jobs: int | None = None) -> npt.NDArray[np.float64]:
    """``log p(v) = -F(v) - log Z`` of each row."""
    return -as_model(model).free_energy(X, n_jobs=n_jobs) - float(log_z)


def log_likelihood(
    model: Any, X: Any, log_z: LogZ | None = None, *, n_jobs: int | None = None, **settings: Any
) -> Likelihood:
    """Compute the average log-likelihood of the rows of `X`, with its errors.

    Without `log_z`, log Z comes from ``log_partition(model, **settings)``, with `X` as data.

    Examples
    --------
    >>> import mclv
    >>> rbm = mclv.RBM([[0.0]] * 3, [0.0] * 3, [0.0])
    >>> print(mclv.log_likelihood(rbm, [[0, 0, 1], [1, 0, 0]]))
    -2.0794 ± 0.0000 nats per row (log Z 2.7726 (exact; Z exact))
    """
    rows = as_rows(X)
    if log_z is None:
        log_z = log_partition(model, **({"data": rows} | settings), n_jobs=n_jobs)
    facts = _mclv.likelihood(as_model(model)._model, rows, _plain(log_z), threads(n_jobs))
    facts.pop("guarantee_log_z")
    return Likelihood(**facts, log_z=log_z)


def _plain(log_z: LogZ) -> dict[str, Any]:
    return {name: value for name, value in asdict(log_z).items() if not name.startswith("guarantee_")}
