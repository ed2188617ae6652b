"""Convert models from and to scikit-learn's BernoulliRBM and the HDF5 files of ``rbms``."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .errors import FormatError
from ._model import RBM, as_model

__all__ = ["from_rbms", "from_sklearn", "to_rbms", "to_sklearn"]


def from_sklearn(estimator: Any) -> RBM:
    """Convert a fitted ``sklearn.neural_network.BernoulliRBM`` to a model in single precision."""
    return as_model(estimator)


def to_sklearn(model: Any) -> Any:
    """Convert a model to a fitted ``sklearn.neural_network.BernoulliRBM``.

    Examples
    --------
    >>> import mclv
    >>> rbm = mclv.RBM([[1.0], [-1.0]], [0.5, 0.0], [0.25])
    >>> mclv.from_sklearn(mclv.to_sklearn(rbm)) == rbm
    True
    """
    from sklearn.neural_network import BernoulliRBM

    rbm = as_model(model)
    estimator = BernoulliRBM(n_components=rbm.n_hidden)
    estimator.components_ = np.ascontiguousarray(rbm.weights.T)
    estimator.intercept_visible_ = rbm.visible_bias
    estimator.intercept_hidden_ = rbm.hidden_bias
    estimator.n_features_in_ = rbm.n_visible
    estimator._n_features_out = rbm.n_hidden
    # fit leaves chains behind, and partial_fit continues them: as many as a minibatch has rows.
    chains = getattr(model, "h_samples_", None)
    if chains is None:
        chains = np.zeros((estimator.batch_size, rbm.n_hidden))
    estimator.batch_size, estimator.h_samples_ = len(chains), np.asarray(chains, dtype=np.float32)
    return estimator


def from_rbms(path: str | os.PathLike[str], update: int | None = None) -> RBM:
    """Read a model from an HDF5 file of the ``rbms`` package. Needs h5py.

    The file holds ``update_N/params/{vbias,hbias,weight_matrix}``.

    Parameters
    ----------
    path : str or path
    update : int, optional
        The saved update to read. Default: the last one.
    """
    import h5py

    with h5py.File(path, "r") as file:
        updates = {int(key[7:]): key for key in file if key.startswith("update_") and key[7:].isdigit()}
        if not updates:
            raise FormatError(f"{os.fspath(path)} has no group update_N, so it was not written by rbms")
        chosen = max(updates) if update is None else update
        if chosen not in updates:
            raise FormatError(f"{os.fspath(path)} has no update {chosen}; its updates are {sorted(updates)}")
        try:
            params = file[updates[chosen]]["params"]
            arrays = [np.asarray(params[name]) for name in ("weight_matrix", "vbias", "hbias")]
        except KeyError as error:
            what = f"{os.fspath(path)}, update {chosen}: this is not a Bernoulli RBM ({error.args[0]})"
            raise FormatError(what) from None
    return RBM(*arrays)


def to_rbms(model: Any, path: str | os.PathLike[str], update: int = 1) -> None:
    """Write a model to an HDF5 file for the ``rbms`` package. Needs h5py.

    Examples
    --------
    >>> import mclv, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.h5")
    >>> rbm = mclv.RBM([[1.0], [-1.0]], [0.5, 0.0], [0.25])
    >>> mclv.to_rbms(rbm, path)
    >>> mclv.from_rbms(path) == rbm
    True
    """
    import h5py

    rbm = as_model(model)
    beside = f"{os.fspath(path)}.part"
    try:
        with h5py.File(beside, "w") as file:
            params = file.create_group(f"update_{update}").create_group("params")
            params["vbias"], params["hbias"], params["weight_matrix"] = rbm.visible_bias, rbm.hidden_bias, rbm.weights
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
