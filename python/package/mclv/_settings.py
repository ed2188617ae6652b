"""Pass keyword settings to the library, which defines their names, values and defaults."""

from __future__ import annotations

from typing import Any


def plain(**settings: Any) -> dict[str, Any]:
    """The settings that are not None, with NumPy scalars and arrays converted to Python numbers and lists."""
    return {name: _plain(value) for name, value in settings.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, range)):
        return [_plain(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value
