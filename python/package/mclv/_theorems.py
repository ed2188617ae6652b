"""The statements of the paper about tours: measured values beside exact ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _mclv
from ._model import as_model
from ._rows import STEPS, as_rows, seed_of, threads, whole
from ._tours import StoppingSet

__all__ = ["Theorems", "theorems"]


@dataclass(frozen=True)
class Theorems:
    """The statements of the paper for one model and one stopping set.

    A *pair* is ``{"measured": ..., "exact": ...}``: ``measured`` has ``value``, ``std_err`` and
    ``guarantee``, or is None; ``exact`` is None if the model cannot be enumerated in about a second.
    """

    #: Number of tours.
    n_tours: int
    #: The logarithm of the weight of the stopping set.
    log_z_s: float
    #: The pair of ``Z_S / Z``.
    set_probability: dict[str, Any]
    #: The pair of the mean energy of the model.
    mean_energy: dict[str, Any]
    #: A bound of the absolute energy, from the weights.
    energy_bound: float
    #: Theorem 1: one row for each K, with the estimates over completed and over started tours
    #: (divided by Z) and the corrected bounds.
    cut: list[dict[str, Any]]
    #: Theorem 2: ``min_v p(h in S | v)``.
    epsilon: float | None
    #: Theorem 2: the pair of the rate of the tail. The measured one is a fit without guarantee.
    tail_rate: dict[str, Any]
    #: Theorem 2: one row for each K, with the measured and exact tail and its bounds.
    tail: list[dict[str, Any]]
    #: Theorem 3: the spectral gap of the hidden chain.
    spectral_gap: float | None
    #: Theorem 3: the pair of the second moment of tour lengths.
    second_moment: dict[str, Any]
    #: Theorem 3: the corrected bound of the second moment.
    second_moment_bound: float | None
    #: The squared coefficients of variation behind ``enough``, and why the pilot gave none.
    needed: dict[str, Any]
    #: By ``"exact"`` variance, ``"bound"`` and ``"pilot"`` (empirical): the number of tours that are
    #: enough by Chebyshev's inequality, and the bound of the probability that ``n_tours`` miss.
    enough: dict[str, tuple[float, float] | None]
    #: Lemma 1 and Corollary 3: one row for each of the first lengths.
    lengths: list[dict[str, Any]]
    #: CD-K beside LVS-K: one row for each K.
    cd: list[dict[str, Any]]
    #: The starts of contrastive divergence beside those of tours; None without data.
    starts: dict[str, Any] | None
    #: The parts of the gradient by tour length; None without data, or if tours were cut.
    gradient: dict[str, Any] | None


def theorems(
    model: Any,
    stopping_set: StoppingSet,
    n_tours: int = 10_000,
    *,
    data: Any = None,
    k: Sequence[int] = (1, 3, 10, 100),
    error: float = 0.1,
    alpha: float = 0.05,
    max_length: int | None = None,
    max_steps: int | None = None,
    seed: Any = 0,
    n_jobs: int | None = None,
) -> Theorems:
    """Measure the statements of the paper with tours, beside exact values of small models.

    Parameters
    ----------
    model : RBM, TrainResult or fitted BernoulliRBM
    stopping_set : StoppingSet
        The stopping set. It must not depend on these tours.
    n_tours : int
        Number of tours, all from ``pi_S`` and with the model's own Gibbs chain.
    data : rows, optional
        Rows for the gradient and for the starts of contrastive divergence.
    k : sequence of int
        Numbers of steps after which tours are cut, at most 1000.
    error, alpha : float
        ``enough`` says how many tours estimate Z with a relative error below ``error`` with
        probability ``1 - alpha``.
    max_length, max_steps : optional
        Limits on the length of a tour, and on the steps of all tours together.
    seed : int, RandomState, Generator or None
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads. It does not change the result.

    Examples
    --------
    >>> import mclv
    >>> rbm = mclv.RBM([[0.8] * 3] * 4, [-1.0] * 4, [-1.0] * 3)
    >>> s = mclv.StoppingSet([[0, 0, 0], [1, 1, 1]])
    >>> t = mclv.theorems(rbm, s, 2000, k=[1, 3])
    >>> row = t.cut[0]
    >>> abs(row["completed"]["exact"] - 1) <= row["completed_bound"]
    True
    >>> t.enough["bound"][0] >= t.enough["exact"][0]
    True
    """
    settings = {
        "n-tours": whole(n_tours, "n_tours"), "max-length": whole(max_length, "max_length", STEPS),
        "max-steps": whole(max_steps, "max_steps"), "seed": seed_of(seed),
    }  # fmt: skip
    rows = None if data is None else as_rows(data, "data")
    wanted = ([whole(steps, "k", STEPS) for steps in k], float(error), float(alpha))
    facts = _mclv.theorems(as_model(model)._model, stopping_set._set, settings, rows, wanted, threads(n_jobs))
    return Theorems(**facts)
