"""Pass keyword settings to the library, which defines their names, values and defaults."""

from __future__ import annotations

from typing import Any


def plain(**settings: Any) -> dict[str, Any]:
    """The settings that are not None, with NumPy scalars converted to Python numbers."""
    given = {name: value for name, value in settings.items() if value is not None}
    return {name: value.item() if hasattr(value, "item") else value for name, value in given.items()}
