"""Shares of modes: how much of a model's mass is near which rows, beside the share of the data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._rows import as_rows, seed_of, threads, whole
from ._model import as_model
from .errors import UncertainWarning

__all__ = ["ModeShares", "mode_shares"]


@dataclass(frozen=True)
class ModeShares:
    """The shares of modes in a model and in data. The arrays have one entry for each mode."""

    #: What the modes are: ``"class"``, ``"pattern"`` or ``"cluster"``.
    by: str
    #: The names of the modes.
    names: list[str]
    #: The number of rows in each mode.
    n_rows: npt.NDArray[np.int64]
    #: The share of the rows.
    data: npt.NDArray[np.float64]
    #: The share of the model's mass.
    model: npt.NDArray[np.float64]
    #: Standard errors of the model's shares; NaN if unknown.
    std_err: npt.NDArray[np.float64]
    #: Lower 95 % limits of the model's shares; NaN if none can be given.
    low: npt.NDArray[np.float64]
    #: Upper 95 % limits of the model's shares; NaN if none can be given.
    high: npt.NDArray[np.float64]
    #: ``"lost"``, ``"light"``, ``"even"``, ``"heavy"``, ``"over-weighted"`` or ``"unknown"``.
    standing: list[str]
    #: The share of the rows that are farther from their mode than 99 % of the rows.
    far_data: float
    #: The share of the model's mass that is as far from its modes.
    far_model: float
    #: Half the sum of the differences between the shares.
    total_variation: float
    #: The total variation that errors alone would give; ``None`` if unknown.
    total_variation_by_chance: float | None
    #: True if the shares have intervals.
    is_judged: bool
    #: True if a mode is lost or over-weighted.
    is_bad: bool
    #: The probability of a false "lost" or "over-weighted", over all modes together.
    false_alarms: float
    #: A sentence with the worst that was found.
    verdict: str
    #: The method that measured the shares.
    method: str
    #: ``"exact"``, ``"unbiased"``, ``"consistent"``, ``"unless-cut"`` or ``"none"``.
    guarantee: str
    #: For classes: the share of the rows that are nearest to their own class.
    agreement: float | None
    #: Number of states summed and Gibbs steps made.
    n_states: float
    #: The time it took.
    seconds: float
    #: Things to know before relying on the shares, one sentence each.
    notes: list[str]

    @property
    def ratio(self) -> npt.NDArray[np.float64]:
        """The model's share divided by the data's share."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.model / self.data

    def __str__(self) -> str:
        return self.verdict


def mode_shares(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    by: str | None = None,
    n_clusters: int = 10,
    method: str = "best",
    target_se: float | None = None,
    n_tours: int | None = None,
    max_steps: int | str | None = None,
    time_limit: float | None = None,
    seed: Any = 0,
    n_jobs: int | None = None,
) -> ModeShares:
    """Compare the model's share of each mode with the share of the rows.

    A warning is given if the shares have no intervals.

    Parameters
    ----------
    model : RBM, TrainResult or fitted BernoulliRBM
    X : rows
    labels : sequence, optional
        The class of each row.
    by : {"class", "pattern", "cluster"}, optional
        The modes. By default the distinct rows if there are at most 64, else the classes if there
        are `labels`, else clusters.
    n_clusters : int
        Number of clusters, from 2 to 64.
    method : {"best", "exact", "mclv", "ladder"}
        ``"best"``: exact if it takes only seconds, else tours if they return, else tours with a
        ladder.
    target_se : float, optional
        Wanted standard error of a share (0.005).
    n_tours : int, optional
        Number of tours or of exact samples, instead of a wanted standard error.
    max_steps : int or "none", optional
        Step budget of all tours together, including pilots.
    time_limit : float, optional
        Seconds that an enumeration may take.
    seed : int, RandomState, Generator or None
        Seed of all random numbers. It also decides where classes and clusters end, so compare
        models and methods with the same seed.
    n_jobs : int, optional
        Number of threads. It does not change the result.

    Examples
    --------
    >>> import mclv
    >>> rbm = mclv.RBM([[40.0]] * 6, [-20.0] * 6, [-120.0])
    >>> shares = mclv.mode_shares(rbm, [[0] * 6] * 985 + [[1] * 6] * 15)
    >>> shares.names, shares.model.round(3).tolist(), shares.standing
    (['000000', '111111'], [0.5, 0.5], ['light', 'over-weighted'])
    >>> print(shares)
    The model puts 50.0 % of its mass near 1.5 % of the rows (pattern 111111).
    """
    limits = {
        "n_tours": whole(n_tours, "n_tours"), "target_se": 0.005 if target_se is None else target_se, "samples_per_row": None,
        "max_steps": max_steps if isinstance(max_steps, str) else whole(max_steps, "max_steps"), "n_chains": None, "n_betas": None,
        "time_limit": time_limit, "seed": seed_of(seed),
    }  # fmt: skip
    facts = _mclv.mode_shares(
        as_model(model)._model,
        as_rows(X),
        None if labels is None else [str(label) for label in np.asarray(labels).ravel()],
        by,
        whole(n_clusters, "n_clusters"),
        None if method == "best" else method,
        limits,
        threads(n_jobs),
    )
    modes = facts.pop("modes")
    far = facts.pop("far")
    facts.pop("n_rows")
    limits_of = [mode["interval"] or (None, None) for mode in modes]
    shares = ModeShares(
        names=[mode["name"] for mode in modes],
        n_rows=np.array([mode["n_rows"] for mode in modes], dtype=np.int64),
        data=_column(mode["data"] for mode in modes),
        model=_column(mode["model"] for mode in modes),
        std_err=_column(mode["std_err"] for mode in modes),
        low=_column(low for low, _ in limits_of),
        high=_column(high for _, high in limits_of),
        standing=[mode["standing"] for mode in modes],
        far_data=far["data"],
        far_model=far["model"],
        **facts,
    )
    if not shares.is_judged:
        warnings.warn(UncertainWarning(f"mode shares have no intervals. {'; '.join(shares.notes)}"), stacklevel=2)
    return shares


def _column(values: Iterable[float | None]) -> npt.NDArray[np.float64]:
    """The values as an array, with NaN for those that are missing."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
