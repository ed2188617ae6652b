"""A laboratory for gradients: bias, variance and cost of estimators at fixed parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _mclv
from ._rows import as_rows, seed_of, threads, whole
from ._model import as_model

__all__ = ["Lab", "LabEstimator", "Measured", "lab"]


@dataclass(frozen=True)
class Measured:
    """A measured number and its standard error. ``float(measured)`` is its value."""

    #: The value.
    value: float
    #: Its standard error.
    std_err: float

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class LabEstimator:
    """What was found about one estimator. Norms and squares are of all components together."""

    #: The estimator, as it was asked for.
    estimator: str
    #: The name for tables.
    name: str
    #: The number of estimates.
    n_estimates: int
    #: The squared norm of the bias, without the share of the variance; it can be negative. ``None``
    #: with fewer than two estimates.
    bias_squared: Measured | None
    #: The probability that estimates without bias err as much in one direction.
    p: float | None
    #: True if chance cannot explain the bias: `p` is below `Lab.false_alarms`.
    is_biased: bool | None
    #: For separate tours: the squared error of their linear identity, per step.
    linear_squared: Measured | None
    #: The probability of such an error if the identity holds.
    linear_p: float | None
    #: True if chance cannot explain that error.
    linear_is_biased: bool | None
    #: The variance of an estimate.
    variance: Measured
    #: The mean squared error of an estimate.
    mse: Measured
    #: The cosine of the angle between the gradient with the estimate and with the reference.
    cosine: Measured
    #: The mean number of Gibbs steps of an estimate; 0 for the exact gradient.
    n_steps: float
    #: The mean seconds of an estimate, with the rows' part of the gradient.
    seconds: float
    #: What happened, one sentence each.
    notes: list[str]

    def mse_at_steps(self, n_steps: float) -> float:
        """The mean squared error of the mean of as many estimates as make `n_steps` Gibbs steps."""
        return self._mse_at(self.n_steps / n_steps)

    def mse_at_seconds(self, seconds: float) -> float:
        """The mean squared error of the mean of as many estimates as take this time."""
        return self._mse_at(self.seconds / seconds)

    def _mse_at(self, share: float) -> float:
        if self.bias_squared is None or share <= 0.0:
            return float("nan")
        return max(self.bias_squared.value, 0.0) + share * self.variance.value


@dataclass(frozen=True)
class Lab:
    """What a laboratory found about one model."""

    #: The estimators, in the order in which they were asked for.
    estimators: list[LabEstimator]
    #: The norm of the gradient of the log-likelihood of the minibatch.
    gradient_norm: float
    #: The number of rows in the minibatch.
    n_rows: int
    #: The number of estimates of each estimator.
    n_replicates: int
    #: The updates that persistent chains made before the one that counts.
    burn_in: int
    #: ``"exact"``, or the method that drew the samples of the reference.
    reference: str
    #: The number of samples of the reference; 0 if it is exact.
    n_reference: int
    #: The standard error of the reference, all components together.
    reference_std_err: float
    #: The reason to doubt the reference; ``None`` if there is none.
    doubt: str | None
    #: The probability that an estimator without bias is called biased.
    false_alarms: float
    #: The time it took.
    seconds: float

    def __getitem__(self, estimator: str) -> LabEstimator:
        """The results of an estimator, by its text."""
        for found in self.estimators:
            if found.estimator == estimator:
                return found
        raise KeyError(estimator)


def lab(
    model: Any,
    X: Any,
    estimators: Sequence[str] = ("cd:1", "cd:10", "pcd:1", "lvs:drop:1", "lvs:keep:1", "lvs:carry:3", "tempered", "ucd"),
    *,
    n_replicates: int = 64,
    batch_size: int = 128,
    burn_in: int = 100,
    n_reference: int = 16_000,
    seed: Any = 0,
    n_jobs: int | None = None,
) -> Lab:
    """Measure bias, variance and cost of gradient estimators at the parameters of a model.

    Only the model's part of the gradient is compared: all estimates have the same minibatch, whose
    part cancels. The reference is exact up to 20 units in the smaller layer, else a mean of samples.

    Parameters
    ----------
    model : RBM, TrainResult or fitted BernoulliRBM
    X : rows
        The training rows. The minibatch and stopping sets are drawn from them.
    estimators : sequence of str
        Each is ``NAME[:POLICY][:K][:SETTING=VALUE]``: ``"cd:10"``, ``"lvs:drop:1"``,
        ``"pcd:1:n-chains=50"``, ``"ucd:1:max-meeting=10000"``.
    n_replicates : int
        Number of independent estimates of each estimator, at least 8.
    batch_size : int
        Number of rows in the minibatch.
    burn_in : int
        Updates that persistent chains make, at the fixed parameters, before the one that counts.
    n_reference : int
        Number of samples of the reference, if the model is too large for the exact gradient.
    seed : int, RandomState, Generator or None
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads. It does not change the result, except for seconds.

    Examples
    --------
    >>> import mclv
    >>> digits = mclv.datasets.load("digits", split="train")
    >>> result = mclv.train(digits, 8, epochs=5, seed=1)
    >>> found = mclv.lab(result, digits, ["cd:1", "exact"], seed=1)
    >>> found["exact"].is_biased, found["exact"].mse.value
    (False, 0.0)
    """
    facts = _mclv.lab(
        as_model(model)._model,
        as_rows(X),
        [str(estimator) for estimator in estimators],
        whole(n_replicates, "n_replicates"),
        whole(batch_size, "batch_size"),
        whole(burn_in, "burn_in"),
        whole(n_reference, "n_reference"),
        seed_of(seed),
        threads(n_jobs),
    )
    reference = facts.pop("reference")
    return Lab(
        estimators=[_estimator(found) for found in facts.pop("estimators")],
        reference="exact" if reference["is_exact"] else reference["method"],
        n_reference=reference["n_samples"],
        reference_std_err=reference["std_err"],
        doubt=reference["doubt"],
        **facts,
    )


def _estimator(facts: dict[str, Any]) -> LabEstimator:
    bias, linear = facts.pop("bias"), facts.pop("linear")
    variance, mse, cosine = (Measured(**facts.pop(name)) for name in ("variance", "mse", "cosine"))
    return LabEstimator(
        bias_squared=bias and Measured(**bias["squared"]),
        p=bias and bias["p"],
        linear_squared=linear and Measured(**linear["squared"]),
        linear_p=linear and linear["p"],
        variance=variance,
        mse=mse,
        cosine=cosine,
        **facts,
    )
