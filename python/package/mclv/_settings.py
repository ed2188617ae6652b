"""Put flat keyword settings into the nested form of `config.toml`, which the library checks."""

from __future__ import annotations

from typing import Any

from . import _mclv
from .errors import SettingError

_TRAIN = {
    "n_hidden", "init", "epochs", "batch_size", "drop_last", "learning_rate", "schedule", "l1", "l2", "centered",
    "offset_rate", "clip", "warm_up_epochs", "eval_every", "patience", "seed",
}  # fmt: skip
_CHAIN = {"k", "n_chains", "visible"}
_LVS = {
    "k", "n_tours", "visible", "unfinished", "starts", "statistics", "samples_per_row", "row_fraction", "redraw_every",
    "min_ess", "target_completion", "max_states", "max_set_cost",
}  # fmt: skip
_GRADIENTS = {"cd": {"k", "visible"}, "pcd": _CHAIN, "lvs": _LVS, "exact": set()}
_OPTIMIZERS = {"sgd": {"momentum"}, "adam": {"beta1", "beta2", "epsilon"}}

#: The learning rate of Adam, if none is given: its steps are of the size of the rate itself.
_ADAM_RATE = 0.01


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's own."""
    return value.item() if hasattr(value, "item") and not isinstance(value, (int, float)) else value


def nested(**settings: Any) -> dict[str, Any]:
    """The settings as the library reads them. What is None is left to its defaults."""
    given = {name: _plain(value) for name, value in settings.items() if value is not None}
    gradient, optimizer = given.pop("gradient", None), given.pop("optimizer", None)
    for name, value, known in (("gradient", gradient, _GRADIENTS), ("optimizer", optimizer, _OPTIMIZERS)):
        if value is not None and value not in known:
            raise SettingError(f"{name} = {value!r} is not allowed: choose one of {', '.join(known)}")
    of_gradient: dict[str, Any] = {"estimator": gradient}
    of_optimizer = {"rule": optimizer or "sgd"}
    if optimizer == "adam":
        given.setdefault("learning_rate", _ADAM_RATE)
    if gradient is None:
        # As on the command line: the best for so many hidden units, whatever their number is worth as a setting.
        n_hidden = given.get("n_hidden")
        best = _mclv.best_settings(n_hidden if isinstance(n_hidden, int) and n_hidden > 0 else 1)
        of_gradient = best["gradient"]
        given.setdefault("learning_rate", best["learning-rate"])
        if of_gradient["estimator"] == "lvs" and "n_chains" in given:
            given["n_tours"] = given.pop("n_chains")
    estimator: str = of_gradient["estimator"]
    train: dict[str, Any] = {}
    for name, value in given.items():
        key = name.replace("_", "-")
        if name in _TRAIN:
            train["centred" if name == "centered" else key] = value
        elif name in _GRADIENTS[estimator]:
            # Settings of chains have underscores, those of tours hyphens.
            of_gradient[key if estimator == "lvs" else name] = value
        elif name in _OPTIMIZERS[of_optimizer["rule"]]:
            of_optimizer[name] = value
        elif any(name in known for known in _GRADIENTS.values()):
            raise SettingError(f"{name} does not go with gradient = {estimator!r}")
        elif any(name in known for known in _OPTIMIZERS.values()):
            raise SettingError(f"{name} does not go with optimizer = {of_optimizer['rule']!r}")
        else:
            raise TypeError(f"unknown setting {name!r}")
    if estimator == "lvs" and "starts" not in of_gradient and of_gradient.get("unfinished", "carry") != "carry":
        # Metropolis restarts are for tours that are carried on.
        of_gradient["starts"] = "weighted"
    if "seed" in train:
        train["seed"] = int(train["seed"])
    return train | {"gradient": of_gradient, "optimizer": of_optimizer}
