"""Show the progress of training with tqdm, rich or plain lines."""

from __future__ import annotations

import sys
from typing import Any, Callable, Protocol

from .errors import SettingError


class Bar(Protocol):
    """A progress bar over updates that also shows the likelihood."""

    def progress(self, done: int, total: int) -> None:
        """Show that `done` of `total` updates are done."""

    def note(self, text: str) -> None:
        """Show a text beside the bar."""

    def close(self) -> None:
        """Stop the bar and leave it on the screen."""


class _Tqdm:
    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self._bar: Any = tqdm(unit=" updates", unit_scale=True, desc="training")

    def progress(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def note(self, text: str) -> None:
        self._bar.set_postfix_str(text)

    def close(self) -> None:
        self._bar.close()


class _Rich:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self._bar: Any = Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def progress(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def note(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def close(self) -> None:
        self._bar.stop()


class _Lines:
    def progress(self, done: int, total: int) -> None:
        pass

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)

    def close(self) -> None:
        pass


def bar_for(progress: bool | str) -> Bar | None:
    """The bar for `progress`. True means tqdm's bar if tqdm is installed, else plain lines."""
    if progress is False:
        return None
    if progress is True:
        try:
            return _Tqdm()
        except ImportError:
            return _Lines()
    if progress in ("tqdm", "rich"):
        return _Tqdm() if progress == "tqdm" else _Rich()
    raise SettingError(f"progress = {progress!r} is not allowed: give True, False, 'tqdm' or 'rich'")


def note_of(metrics: dict[str, Any]) -> str | None:
    """The text of a bar for an epoch, if its likelihood is known."""
    likelihood = metrics.get("validation_log_likelihood")
    likelihood = metrics.get("train_log_likelihood") if likelihood is None else likelihood
    return None if likelihood is None else f"epoch {metrics['epoch']}, log-likelihood {likelihood:.3f}"


def chain_calls(calls: list[Callable[..., Any]]) -> Callable[..., bool]:
    """One callback that calls all of them, and asks to stop if one of them does."""

    def call(*args: Any) -> bool:
        return any([bool(each(*args)) for each in calls])

    return call
