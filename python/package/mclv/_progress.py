"""Show how far training has come, by tqdm where it is installed."""

from __future__ import annotations

import re
import sys
from typing import Any, Callable


class Bar:
    """A progress bar over updates that also shows the likelihood; plain lines on standard error without tqdm."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm

            self._bar: Any = tqdm(unit=" updates", unit_scale=True, desc="training")
        except ImportError:
            self._bar = None

    def progress(self, done: int, total: int) -> None:
        """`done` of `total` updates are made."""
        if self._bar is not None and total:
            self._bar.total = total
            self._bar.update(done - self._bar.n)

    def epoch(self, metrics: dict[str, Any]) -> None:
        """An epoch is finished."""
        likelihood = metrics.get("validation_log_likelihood", metrics.get("train_log_likelihood"))
        if likelihood is None:
            return
        text = f"epoch {metrics['epoch']}, log-likelihood {likelihood:.3f}"
        if self._bar is not None:
            self._bar.set_postfix_str(text)
        else:
            print(text, file=sys.stderr)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


def in_python(text: str) -> str:
    """Advice with keywords in place of flags of the command line."""
    return re.sub(r"--([a-z][a-z0-9-]*)", lambda flag: flag[1].replace("-", "_"), text)


def chain_calls(calls: list[Callable[..., Any]]) -> Callable[..., bool]:
    """One callback that calls all and stops if one of them says so."""

    def call(*args: Any) -> bool:
        return any([bool(each(*args)) for each in calls])

    return call
