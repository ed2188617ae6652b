"""An estimator for scikit-learn with the interface of scikit-learn's BernoulliRBM, and more."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _mclv
from ._model import RBM, as_model
from ._partition import Likelihood, log_likelihood, log_partition
from ._progress import chain_calls
from ._rows import STEPS, as_rows, is_sparse, seed_of, threads, warn_outside, whole
from ._settings import plain
from ._training import Callback, finished
from .errors import SettingError

__all__ = ["BernoulliRBM"]


class BernoulliRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Restricted Boltzmann Machine, a drop-in replacement for scikit-learn's ``BernoulliRBM``.

    It has the same parameter names and defaults as ``sklearn.neural_network.BernoulliRBM``. In
    addition, gradients are centred, and the learning rate falls to zero. The same seed gives the
    same result. Ctrl-C during `fit` keeps the model so far and raises ``KeyboardInterrupt``.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units.
    learning_rate : float, default=0.1
        Initial learning rate.
    batch_size : int, default=10
        Rows per update. Larger values, such as 128, are faster.
    n_iter : int, default=10
        Passes over the data.
    verbose : int, default=0
        If not 0, print a line for each pass over the data, as scikit-learn does: its number, the
        pseudo-likelihood of at most 1,000 rows, and its time; and the log-likelihood where it was
        evaluated.
    random_state : int, RandomState, Generator or None, default=None
        An integer is the seed itself. With the same settings, ``mclv train --seed`` then gives the
        same model, bit for bit.
    gradient : {"pcd", "cd", "lvs", "tempered", "ucd", "exact"}, default="pcd"
        Persistent contrastive divergence, contrastive divergence, Las Vegas tours, parallel
        tempering, or the exact gradient (small models only).
    k : int or "dynamic", default=1
        Gibbs steps per update. Tours also accept ``"dynamic"``: run until all tours return.
    n_chains : int, default=None
        Number of persistent chains, of tours per update, or of ladders. None: one per row of a
        minibatch, or 32 ladders.
    unfinished : {"carry", "keep", "drop"}, default=None
        Tours only: what happens to tours that have not returned. None: ``"carry"``.
    stopping_samples : int, default=None
        Tours only: hidden states per row in the stopping set. None: 1.
    centred : bool, default=True
        Centre the gradient: subtract the mean activity of each unit.
    schedule : {"linear", "cosine", "plateau", "constant"}, default="linear"
        How the learning rate changes in `fit`. In `partial_fit` it is constant.
    optimizer : {"sgd", "adam"}, default="sgd"
    momentum : float, default=None
        Momentum of sgd.
    l1, l2 : float, default=0
        Weight decay.
    clip : float, default=None
        Largest norm of a gradient. None: no limit.
    init : {"data", "paper"}, default="data"
        Initial parameters: computed from the data, or as in the paper's code.
    eval_every : int, "auto" or "never", default=None
        Epochs between two evaluations of the likelihood for `history_`. ``"auto"``: as often as
        10 % of the time allows. None: ``"auto"`` if `verbose`, else ``"never"``.
    score_method : {"pseudo-likelihood", "likelihood"}, default="pseudo-likelihood"
        What `score` and `score_samples` compute.
    warm_start : bool, default=False
        `fit` goes on from the fitted model, if there is one, instead of an initial model. Chains,
        optimiser and learning rate begin anew.
    callback : callable, default=None
        ``callback(metrics, model)`` is called after each pass of `fit` with its metrics and an
        `mclv.RBM`. A true return value ends the training.
    input_range : {"warn", "error"}, default="warn"
        Values outside [0, 1] are clipped with one warning, or rejected.
    n_jobs : int, default=None
        Number of threads. It does not change the result. None: ``OMP_NUM_THREADS`` if set, else
        one per core.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Weights, in single precision if the first rows were, else in double precision. Their values
        are always those of single precision.
    intercept_visible_ : array of shape (n_features,)
        Biases of visible units.
    intercept_hidden_ : array of shape (n_components,)
        Biases of hidden units.
    h_samples_ : array of shape (n_chains, n_components)
        Hidden states of the chains: persistent ones (pcd), tours under way (lvs), top rungs
        (tempered). The gradients cd, ucd and exact have no chains, and so no `h_samples_`.
    history_ : list of dict
        Metrics of each epoch of `fit`, with likelihoods for epochs that were evaluated.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if all feature names of `X` are strings.

    Examples
    --------
    >>> import mclv
    >>> X = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]
    >>> rbm = mclv.BernoulliRBM(n_components=2, random_state=0).fit(X)
    >>> rbm.transform(X).shape
    (4, 2)
    >>> rbm.log_likelihood(X).log_z.guarantee
    'exact'
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        verbose: int = 0,
        random_state: Any = None,
        gradient: str = "pcd",
        k: int | str = 1,
        n_chains: int | None = None,
        unfinished: str | None = None,
        stopping_samples: int | None = None,
        centred: bool = True,
        schedule: str = "linear",
        optimizer: str = "sgd",
        momentum: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        clip: float | None = None,
        init: str = "data",
        eval_every: int | str | None = None,
        score_method: str = "pseudo-likelihood",
        warm_start: bool = False,
        callback: Callback | None = None,
        input_range: str = "warn",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state
        self.gradient = gradient
        self.k = k
        self.n_chains = n_chains
        self.unfinished = unfinished
        self.stopping_samples = stopping_samples
        self.centred = centred
        self.schedule = schedule
        self.optimizer = optimizer
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.clip = clip
        self.init = init
        self.eval_every = eval_every
        self.score_method = score_method
        self.warm_start = warm_start
        self.callback = callback
        self.input_range = input_range
        self.n_jobs = n_jobs

    #: The training that `partial_fit` continues, and the weights after its last call.
    _feed: _mclv.Feed
    _feed_weights: Any

    # Fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BernoulliRBM:
        """Fit the model to the rows of `X` (dense or sparse, values in [0, 1]).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row. A row of weight 2 counts like two rows, but the model is not that of
            the row given twice, because minibatches are others.

        Returns
        -------
        self
        """
        begins_anew = not (self.warm_start and hasattr(self, "components_"))
        X = self._validated(X, reset=begins_anew)
        rows, weights = self._rows(X), None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float32, ensure_non_negative=True)
        default = "auto" if self.verbose else "never"
        eval_every = default if self.eval_every is None else self.eval_every
        settings = self._settings() | plain(epochs=self._whole("n_iter"), eval_every=eval_every)
        initial = None if begins_anew else as_model(self)._model
        if initial is not None and initial.shape[1] != settings["n_hidden"]:
            raise SettingError(
                f"n_components = {self.n_components} is not allowed: the fitted model has {initial.shape[1]} components, and warm_start goes on from it"
            )
        calls: list[Callable[..., Any]] = [self._printer(X)] if self.verbose else []
        if self.callback is not None:
            call = self.callback
            calls.append(lambda metrics, model: call(metrics, RBM._wrap(model)))
        on_epoch = chain_calls(calls) if calls else None
        jobs = threads(self.n_jobs)
        done = _mclv.train(settings, rows, weights, None, initial, None, None, (on_epoch, None), jobs)
        interrupted = isinstance(done["raised"], KeyboardInterrupt)
        result = finished(done)
        self._keep(result.model, settings["seed"], result.history, result.chains, X.dtype)
        if interrupted:
            raise KeyboardInterrupt("training was interrupted; the estimator holds the model so far")
        return self

    def partial_fit(self, X: Any, y: Any = None) -> BernoulliRBM:
        """Continue training with one pass over the rows of `X`, in minibatches of `batch_size`.

        The number of rows may differ between calls. Chains, optimiser and centring continue from
        call to call, also after pickling. The learning rate is constant. After `fit` they start
        again from the fitted model. Tours build their stopping set from the rows of each call, so
        give at least some hundred rows.

        Returns
        -------
        self
        """
        first = not hasattr(self, "components_")
        X = self._validated(X, reset=first)
        rows = self._rows(X)
        feed, seed = self._feed_of_model(), None
        if first or feed is None:
            settings = self._settings()
            feed = _mclv.Feed(settings, rows, None if first else as_model(self)._model)
            seed = settings["seed"]
        try:
            feed.add(rows, threads(self.n_jobs))
        finally:
            dtype = X.dtype if first else self.components_.dtype
            self._keep(RBM._wrap(feed.model()), seed, getattr(self, "history_", []), feed.chains(), dtype)
            self._feed, self._feed_weights = feed, self.components_
        return self

    def _feed_of_model(self) -> _mclv.Feed | None:
        """The training that `partial_fit` continues, unless the model has changed since."""
        is_current = getattr(self, "_feed_weights", None) is getattr(self, "components_", self)
        return self._feed if is_current else None

    def _keep(self, model: RBM, seed: int | None, history: list[dict[str, Any]], chains: Any, dtype: Any) -> None:
        dtype = np.float32 if dtype == np.float32 else np.float64
        self.components_ = np.ascontiguousarray(model.weights.T, dtype=dtype)
        self.intercept_visible_ = model.visible_bias.astype(dtype)
        self.intercept_hidden_ = model.hidden_bias.astype(dtype)
        self.history_ = history
        self._n_features_out = self.components_.shape[0]
        if chains is not None:
            self.h_samples_ = chains.astype(dtype)
        elif hasattr(self, "h_samples_"):
            del self.h_samples_
        if seed is not None:
            self.random_state_ = np.random.RandomState(seed % 2**32)

    def _settings(self) -> dict[str, Any]:
        return plain(
            n_hidden=self._whole("n_components"),
            learning_rate=self.learning_rate,
            batch_size=self._whole("batch_size"),
            gradient=self.gradient,
            k=None if self.gradient == "exact" else self.k,
            n_chains=self.n_chains,
            unfinished=self.unfinished,
            samples_per_row=self.stopping_samples,
            centred=self.centred,
            schedule=self.schedule,
            optimizer=self.optimizer,
            momentum=self.momentum,
            l1=self.l1,
            l2=self.l2,
            clip=self.clip,
            init=self.init,
            seed=seed_of(self.random_state),
        )

    def _whole(self, name: str) -> int:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise SettingError(f"{name} = {value!r} is not allowed: give a whole number of at least 1")
        return int(value)

    def _printer(self, X: Any) -> Callable[..., None]:
        """A callback that prints a line for each pass, as scikit-learn does."""
        shown, begun = self._rows_quietly(X[:: -(-X.shape[0] // 1000)]), time.perf_counter()

        def show(metrics: dict[str, Any], model: _mclv.Model) -> None:
            nonlocal begun
            pseudo = model.pseudo_log_likelihood(shown, threads(self.n_jobs)).mean()
            begun, seconds = time.perf_counter(), time.perf_counter() - begun
            likelihood = metrics.get("train_log_likelihood")
            text = "" if likelihood is None else f", log-likelihood = {likelihood:.3f}"
            name, number = type(self).__name__, metrics["epoch"]
            print(f"[{name}] Iteration {number}, pseudo-likelihood = {pseudo:.2f}, time = {seconds:.2f}s{text}", file=sys.stdout)

        return show

    # Using the model

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """The probabilities of hidden units given each row.

        In single precision if `X` is, else in double precision, as scikit-learn does.
        """
        X = self._checked(X)
        model, jobs = as_model(self)._model, threads(self.n_jobs)
        out = model.mean_hidden(self._rows(X), jobs)
        return out if X.dtype == np.float32 else out.astype(np.float64)

    def score_samples(self, X: Any, *, method: str | None = None) -> npt.NDArray[np.float64]:
        """The pseudo-log-likelihood of each row, or its log-likelihood.

        The pseudo-log-likelihood is ``sum_i log p(v_i | all other units)``, exact and deterministic.
        scikit-learn estimates it by flipping one random unit.

        Parameters
        ----------
        X : rows
        method : {"pseudo-likelihood", "likelihood"}, optional
            Default: `score_method`. The likelihood needs log Z, which is exact for small models and
            an estimate for others. The attribute `score_log_z_` holds it with its error and notes.
            A warning is given if it has no interval.
        """
        X = self._checked(X)
        method = method or self.score_method
        model, jobs = as_model(self)._model, threads(self.n_jobs)
        if method == "pseudo-likelihood":
            return model.pseudo_log_likelihood(self._rows(X), jobs)
        if method == "likelihood":
            # Keep log Z with its error and notes for the user.
            self.score_log_z_ = log_partition(self, n_jobs=self.n_jobs)
            return -model.free_energy(self._rows(X), jobs) - self.score_log_z_.value
        raise SettingError(f"score_method = {method!r} is not allowed: give 'pseudo-likelihood' or 'likelihood'")

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`, which grid searches compare."""
        return float(np.mean(self.score_samples(X)))

    def log_likelihood(self, X: Any, **settings: Any) -> Likelihood:
        """Compute the average log-likelihood of the rows, with its errors.

        `settings` are those of ``mclv.log_partition``.
        """
        rows = self._rows(self._checked(X))
        return log_likelihood(self, rows, n_jobs=self.n_jobs, **settings)

    def gibbs(self, v: Any, n_steps: int = 1) -> npt.NDArray[np.bool_]:
        """Make `n_steps` block-Gibbs steps from each row. Each call uses new random numbers."""
        rows = self._rows(self._checked(v))
        n_rows, n_steps, seed = rows.shape[0], whole(n_steps, "n_steps", STEPS), int(self.random_state_.randint(2**31 - 1))
        new, _, _ = as_model(self)._model.sample(n_rows, "gibbs", n_steps, False, seed, rows, None, threads(self.n_jobs))
        return new.view(np.bool_)

    def sample(
        self,
        n_samples: int = 1,
        *,
        method: str | None = None,
        burn_in: int | None = None,
        given: Any = None,
        means: bool = False,
        random_state: Any = None,
    ) -> npt.NDArray[Any]:
        """Draw rows from the model (see ``mclv.sample``).

        If `random_state` is None, each call uses new random numbers.
        """
        check_is_fitted(self)
        seed = self.random_state_ if random_state is None else random_state
        return self.to_model().sample(
            n_samples, method=method, burn_in=burn_in, given=given, means=means, seed=seed, n_jobs=self.n_jobs
        )

    def to_model(self) -> RBM:
        """The fitted model, for the functions of this package."""
        check_is_fitted(self)
        return as_model(self)

    # Interface of scikit-learn

    def _validated(self, X: Any, reset: bool) -> Any:
        if self.input_range not in ("warn", "error"):
            raise SettingError(f"input_range = {self.input_range!r} is not allowed: give 'warn' or 'error'")
        dtypes = [np.float64, np.float32, np.bool_, np.uint8]
        return validate_data(self, X, accept_sparse=("csr", "csc"), dtype=dtypes, reset=reset)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _rows(self, X: Any) -> _mclv.Rows:
        rows = self._rows_quietly(X)
        warn_outside(rows)
        return rows

    def _rows_quietly(self, X: Any) -> _mclv.Rows:
        return as_rows(X, clip=self.input_range == "warn")

    # Methods that code for scikit-learn's class uses although they are private there

    def _mean_hiddens(self, v: Any) -> npt.NDArray[Any]:
        v = np.asarray(v) if not is_sparse(v) else v
        means: npt.NDArray[Any] = self.transform(v if v.ndim == 2 else v[None]).reshape(v.shape[:-1] + (-1,))
        return means

    def _sample_hiddens(self, v: Any, rng: np.random.RandomState) -> npt.NDArray[np.bool_]:
        p = self._mean_hiddens(v)
        drawn: npt.NDArray[np.bool_] = rng.uniform(size=p.shape) < p
        return drawn

    def _sample_visibles(self, h: Any, rng: np.random.RandomState) -> npt.NDArray[np.bool_]:
        p = as_model(self).mean_visible(np.atleast_2d(h), n_jobs=self.n_jobs).reshape(np.shape(h)[:-1] + (-1,))
        drawn: npt.NDArray[np.bool_] = rng.uniform(size=p.shape) < p
        return drawn

    def _free_energy(self, v: Any) -> npt.NDArray[np.float64]:
        return as_model(self).free_energy(v, n_jobs=self.n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if not name.startswith("_feed")}
        feed = self._feed_of_model()
        return state if feed is None else state | {"_feed": feed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_feed" in state:
            self._feed_weights = self.components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
