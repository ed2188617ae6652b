"""The native part of the package: rows, models and long work. It is private."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

_Path = str | os.PathLike[str]
_Floats = npt.NDArray[np.float32]
_Doubles = npt.NDArray[np.float64]
_Bytes = npt.NDArray[np.uint8]

__all__ = [
    "__version__", "Rows", "Model", "Feed", "StoppingSet", "train", "resume", "report", "plot", "run_facts", "setting_help", "mixing", "log_partition", "likelihood", "tours", "theorems", "mode_shares", "lab", "load_data", "fetch_data", "catalogue", "kernels",
]

__version__: str

@final
class Rows:
    @staticmethod
    def dense(array: npt.NDArray[Any], name: str, clip: bool) -> Rows: ...
    @staticmethod
    def sparse(
        shape: tuple[int, int],
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int64],
        data: npt.NDArray[Any],
        by_column: bool,
        name: str,
        clip: bool,
    ) -> Rows: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def is_binary(self) -> bool: ...
    @property
    def outside(self) -> tuple[int, float, float]: ...
    def to_numpy(self) -> _Bytes | _Floats: ...

@final
class Model:
    def __new__(
        cls, weights: _Floats, visible_bias: _Floats, hidden_bias: _Floats, provenance: dict[str, Any] | None = None
    ) -> Model: ...
    @staticmethod
    def load(path: _Path) -> Model: ...
    def save(self, path: _Path) -> None: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def weights(self) -> _Floats: ...
    @property
    def visible_bias(self) -> _Floats: ...
    @property
    def hidden_bias(self) -> _Floats: ...
    @property
    def provenance(self) -> dict[str, Any]: ...
    def equals(self, other: Model) -> bool: ...
    def free_energy(self, rows: Rows, n_threads: int | None) -> _Doubles: ...
    def pseudo_log_likelihood(self, rows: Rows, n_threads: int | None) -> _Doubles: ...
    def mean_hidden(self, rows: Rows, n_threads: int | None) -> _Floats: ...
    def mean_visible(self, rows: Rows, n_threads: int | None) -> _Floats: ...
    def reconstruction_error(self, rows: Rows, n_threads: int | None) -> float: ...
    def sample(
        self,
        n_samples: int,
        method: str | None,
        burn_in: int | None,
        means: bool,
        seed: int,
        start: Rows | None,
        given: tuple[Rows, Rows] | None,
        n_threads: int | None,
    ) -> tuple[_Bytes, _Floats | None, dict[str, Any]]: ...

@final
class Feed:
    def __new__(cls, settings: dict[str, Any], rows: Rows, model: Model | None) -> Feed: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Feed: ...
    def add(self, rows: Rows, n_threads: int | None) -> None: ...
    def model(self) -> Model: ...
    def chains(self) -> _Bytes | None: ...
    def to_bytes(self) -> bytes: ...

@final
class StoppingSet:
    @staticmethod
    def from_states(states: Rows) -> StoppingSet: ...
    @staticmethod
    def from_data(model: Model, rows: Rows, n_per_row: int, seed: int, n_threads: int | None) -> StoppingSet: ...
    @staticmethod
    def from_chains(
        model: Model, n_chains: int, burn_in: int, n_steps: int, seed: int, n_threads: int | None
    ) -> StoppingSet: ...
    @staticmethod
    def load(path: _Path) -> StoppingSet: ...
    def save(self, path: _Path) -> None: ...
    def __len__(self) -> int: ...
    @property
    def n_hidden(self) -> int: ...
    def states(self) -> _Bytes: ...
    def find(self, states: Rows) -> list[int]: ...

def train(
    settings: dict[str, Any],
    rows: Rows,
    weights: _Floats | None,
    validation: Rows | None,
    init: Model | None,
    output: _Path | None,
    column_names: list[str] | None,
    listeners: tuple[Callable[[dict[str, Any], Model], Any] | None, Callable[[int, int], Any] | None],
    n_threads: int | None,
) -> dict[str, Any]: ...
def resume(
    folder: _Path,
    rows: Rows | None,
    weights: _Floats | None,
    validation: Rows | None,
    column_names: list[str],
    more_epochs: int | None,
    listeners: tuple[Callable[[dict[str, Any], Model], Any] | None, Callable[[int, int], Any] | None],
    n_threads: int | None,
) -> dict[str, Any]: ...
def report(
    runs: Sequence[_Path], output: _Path, rows: Rows | None, is_whole: bool, n_threads: int | None
) -> list[str]: ...
def plot(
    figure: str,
    runs: Sequence[_Path],
    output: _Path,
    rows: Rows | None,
    options: dict[str, Any],
    n_threads: int | None,
) -> tuple[str | None, str | None]: ...
def run_facts(path: _Path) -> dict[str, Any]: ...
def setting_help() -> list[tuple[str, str]]: ...
def mixing(chains: _Doubles) -> dict[str, float] | None: ...
def log_partition(
    model: Model,
    method: str | None,
    rows: Rows | None,
    stopping_set: StoppingSet | None,
    ladder: _Path | None,
    save_ladder: _Path | None,
    rungs: list[Model],
    limits: dict[str, Any],
    n_threads: int | None,
) -> dict[str, Any]: ...
def likelihood(model: Model, rows: Rows, log_z: dict[str, Any], n_threads: int | None) -> dict[str, Any]: ...
def tours(
    model: Model, stopping_set: StoppingSet, settings: dict[str, Any], rows: Rows | None, n_threads: int | None
) -> dict[str, Any]: ...
def theorems(
    model: Model,
    stopping_set: StoppingSet,
    settings: dict[str, Any],
    rows: Rows | None,
    wanted: tuple[list[int], float, float],
    n_threads: int | None,
) -> dict[str, Any]: ...
def lab(
    model: Model,
    rows: Rows,
    estimators: list[str],
    n_replicates: int | None,
    batch_size: int | None,
    burn_in: int | None,
    n_reference: int | None,
    seed: int,
    n_threads: int | None,
) -> dict[str, Any]: ...
def mode_shares(
    model: Model,
    rows: Rows,
    labels: list[str] | None,
    by: str | None,
    n_clusters: int,
    method: str | None,
    limits: dict[str, Any],
    n_threads: int | None,
) -> dict[str, Any]: ...
def load_data(spec: dict[str, Any]) -> dict[str, Any]: ...
def fetch_data(name: str) -> list[Path]: ...
def catalogue() -> list[tuple[str, str, int, int]]: ...
def kernels() -> str: ...
