"""Train a model on rows in memory."""

from __future__ import annotations

import html
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._progress import bar_for, chain_calls, note_of
from ._rows import as_rows, column_names, floats, seed_of, threads
from ._settings import plain
from ._model import RBM, as_model, load
from ._train_settings import TrainSettings
from .errors import SettingError

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack

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
    #: The hidden states of the chains at the end, one per row: persistent chains (pcd), tours under
    #: way (lvs), top rungs (tempered). None for gradients that keep none (cd, ucd, exact).
    chains: npt.NDArray[np.uint8] | None = None
    #: The run folder, if the training has one: for ``mclv.report`` and ``mclv.plot``, and to resume.
    folder: Path | None = None

    def curve(self, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The epochs and values of one metric, for plotting.

        Training likelihoods are over the same rows in every epoch, at most 5,000. ``history[-1]``
        has the likelihood of all rows.
        """
        same_rows = {"train_log_likelihood": "watched_log_likelihood"}.get(name, name)
        points = [(m["epoch"], m.get(same_rows, m[name])) for m in self.history if m.get(name) is not None]
        epochs, values = zip(*points) if points else ((), ())
        return np.array(epochs, dtype=np.int64), np.array(values, dtype=np.float64)

    def to_frame(self) -> Any:
        """The history as a pandas DataFrame: a row for each epoch, a column for each metric.

        Metrics with parts, such as ``log_z``, have a column for each part, such as
        ``log_z_std_err``. Epochs without a metric have NaN. Needs pandas.

        Examples
        --------
        >>> import mclv
        >>> digits = mclv.datasets.load("digits", split="train")
        >>> frame = mclv.train(digits, 4, epochs=3, eval_every=3, seed=1).to_frame()
        >>> frame.index.tolist(), frame["train_log_likelihood"].notna().tolist()
        ([1, 2, 3], [False, False, True])
        """
        import pandas

        frame = pandas.DataFrame([flat_metrics(metrics) for metrics in self.history])
        return frame.set_index("epoch") if len(frame) else frame

    def plot(self, *names: str, ax: Any = None) -> Any:
        """Plot metrics over epochs, and return matplotlib's Axes. Needs matplotlib.

        Without names, the log-likelihoods of training and validation rows.
        """
        if ax is None:
            import matplotlib.pyplot

            ax = matplotlib.pyplot.figure().add_subplot()
        shown = names or ("train_log_likelihood", "validation_log_likelihood")
        known = {name for metrics in self.history for name in metrics}
        for name in shown:
            if name in known:
                ax.plot(*self.curve(name), marker=".", label=name.replace("_", " "))
            elif names:
                raise SettingError(f"there is no metric {name!r}; the history has {', '.join(sorted(known))}")
        ax.set_xlabel("epoch")
        if ax.get_legend_handles_labels()[1]:
            ax.legend()
        if not names:
            ax.set_ylabel("nats per row")
        return ax

    def __repr__(self) -> str:
        epochs = self.history[-1]["epoch"] if self.history else 0
        return f"TrainResult({self.outcome} after {epochs} epochs, {self.model!r})"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        last: dict[str, Any] = self.history[-1] if self.history else {}
        facts: list[tuple[str, Any]] = [
            ("outcome", f"{self.outcome} after {last.get('epoch', 0)} epochs"),
            ("model", f"{self.model.n_visible} visible, {self.model.n_hidden} hidden units"),
            ("gradient", self.settings.get("gradient")),
        ]
        for which in ("train", "validation"):
            value = last.get(f"{which}_log_likelihood")
            if value is not None:
                facts.append((f"log-likelihood of {'training' if which == 'train' else which} rows", f"{value:.3f} nats per row"))
        if last.get("log_z"):
            log_z = last["log_z"]
            known = log_z["guarantee"] == "exact"
            error = "exact" if known else "no known error" if log_z.get("std_err") is None else f"± {log_z['std_err']:.3g}"
            facts.append(("log Z", f"{log_z['value']:.4f} ({log_z['method']}, {error})" if not known else f"{log_z['value']:.4f} (exact)"))
        facts += [("best epoch", self.best_epoch)] if self.best_epoch is not None else []
        facts += [("warning", text) for text in self.warnings]
        cells = "".join(f"<tr><th style='text-align:left'>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in facts)
        return f"<table>{cells}</table>"


def flat_metrics(metrics: dict[str, Any]) -> dict[str, Any]:
    """The metrics of an epoch without nesting: ``{"log_z": {"value": 1}}`` has ``log_z_value``."""
    flat: dict[str, Any] = {}
    for name, value in metrics.items():
        if isinstance(value, dict):
            flat |= {f"{name}_{part}": inner for part, inner in flat_metrics(value).items()}
        else:
            flat[name] = value
    return flat


def train(
    data: Any = None,
    n_hidden: int | None = None,
    *,
    validation: Any = None,
    weights: npt.ArrayLike | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    watch: bool = True,
    callback: Callback | Sequence[Callback] | None = None,
    progress: bool | str = False,
    n_jobs: int | None = None,
    **settings: Unpack[TrainSettings],
) -> TrainResult:
    """Train a model.

    The same seed and settings give the same model as ``mclv train``, bit for bit. Ctrl-C ends the
    training between two updates and returns the model so far, with ``outcome == "interrupted"``.

    Parameters
    ----------
    data : array or sparse matrix of shape (n_rows, n_visible), or Dataset
        Rows of values in [0, 1]. Zeros and ones are packed into bits. The columns of a data frame
        keep their names. Leave it out only with `resume`, if the run folder names its data.
    n_hidden : int, default=25
        Number of hidden units. With a model as `init`, that of the model.
    validation : like `data`, optional
        Rows that decide which epoch is the best.
    weights : array of shape (n_rows,), optional
        Weight of each row.
    output : str or path, optional
        Folder for the files of the run, as ``mclv train --output`` writes them: settings, metrics,
        checkpoints, models, snapshots. `mclv.report` makes a page of them. It must not hold a run.
    resume : str or path, optional
        Run folder to continue, exactly where an interrupted training stopped. It keeps its
        settings. With `epochs`, this number of epochs follows after its end, with a new schedule of
        the learning rate. If `data`, `validation` and `weights` were in memory, give the same
        again.
    watch : bool
        Evaluate the likelihood during training (in about 10 % of the time; exactly if the model is
        small enough). False means ``eval_every="never"``.
    callback : callable or list of callables, optional
        ``callback(metrics, model)`` is called after each epoch. A true return value stops the
        training. A callback may use all functions of this package.
    progress : bool, "tqdm" or "rich"
        Show a progress bar. True: with tqdm if it is installed, else plain lines.
    n_jobs : int, optional
        Number of threads. It does not change the result.
    **settings
        The settings of ``mclv train`` with underscores, such as ``gradient="pcd"``, ``epochs=50``,
        ``centred=False``, ``snapshots="log"``. `mclv.TrainSettings` lists them with their values
        and defaults. None means the default. ``init`` may also be a model to go on from.

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
    if resume is not None:
        return _resume(resume, data, n_hidden, validation, weights, output, watch, callback, progress, n_jobs, dict(settings))
    if data is None:
        raise TypeError("train() needs data; only a resumed run can name its own")
    rows, given = as_rows(data, "data"), dict(settings)
    start = given.get("init")
    initial = None if start is None or isinstance(start, str) else as_model(given.pop("init"))
    if initial is not None:
        if n_hidden not in (None, initial.n_hidden):
            raise SettingError(f"n_hidden = {n_hidden} is not allowed: the model of init has {initial.n_hidden}; leave n_hidden out")
        n_hidden = initial.n_hidden
    if given.get("seed") is not None:
        given["seed"] = seed_of(given["seed"])
    wanted = plain(n_hidden=n_hidden, **given)
    if not watch:
        wanted["eval_every"] = "never"
    with _listening(callback, progress) as listeners:
        done = _mclv.train(
            wanted,
            rows,
            None if weights is None else floats(weights, "weights", 1),
            None if validation is None else as_rows(validation, "validation"),
            None if initial is None else initial._model,
            None if output is None else os.fspath(output),
            column_names(data),
            listeners,
            threads(n_jobs),
        )
    return finished(done, None if output is None else Path(output))


def _resume(
    resume: str | os.PathLike[str],
    data: Any,
    n_hidden: int | None,
    validation: Any,
    weights: npt.ArrayLike | None,
    output: str | os.PathLike[str] | None,
    watch: bool,
    callback: Callback | Sequence[Callback] | None,
    progress: bool | str,
    n_jobs: int | None,
    settings: dict[str, Any],
) -> TrainResult:
    """Continue the run in a folder."""
    more = settings.pop("epochs", None)
    others = [name for name, value in settings.items() if value is not None]
    others += ["n_hidden"] * (n_hidden is not None) + ["output"] * (output is not None) + ["watch"] * (not watch)
    if others:
        raise SettingError(f"{others[0]} cannot be used with resume: a resumed run keeps its settings")
    if more is not None and (isinstance(more, bool) or not isinstance(more, (int, np.integer)) or more < 1):
        raise SettingError(f"epochs = {more!r} is not allowed: give the number of epochs to add to the run")
    facts = _mclv.run_facts(os.fspath(resume))
    folder, in_memory = Path(facts["folder"]), facts["source"] == "memory"
    if in_memory and data is None:
        raise SettingError(f"the training rows of {folder} were in memory; give them again: mclv.train(data, resume=...)")
    if not in_memory and not (data is None and validation is None and weights is None):
        raise SettingError(f"{folder} names its data ({facts['source']}); leave out data, validation and weights")
    if in_memory and facts["is_validated"] != (validation is not None):
        cure = "give the same again as validation" if validation is None else "leave validation out"
        raise SettingError(f"{folder} {'has' if validation is None else 'has no'} validation rows; {cure}")
    with _listening(callback, progress) as listeners:
        done = _mclv.resume(
            os.fspath(folder),
            None if data is None else as_rows(data, "data"),
            None if weights is None else floats(weights, "weights", 1),
            None if validation is None else as_rows(validation, "validation"),
            column_names(data),
            None if more is None else int(more),
            listeners,
            threads(n_jobs),
        )
    return finished(done, folder)


@contextmanager
def _listening(callback: Callback | Sequence[Callback] | None, progress: bool | str) -> Iterator[Any]:
    """The native listeners for callbacks and a progress bar, which is closed at the end."""
    callbacks = list(callback) if isinstance(callback, Sequence) else [callback] if callback else []
    calls: list[Callable[..., Any]] = [lambda metrics, model, f=f: f(metrics, RBM._wrap(model)) for f in callbacks]
    bar = bar_for(progress)
    if bar is not None:
        calls.append(lambda metrics, _model: bar.note(text) if (text := note_of(metrics)) else None)
    try:
        yield chain_calls(calls) if calls else None, bar.progress if bar else None
    finally:
        if bar is not None:
            bar.close()


def finished(done: dict[str, Any], folder: Path | None = None) -> TrainResult:
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
    if folder is not None:
        saved = [load(path) for path in _mclv.run_facts(os.fspath(folder))["snapshots"]]
        snapshots = {model.provenance["history"]["epoch"]: model for model in saved}
    return TrainResult(**(done | models | {"warnings": said, "snapshots": snapshots, "folder": folder}))
