"""Samples of a model, and how they were drawn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._model import as_model
from ._rows import as_rows, seed_of, threads
from .errors import UncertainWarning

__all__ = ["Samples", "sample"]

_CURES = {
    "gibbs": "use method='tempering', a longer burn_in, or start from data",
    "tempering": "use method='tempering' with a longer burn_in",
}


@dataclass(frozen=True)
class Samples:
    """Samples of a model, and how they were drawn."""

    #: The samples, 0 and 1, one per row.
    v: npt.NDArray[np.uint8]
    #: ``E[v|h]`` at the hidden states that `v` was drawn from; ``None`` unless asked for.
    means: npt.NDArray[np.float32] | None
    #: ``"gibbs"``, ``"tempering"`` or ``"exact"``.
    method: str
    #: Steps before the first sample; ``None`` for exact samples.
    burn_in: int | None
    #: ``r_hat``, ``autocorrelation_time`` (steps) and ``effective_sample_size`` of the chains;
    #: ``None`` for exact samples, and if the burn-in was too short to tell.
    mixing: dict[str, float] | None
    #: What ladders did: ``n_ladders``, ``n_rungs``, ``thinning``, ``least_swap_rate``,
    #: ``round_trips`` and ``not_renewed``; ``None`` without tempering.
    ladders: dict[str, Any] | None
    #: How Gibbs chains mixed, if tempering was chosen because they did not.
    gibbs: dict[str, float] | None
    #: Why the samples may depend on where chains began; ``None`` if nothing speaks against them.
    doubt: str | None


def sample(
    model: Any,
    n_samples: int = 64,
    *,
    method: str | None = None,
    burn_in: int | None = None,
    start: Any = None,
    means: bool = False,
    seed: Any = 0,
    n_jobs: int | None = None,
) -> Samples:
    """Draw samples of ``v`` from a model.

    An ``UncertainWarning`` is given if the samples may depend on where chains began.

    Parameters
    ----------
    model : RBM, TrainResult or fitted BernoulliRBM
    n_samples : int
        Number of samples.
    method : {"gibbs", "tempering", "exact"}, optional
        ``"exact"``: independent samples, by enumeration of the smaller layer. ``"gibbs"``: one
        block-Gibbs chain for each sample. ``"tempering"``: 16 ladders of chains that exchange their
        states. Default: exact if the enumeration is quick, else Gibbs if its chains mix, else
        tempering. With `start` or `burn_in`, the default is Gibbs.
    burn_in : int, optional
        Steps of each chain, or of each ladder, before its first sample. Default: 1000; tempering
        makes up to 8000 if 1000 are too few.
    start : array of shape (n, n_visible), optional
        Starts of Gibbs chains, used in turn. Default: draws from the visible biases alone.
    means : bool
        Also return ``E[v|h]`` at the hidden states that samples were drawn from.
    seed : int, RandomState, Generator or None
        The same integer gives the same samples as ``mclv sample --seed``.
    n_jobs : int, optional
        Number of threads. It does not change the result.

    Examples
    --------
    Two modes that no Gibbs chain leaves: all units on and all units off.

    >>> import mclv
    >>> rbm = mclv.RBM([[40.0]] * 6, [-20.0] * 6, [-120.0])
    >>> samples = mclv.sample(rbm, 100)
    >>> samples.method, 20 < int(samples.v[:, 0].sum()) < 80
    ('exact', True)
    """
    return draw(model, n_samples, method, burn_in, start, means, seed, n_jobs, stacklevel=3)


def draw(
    model: Any,
    n_samples: int,
    method: str | None,
    burn_in: int | None,
    start: Any,
    means: bool,
    seed: Any,
    n_jobs: int | None,
    stacklevel: int,
) -> Samples:
    rows = None if start is None else as_rows(start, "start")
    v, mean, facts = as_model(model)._model.sample(
        n_samples, method, burn_in, means, seed_of(seed), rows, threads(n_jobs)
    )
    samples = Samples(v=v, means=mean, **facts)
    if samples.doubt is not None:
        cure = "use a longer burn_in" if start is not None else _CURES[samples.method]
        warnings.warn(UncertainWarning(f"{samples.doubt}; {cure}"), stacklevel=stacklevel)
    return samples
