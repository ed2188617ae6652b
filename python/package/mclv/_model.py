"""Restricted Boltzmann Machines: parameters, energies, samples and files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._rows import as_rows, floats, seed_of, threads, uniform
from .errors import DataError

__all__ = ["RBM", "load", "save"]


class RBM:
    """A Restricted Boltzmann Machine with binary units.

    Its energy is ``E(v,h) = -v'Wh - b'v - a'h`` for ``v`` in {0,1}^n_visible and ``h`` in
    {0,1}^n_hidden. Parameters are in single precision. Energies and likelihoods are computed in
    double precision. A model is immutable.

    Parameters
    ----------
    weights : array of shape (n_visible, n_hidden)
        ``W``. scikit-learn's ``components_`` is its transpose.
    visible_bias : array of shape (n_visible,)
        ``b``.
    hidden_bias : array of shape (n_hidden,)
        ``a``.

    Examples
    --------
    >>> import mclv, numpy as np
    >>> rbm = mclv.RBM([[1.0], [-1.0]], [0.5, 0.0], [0.25])
    >>> rbm
    RBM(n_visible=2, n_hidden=1)
    >>> rbm.mean_hidden([[1, 0]]).round(4)
    array([[0.7773]], dtype=float32)
    >>> bool(np.isclose(rbm.free_energy([[1, 0]])[0], -0.5 - np.log1p(np.exp(1.25))))
    True
    """

    _model: _mclv.Model

    def __init__(self, weights: npt.ArrayLike, visible_bias: npt.ArrayLike, hidden_bias: npt.ArrayLike) -> None:
        self._model = _mclv.Model(
            floats(weights, "weights", 2), floats(np.ravel(visible_bias), "visible_bias", 1), floats(np.ravel(hidden_bias), "hidden_bias", 1), None
        )

    @classmethod
    def _wrap(cls, model: _mclv.Model) -> RBM:
        rbm = cls.__new__(cls)
        rbm._model = model
        return rbm

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return self._model.shape[0]

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return self._model.shape[1]

    @property
    def weights(self) -> npt.NDArray[np.float32]:
        """A copy of ``W``, of shape (n_visible, n_hidden)."""
        return self._model.weights

    @property
    def visible_bias(self) -> npt.NDArray[np.float32]:
        """A copy of ``b``."""
        return self._model.visible_bias

    @property
    def hidden_bias(self) -> npt.NDArray[np.float32]:
        """A copy of ``a``."""
        return self._model.hidden_bias

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the model: settings, seed, data and final metrics."""
        return self._model.provenance

    def free_energy(self, v: npt.ArrayLike, *, n_jobs: int | None = None) -> npt.NDArray[np.float64]:
        """``F(v) = -log sum_h exp(-E(v,h))`` of each row."""
        return self._model.free_energy(as_rows(v, "v"), threads(n_jobs))

    def pseudo_log_likelihood(self, v: npt.ArrayLike, *, n_jobs: int | None = None) -> npt.NDArray[np.float64]:
        """``sum_i log p(v_i | all other units)`` of each row, exact over all units.

        This is not the log-likelihood.
        """
        return self._model.pseudo_log_likelihood(as_rows(v, "v"), threads(n_jobs))

    def mean_hidden(self, v: npt.ArrayLike, *, n_jobs: int | None = None) -> npt.NDArray[np.float32]:
        """``E[h|v]`` of each row."""
        return self._model.mean_hidden(as_rows(v, "v"), threads(n_jobs))

    def mean_visible(self, h: npt.ArrayLike, *, n_jobs: int | None = None) -> npt.NDArray[np.float32]:
        """``E[v|h]`` of each row."""
        return self._model.mean_visible(as_rows(h, "h"), threads(n_jobs))

    def energy(self, v: npt.ArrayLike, h: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """``E(v,h) = -v'Wh - b'v - a'h`` of each pair of rows.

        Examples
        --------
        >>> import mclv
        >>> mclv.RBM([[1.0], [-1.0]], [0.5, 0.0], [0.25]).energy([[1, 0], [0, 0]], [[1], [1]])
        array([-1.75, -0.25])
        """
        vs, hs = as_rows(v, "v"), as_rows(h, "h")
        for name, rows, n in (("v", vs, self.n_visible), ("h", hs, self.n_hidden)):
            if rows.shape[1] != n:
                raise DataError(f"{name} has {rows.shape[1]} columns; the model has {n} such units")
        if vs.shape[0] != hs.shape[0]:
            raise DataError(f"v has {vs.shape[0]} rows and h has {hs.shape[0]}; give pairs")
        w, b, a = (x.astype(np.float64) for x in (self.weights, self.visible_bias, self.hidden_bias))
        states, hidden = vs.to_numpy(), hs.to_numpy()
        energies = np.empty(len(states))
        for at in range(0, len(states), 1024):  # a part at a time in double precision
            x, y = states[at : at + 1024].astype(np.float64), hidden[at : at + 1024].astype(np.float64)
            energies[at : at + 1024] = -((x @ w) * y).sum(axis=1) - x @ b - y @ a
        return energies

    def sample_hidden(self, v: npt.ArrayLike, *, seed: Any = None, n_jobs: int | None = None) -> npt.NDArray[np.uint8]:
        """Draw ``h ~ p(h|v)`` for each row.

        `seed` is an integer, a NumPy generator, or None for new random numbers at each call. In a
        loop, give a generator: an integer gives the same random numbers again.

        Examples
        --------
        >>> import mclv, numpy as np
        >>> rbm = mclv.RBM([[9.0], [-9.0]], [0.0, 0.0], [0.0])
        >>> rbm.sample_hidden([[1, 0], [0, 1]], seed=np.random.default_rng(0)).tolist()
        [[1], [0]]
        """
        return _draw(self.mean_hidden(v, n_jobs=n_jobs), seed)

    def sample_visible(self, h: npt.ArrayLike, *, seed: Any = None, n_jobs: int | None = None) -> npt.NDArray[np.uint8]:
        """Draw ``v ~ p(v|h)`` for each row. `seed` is as in `sample_hidden`."""
        return _draw(self.mean_visible(h, n_jobs=n_jobs), seed)

    def gibbs_step(
        self, v: npt.ArrayLike, *, seed: Any = None, n_jobs: int | None = None
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """Draw ``h ~ p(h|v)`` and then a new ``v ~ p(v|h)`` for each row. Returns ``(v, h)``.

        This is for chains of your own. `sample` runs chains faster. `seed` is as in
        `sample_hidden`.

        Examples
        --------
        >>> import mclv, numpy as np
        >>> rbm, rng = mclv.RBM([[2.0], [-2.0]], [0.0, 0.0], [0.0]), np.random.default_rng(0)
        >>> v = np.zeros((5, 2))
        >>> for _ in range(10):
        ...     v, h = rbm.gibbs_step(v, seed=rng)
        >>> v.shape, h.shape
        ((5, 2), (5, 1))
        """
        if isinstance(seed, (int, np.integer)):  # both halves of the step need numbers of their own
            seed = np.random.default_rng(seed_of(seed))
        h = self.sample_hidden(v, seed=seed, n_jobs=n_jobs)
        return self.sample_visible(h, seed=seed, n_jobs=n_jobs), h

    def reconstruction_error(self, v: npt.ArrayLike, *, n_jobs: int | None = None) -> float:
        """Mean of ``(v - E[v | E[h|v]])**2``. It can improve while the likelihood gets worse."""
        return self._model.reconstruction_error(as_rows(v, "v"), threads(n_jobs))

    def sample(
        self,
        n_samples: int = 64,
        *,
        method: str | None = None,
        burn_in: int | None = None,
        start: npt.ArrayLike | None = None,
        given: npt.ArrayLike | None = None,
        means: bool = False,
        seed: Any = 0,
        n_jobs: int | None = None,
    ) -> npt.NDArray[np.uint8] | npt.NDArray[np.float32]:
        """Draw samples of ``v``.

        The arguments are those of ``mclv.sample``, which also says how the samples were drawn. An
        ``UncertainWarning`` is given if they may depend on where chains began.

        Examples
        --------
        >>> import mclv
        >>> rbm = mclv.RBM([[0.0]], [9.0], [0.0])  # its one unit is nearly always on
        >>> rbm.sample(3).tolist()
        [[1], [1], [1]]
        """
        from ._sample import draw

        samples = draw(self, n_samples, method, burn_in, start, given, means, seed, n_jobs, stacklevel=3)
        return samples.v if samples.means is None else samples.means

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file.

        The extension decides the format: ``.safetensors`` (with provenance), ``.npz`` (with
        scikit-learn's names) or ``.npy`` (three files).
        """
        self._model.save(path)

    def __eq__(self, other: object) -> bool:
        return self._model.equals(other._model) if isinstance(other, RBM) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RBM(n_visible={self.n_visible}, n_hidden={self.n_hidden})"

    def __reduce__(self) -> Any:
        return _restore, (self.weights, self.visible_bias, self.hidden_bias, self.provenance)


def _draw(means: npt.NDArray[np.float32], seed: Any) -> npt.NDArray[np.uint8]:
    return (uniform(seed, means.shape) < means).view(np.uint8)


def _restore(weights: Any, visible_bias: Any, hidden_bias: Any, provenance: dict[str, Any]) -> RBM:
    return RBM._wrap(_mclv.Model(weights, visible_bias, hidden_bias, provenance))


def load(path: str | os.PathLike[str]) -> RBM:
    """Read a model file, or an ``.npz`` file with scikit-learn's arrays.

    A run folder stands for its best model, and the folder of a sweep for the best model of its
    chosen setting.

    Examples
    --------
    >>> import mclv, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> rbm = mclv.RBM([[1.0], [-1.0]], [0.5, 0.0], [0.25])
    >>> mclv.save(rbm, path)
    >>> mclv.load(path) == rbm
    True
    """
    return RBM._wrap(_mclv.Model.load(path))


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model or a fitted estimator to a file. The extension decides the format."""
    as_model(model).save(path)


def as_model(model: Any) -> RBM:
    """The model of an RBM, a training result, or an estimator with scikit-learn's attributes."""
    if isinstance(model, RBM):
        return model
    inner = getattr(model, "model", None)
    if isinstance(inner, RBM):
        return inner
    if isinstance(model, _mclv.Model):
        return RBM._wrap(model)
    if hasattr(model, "components_"):
        return RBM(np.asarray(model.components_).T, model.intercept_visible_, model.intercept_hidden_)
    raise TypeError(f"{type(model).__name__} is not a model; give an RBM, a training result or a fitted BernoulliRBM")
