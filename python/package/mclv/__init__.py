"""Restricted Boltzmann Machines whose training and evaluation carry guarantees.

>>> import mclv
>>> digits = mclv.datasets.load("digits", split="train")
>>> result = mclv.train(digits, 16, epochs=5, seed=1)
>>> mclv.log_partition(result).guarantee
'exact'
"""

from typing import TYPE_CHECKING, Any

from . import datasets, errors
from ._mclv import __version__, kernels
from ._comparison import comparable
from ._convert import from_rbms, from_sklearn, to_rbms, to_sklearn
from .errors import MclvError
from ._lab import Lab, LabEstimator, Measured, lab
from ._model import RBM, load, save
from ._modes import ModeShares, mode_shares
from ._partition import Likelihood, LogZ, log_likelihood, log_likelihoods, log_partition
from ._report import plot, report
from ._sample import Mixing, Samples, mixing, sample
from ._theorems import Theorems, theorems
from ._tours import StoppingSet, Tours, tours
from ._train_settings import TrainSettings
from ._training import TrainResult, train

if TYPE_CHECKING:
    from ._sklearn import BernoulliRBM

__all__ = [
    "RBM", "BernoulliRBM", "Lab", "LabEstimator", "Likelihood", "LogZ", "MclvError", "Measured", "Mixing", "ModeShares", "Samples", "StoppingSet", "Theorems", "Tours", "TrainResult",
    "TrainSettings", "__version__", "comparable", "datasets", "errors", "from_rbms", "from_sklearn", "kernels", "lab", "load", "log_likelihood",
    "log_likelihoods", "log_partition", "mixing", "mode_shares", "plot", "report", "sample", "save", "theorems", "to_rbms", "to_sklearn", "tours", "train",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # Import scikit-learn only if the estimator is used.
    if name == "BernoulliRBM":
        from ._sklearn import BernoulliRBM

        return BernoulliRBM
    raise AttributeError(f"module 'mclv' has no attribute {name!r}")
