"""Pages and figures of runs in folders, as ``mclv report`` and ``mclv plot`` make them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Literal, TypeAlias

from . import _mclv
from ._rows import as_rows, threads
from ._training import TrainResult
from .errors import SettingError, UncertainWarning

__all__ = ["plot", "report"]

#: A run folder, a file in it, the folder of a sweep, or the result of a training with `output`.
Run: TypeAlias = "str | os.PathLike[str] | TrainResult"

Figure: TypeAlias = Literal[
    "likelihood", "ccdf", "filters", "samples", "chains", "reconstructions",
    "tours", "spectrum", "means", "correlations", "projections", "neighbours",
]  # fmt: skip


def _folders(runs: tuple[Run, ...]) -> list[str]:
    if not runs:
        raise SettingError("give at least one run folder")
    paths = []
    for run in runs:
        if isinstance(run, TrainResult):
            if run.folder is None:
                raise SettingError("this training has no run folder; train with mclv.train(..., output=FOLDER)")
            run = run.folder
        paths.append(os.fspath(run))
    return paths


def report(
    *runs: Run,
    output: str | os.PathLike[str] | None = None,
    data: Any = None,
    tours: bool = True,
    n_jobs: int | None = None,
) -> Path:
    """Write the HTML page of a run, or a page that compares several runs.

    The page is one file that works offline. For one run it shows likelihoods with error bands,
    warnings, samples beside the data, tours, pictures, and the origin of data and model.

    Parameters
    ----------
    *runs : path or TrainResult
        Run folders, or results of ``mclv.train(..., output=FOLDER)``. The folder of a sweep stands
        for its chosen run.
    output : str or path, optional
        File to write. By default ``report.html`` in the folder of the one run.
    data : array, data frame, sparse matrix or Dataset, optional
        The training rows, if they were in memory. Without them, the page has no samples beside the
        data and no tours. Runs of the command line name their data.
    tours : bool
        False leaves out tours, samples and singular values. This is faster.
    n_jobs : int, optional
        Number of threads. It does not change the result.

    Returns
    -------
    Path
        The file. A warning names what is missing in a run folder.

    Examples
    --------
    >>> import mclv, tempfile
    >>> digits = mclv.datasets.load("digits", split="train")
    >>> result = mclv.train(digits, 4, epochs=2, output=tempfile.mkdtemp() + "/run")
    >>> mclv.report(result, data=digits).name
    'report.html'
    """
    folders = _folders(runs)
    if output is None:
        if len(folders) > 1:
            raise SettingError("output: name a file for the page of several runs, such as output='comparison.html'")
        output = Path(_mclv.run_facts(folders[0])["folder"]) / "report.html"
    rows = _given(data, folders)
    for problem in _mclv.report(folders, os.fspath(output), rows, tours, threads(n_jobs)):
        warnings.warn(f"missing: {problem}", RuntimeWarning, stacklevel=2)
    return Path(output)


def plot(
    figure: Figure,
    *runs: Run,
    output: str | os.PathLike[str],
    data: Any = None,
    title: str | None = None,
    x_label: str | None = None,
    y_label: str | None = None,
    against: Literal["epochs", "time"] = "epochs",
    mean: bool = False,
    scale: int | None = None,
    n_jobs: int | None = None,
) -> Path:
    """Draw one figure of one or more runs, and write it as ``.svg``, ``.png`` or ``.pdf``.

    `TrainResult.plot` draws likelihoods with matplotlib instead, and needs no run folder.

    Parameters
    ----------
    figure : str
        ``"likelihood"``, ``"ccdf"`` (lengths of tours), ``"filters"``, ``"samples"``, ``"chains"``,
        ``"reconstructions"``, ``"tours"``, ``"spectrum"``, ``"means"``, ``"correlations"``,
        ``"projections"`` or ``"neighbours"``. Only the first two accept several runs.
    *runs : path or TrainResult
        As in `report`.
    output : str or path
        File to write. Its extension decides the format.
    data : array, data frame, sparse matrix or Dataset, optional
        The training rows, if they were in memory.
    title, x_label, y_label : str, optional
        Texts of the figure. An empty title removes it.
    against : {"epochs", "time"}
        Horizontal axis of likelihoods.
    mean : bool
        Draw runs that differ only in the seed as one curve with a band of one standard deviation.
    scale : int, optional
        Pixels for each unit of a picture, from 1 to 64.
    n_jobs : int, optional
        Number of threads.

    Examples
    --------
    >>> import mclv, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> digits = mclv.datasets.load("digits", split="train")
    >>> result = mclv.train(digits, 4, epochs=2, output=folder + "/run")
    >>> mclv.plot("likelihood", result, output=folder + "/curve.pdf").name
    'curve.pdf'
    """
    if against not in ("epochs", "time"):
        raise SettingError(f"against = {against!r} is not allowed: choose 'epochs' or 'time'")
    if scale is not None and not 1 <= scale <= 64:
        raise SettingError(f"scale = {scale} is not allowed: give 1 to 64 pixels")
    options = {"title": title, "x_label": x_label, "y_label": y_label, "against": against, "mean": mean, "scale": scale}
    options = {name: value for name, value in options.items() if value is not None}
    folders = _folders(runs)
    note, doubt = _mclv.plot(figure, folders, os.fspath(output), _given(data, folders), options, threads(n_jobs))
    if note is not None:
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    if doubt is not None:
        warnings.warn(doubt, UncertainWarning, stacklevel=2)
    return Path(output)


def _given(data: Any, folders: list[str]) -> _mclv.Rows | None:
    if data is None:
        return None
    if len(folders) > 1:
        raise SettingError("data: give the rows of one run; several runs are compared without them")
    return as_rows(data, "data")
