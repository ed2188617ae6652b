"""Samples of a model, and how they were drawn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._model import as_model
from ._mclv import Rows, mixing as _mixing
from ._rows import STEPS, as_rows, numbers_of, seed_of, threads, whole
from .errors import DataError, UncertainWarning

__all__ = ["Mixing", "Samples", "mixing", "sample"]

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


@dataclass(frozen=True)
class Mixing:
    """How well chains mix. Good values are no proof: chains may all have missed a mode."""

    #: The rank-normalised split R-hat, about 1 if all halves of all chains look alike.
    r_hat: float
    #: The number of draws after which a chain has forgotten where it was.
    autocorrelation_time: float
    #: The number of draws of all chains, divided by the autocorrelation time.
    effective_sample_size: float


def mixing(chains: Any) -> Mixing | None:
    """Judge how well chains mix, from a number recorded along each of them.

    Parameters
    ----------
    chains : array of shape (n_chains, n_draws)
        A number for each draw of each chain, such as the free energy of its state.

    Returns
    -------
    Mixing or None
        None if there are fewer than 8 draws, or if a number is not finite.

    Examples
    --------
    >>> import mclv, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> good = mclv.mixing(rng.normal(size=(4, 500)))
    >>> apart = mclv.mixing(rng.normal(size=(2, 500)) + [[0], [5]])
    >>> good.r_hat < 1.02 < 1.5 < apart.r_hat
    True
    """
    array = numbers_of(chains, "chains", "give numbers")
    if array.ndim != 2 or array.shape[0] == 0:
        raise DataError(f"chains has the shape {array.shape}; give a matrix with one row per chain")
    facts = _mixing(np.array(array, dtype=np.float64))
    return None if facts is None else Mixing(**facts)


def sample(
    model: Any,
    n_samples: int = 64,
    *,
    method: str | None = None,
    burn_in: int | None = None,
    start: Any = None,
    given: Any = None,
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
    given : array of shape (n_visible,) or (n, n_visible), optional
        Known units, 0 or 1, and NaN for units to draw: the samples are from their distribution
        given the known units. All rows must have NaN in the same places; they are used in turn.
    means : bool
        Also return ``E[v|h]`` at the hidden states that samples were drawn from.
    seed : int, RandomState, Generator or None
        The same integer gives the same samples as ``mclv sample --seed``.
    n_jobs : int, optional
        Number of threads. It does not change the result.

    Examples
    --------
    Samples given one unit:

    >>> import mclv
    >>> rbm = mclv.RBM([[9.0], [9.0]], [-4.5, -4.5], [-9.0])  # both units on, or both off
    >>> mclv.sample(rbm, 3, given=[1, float("nan")]).v.tolist()
    [[1, 1], [1, 1], [1, 1]]

    Two modes that no Gibbs chain leaves: all units on and all units off.

    >>> rbm = mclv.RBM([[40.0]] * 6, [-20.0] * 6, [-120.0])
    >>> samples = mclv.sample(rbm, 100)
    >>> samples.method, 20 < int(samples.v[:, 0].sum()) < 80
    ('exact', True)
    """
    return draw(model, n_samples, method, burn_in, start, given, means, seed, n_jobs, stacklevel=3)


def draw(
    model: Any,
    n_samples: int,
    method: str | None,
    burn_in: int | None,
    start: Any,
    given: Any,
    means: bool,
    seed: Any,
    n_jobs: int | None,
    stacklevel: int,
) -> Samples:
    rows = None if start is None else as_rows(start, "start")
    native = as_model(model)._model
    known = None if given is None else _known(given, native.shape[0])
    n_samples, burn_in = whole(n_samples, "n_samples"), whole(burn_in, "burn_in", STEPS)
    v, mean, facts = native.sample(n_samples, method, burn_in, means, seed_of(seed), rows, known, threads(n_jobs))
    samples = Samples(v=v, means=mean, **facts)
    if samples.doubt is not None:
        cure = "use a longer burn_in" if start is not None or given is not None else _CURES[samples.method]
        warnings.warn(UncertainWarning(f"{samples.doubt}; {cure}"), stacklevel=stacklevel)
    return samples


def _known(given: Any, n_visible: int) -> tuple[Rows, Rows]:
    """The known units, and their values."""
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.float64), np.nan)
    array = np.atleast_2d(numbers_of(given, "given", "give 0 and 1, and NaN for units to draw").astype(np.float64))
    if array.ndim != 2 or array.shape[1] != n_visible:
        raise DataError(f"given has the shape {np.shape(given)}; give rows of {n_visible} values, NaN for units to draw")
    known = ~np.isnan(array)
    if not (known == known[:1]).all():
        row = int((known != known[0]).any(axis=1).argmax()) + 1
        raise DataError(f"given: row {row} has NaN in other places than row 1; all rows must have the same unknown units")
    values = as_rows(np.where(known, array, 0.0), "given")
    if not values.is_binary:
        raise DataError("given: known values are 0 or 1")
    return as_rows(known[:1], "given"), values
