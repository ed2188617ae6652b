"""Find models whose likelihoods can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._model import RBM, as_model

__all__ = ["comparable"]


def comparable(models: Mapping[str, Any]) -> list[list[str]]:
    """Group models whose likelihoods can be compared.

    Likelihoods can be compared only if the models were trained on the same rows, prepared in the
    same way. Other data, another split or another binarisation change the scale. Compare numbers
    only within a group, and draw one chart per group. A model without recorded data forms its own
    group.

    Parameters
    ----------
    models : mapping of names to RBM, TrainResult or fitted BernoulliRBM

    Returns
    -------
    list of lists of names
        The groups, in the order of `models`.

    Examples
    --------
    >>> import mclv
    >>> grey, bits = (mclv.datasets.load("digits", binarize=b) for b in ("grey", "threshold=0.5"))
    >>> runs = {"a": mclv.train(grey, 4, epochs=1, seed=1), "b": mclv.train(bits, 4, epochs=1)}
    >>> runs["c"] = mclv.train(grey, 4, epochs=1, seed=2)
    >>> mclv.comparable(runs)
    [['a', 'c'], ['b']]
    """
    groups: dict[Any, list[str]] = {}
    for name, model in models.items():
        groups.setdefault(_data_of(as_model(model)) or ("unknown", name), []).append(name)
    return list(groups.values())


def _data_of(model: RBM) -> tuple[Any, ...] | None:
    data = model.provenance.get("data")
    if not data:
        return None
    return tuple(data.get(key) for key in ("sha256", "preprocessing", "split", "n_rows", "n_columns"))
