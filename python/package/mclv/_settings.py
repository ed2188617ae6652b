"""Pass keyword settings on to the library, which knows their names, values and defaults."""

from __future__ import annotations

from typing import Any


def plain(**settings: Any) -> dict[str, Any]:
    """The settings that are not None, with NumPy's scalars as Python's own."""
    given = {name: value for name, value in settings.items() if value is not None}
    return {name: value.item() if hasattr(value, "item") else value for name, value in given.items()}
