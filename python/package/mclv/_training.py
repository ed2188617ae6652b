"""Train a model on rows in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._progress import bar_for, chain_calls, note_of
from ._rows import as_rows, threads
from ._settings import plain
from ._model import RBM

__all__ = ["TrainResult", "train"]

#: Called after each epoch with its metrics and the model; a true value stops the training.
Callback = Callable[[dict[str, Any], RBM], Any]


@dataclass
class TrainResult:
    """The result of a training."""

    #: The last model: at the end, at the interruption, or of the epoch before divergence.
    model: RBM
    #: The best model by the likelihood of validation rows (or of training rows if there are none).
    #: None without evaluations. It is `model` unless another is better by more than the error of
    #: both.
    best_model: RBM | None
    #: The epoch of `best_model`; 0 is the initial model.
    best_epoch: int | None
    #: Metrics of each epoch, as in ``metrics.jsonl``, with likelihoods in nats per row for epochs
    #: that were evaluated. Epoch 0 is the initial model; it comes first if it was evaluated.
    history: list[dict[str, Any]]
    #: All settings. ``mclv.train(data, **result.settings)`` trains the same model again.
    settings: dict[str, Any]
    #: ``"finished"``, ``"stopped early"``, ``"interrupted"`` or ``"diverged"``.
    outcome: str
    #: Warnings about the training, with advice.
    warnings: list[str] = field(default_factory=list)
    #: The models after the epochs of the setting `snapshots`, by epoch; 0 is the initial model.
    snapshots: dict[int, RBM] = field(default_factory=dict)

    def curve(self, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The epochs and values of one metric, for plotting.

        Training likelihoods are over the same rows in every epoch, at most 5,000. ``history[-1]``
        has the likelihood of all rows.
        """
        same_rows = {"train_log_likelihood": "watched_log_likelihood"}.get(name, name)
        points = [(m["epoch"], m.get(same_rows, m[name])) for m in self.history if m.get(name) is not None]
        epochs, values = zip(*points) if points else ((), ())
        return np.array(epochs, dtype=np.int64), np.array(values, dtype=np.float64)

    def __repr__(self) -> str:
        epochs = self.history[-1]["epoch"] if self.history else 0
        return f"TrainResult({self.outcome} after {epochs} epochs, {self.model!r})"


def train(
    data: Any,
    n_hidden: int | None = None,
    *,
    validation: Any = None,
    weights: npt.ArrayLike | None = None,
    watch: bool = True,
    callback: Callback | Sequence[Callback] | None = None,
    progress: bool | str = False,
    n_jobs: int | None = None,
    **settings: Any,
) -> TrainResult:
    """Train a model.

    The same seed and settings give the same model as ``mclv train``, bit for bit. Ctrl-C ends the
    training between two updates and returns the model so far, with ``outcome == "interrupted"``.

    Parameters
    ----------
    data : array or sparse matrix of shape (n_rows, n_visible), or Dataset
        Rows of values in [0, 1]. Zeros and ones are packed into bits.
    n_hidden : int, default=25
        Number of hidden units.
    validation : like `data`, optional
        Rows that decide which epoch is the best.
    weights : array of shape (n_rows,), optional
        Weight of each row.
    watch : bool
        Evaluate the likelihood during training (in about 10 % of the time; exactly if the model is
        small enough). False means ``eval_every="never"``.
    callback : callable or list of callables, optional
        ``callback(metrics, model)`` is called after each epoch. A true return value stops the
        training.
    progress : bool, "tqdm" or "rich"
        Show a progress bar. True: with tqdm if it is installed, else plain lines.
    n_jobs : int, optional
        Number of threads. It does not change the result.
    **settings
        The settings of ``mclv train`` with underscores, such as ``gradient="pcd"``, ``epochs=50``,
        ``centred=False``, ``snapshots="log"``. ``docs/reference/settings.md`` lists them with their values and defaults. None means
        the default.

    Returns
    -------
    TrainResult

    Examples
    --------
    >>> import mclv
    >>> digits = mclv.datasets.load("digits", split="train")
    >>> result = mclv.train(digits, 16, epochs=40, eval_every=10, seed=1)
    >>> result
    TrainResult(finished after 40 epochs, RBM(n_visible=64, n_hidden=16))
    >>> epochs, likelihood = result.curve("train_log_likelihood")
    >>> print(epochs, likelihood.round(2))
    [10 20 30 40] [-25.64 -25.2  -25.06 -25.02]
    """
    rows, wanted = as_rows(data, "data"), plain(n_hidden=n_hidden, **settings)
    if not watch:
        wanted["eval_every"] = "never"
    callbacks = list(callback) if isinstance(callback, Sequence) else [callback] if callback else []
    calls: list[Callable[..., Any]] = [lambda metrics, model, f=f: f(metrics, RBM._wrap(model)) for f in callbacks]
    bar = bar_for(progress)
    if bar is not None:
        calls.append(lambda metrics, _model: bar.note(text) if (text := note_of(metrics)) else None)
    try:
        done = _mclv.train(
            wanted,
            rows,
            None if weights is None else np.asarray(weights, dtype=np.float32),
            None if validation is None else as_rows(validation, "validation"),
            True,
            (chain_calls(calls) if calls else None, bar.progress if bar else None),
            threads(n_jobs),
        )
    finally:
        if bar is not None:
            bar.close()
    return finished(done)


def finished(done: dict[str, Any]) -> TrainResult:
    """The result of native training.

    Each warning is given once. Errors of callbacks are raised, but not Ctrl-C.
    """
    raised = done.pop("raised")
    if raised is not None and not isinstance(raised, KeyboardInterrupt):
        raise raised
    said = list(dict.fromkeys(done["warnings"]))
    for text in said:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    best = done["best_model"]
    models = {"model": RBM._wrap(done["model"]), "best_model": best and RBM._wrap(best)}
    snapshots = {epoch: RBM._wrap(model) for epoch, model in done["snapshots"].items()}
    return TrainResult(**(done | models | {"warnings": said, "snapshots": snapshots}))
