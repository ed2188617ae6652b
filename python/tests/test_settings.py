"""The settings of training that type checkers know, and what the package says about itself."""

import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import mclv
import pytest
from mclv import _mclv, _train_settings
from mclv.errors import SettingError

SOURCE = Path(_train_settings.__file__).read_text(encoding="utf-8")
ROOT = Path(os.environ.get("MCLV_ROOT", Path(__file__).resolve().parents[2]))


def types_and_help():
    """The type and the help text of each key of `TrainSettings`, from its source."""
    body = SOURCE.split("class TrainSettings")[1]
    found = re.findall(r'^    (\w+): ([^\n]+) \| None\n    """(.*?)"""$', body, flags=re.M | re.S)
    return {name: (kind, " ".join(text.split())) for name, kind, text in found}


def test_the_list_is_the_librarys():
    told = {name: " ".join(text.split()) for name, text in _mclv.setting_help() if name != "n_hidden"}
    ours = types_and_help()
    cure = "change TrainSettings in python/package/mclv/_train_settings.py as settings/overrides.rs says"
    assert list(ours) == list(told) == list(mclv.TrainSettings.__annotations__), cure
    for name, text in told.items():
        assert ours[name][1].startswith(text), f"{name}: {cure}: {text}"


@pytest.mark.parametrize("name", types_and_help())
def test_the_words_of_each_setting_are_the_librarys(name, bits):
    kind, _ = types_and_help()[name]
    words = re.findall(r'"([^"]+)"', kind)
    wrong = {"snapshots": "every"}.get(name, "zzz")
    with pytest.raises(SettingError) as error:
        mclv.train(bits, 4, **{name: wrong})
    text = str(error.value)
    if "int" not in kind.split("[")[0] and "float" not in kind.split("[")[0]:
        assert set(words) == set(re.findall(r"`([^`]+)`", text)) - {wrong} or kind == "bool", text
    else:
        assert bool(words) == ("`" in text) and all(f"`{word}`" in text for word in words), text
    also = {"gradient": "lvs", "unfinished": "keep"} if name == "k" else {}
    for word in words:
        try:
            mclv.train(bits[:9], 2, **(also | {"epochs": 1, "warm_up_epochs": 0, "eval_every": "never"} | {name: word}))
        except SettingError as other:  # two settings that exclude each other
            assert str(other).startswith(("starts = ", "batch_size = ")) or "cannot be used with" in str(other), str(other)


def test_misspelt_settings_are_named_with_a_suggestion(bits):
    for wrong, right in [("epohs", "epochs"), ("learningrate", "learning_rate"), ("batchsize", "batch_size"), ("gradients", "gradient")]:
        with pytest.raises(TypeError, match=f"unknown setting '{wrong}'; did you mean '{right}'"):
            mclv.train(bits, 4, **{wrong: 1})


CHECKED = """
import mclv, numpy as np
X = np.zeros((3, 2))
result = mclv.train(X, 5, epochs=2, gradient="pcd", clip=1.0, snapshots=[1, 2], k="dynamic", patience=None)
mclv.train(X, **result.settings)
mclv.train(X, init=result)
mclv.train(X, init=result.model, seed=np.random.default_rng(0))
mclv.train(X, init=mclv.BernoulliRBM(5).fit(X))
common: mclv.TrainSettings = {"epochs": 2}
mclv.train(X, **common)
mclv.BernoulliRBM(n_components=5, gradient="lvs")
"""

WRONG = [
    ("mclv.train(X, 5, epohs=2)", "epohs"),
    ('mclv.train(X, gradient="pdc")', "gradient"),
    ('mclv.train(X, epochs="many")', "epochs"),
    ("mclv.train(X, centred=3)", "centred"),
    ('mclv.train(X, init="dat")', "init"),
]


def test_type_checkers_refuse_wrong_settings(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(CHECKED + "".join(f"{line}\n" for line, _ in WRONG))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\ndisallow_subclassing_any = False\n[mypy-sklearn.*]\nignore_missing_imports = True\n")
    options = ["--config-file", tmp_path / "mypy.ini", "--cache-dir", tmp_path / "cache"]
    # In a process of its own: the memory of this one is measured by other tests.
    done = subprocess.run([sys.executable, "-m", "mypy", program, *options], capture_output=True, text=True)
    out, err = done.stdout, done.stderr
    errors = [line for line in out.splitlines() if ": error:" in line and "program.py" in line]
    first = CHECKED.count("\n") + 1
    lines = [int(line.split("program.py:")[1].split(":")[0]) for line in errors]
    assert sorted(set(lines)) == list(range(first, first + len(WRONG))), out + err
    for line, (_, name) in enumerate(WRONG, first):
        assert any(name in error for error, at in zip(errors, lines) if at == line), out


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing.Unpack is new in Python 3.11")
def test_tools_find_the_settings_of_train():
    assert typing.get_args(typing.get_type_hints(mclv.train)["settings"]) == (mclv.TrainSettings,)


def test_dir_shows_everything_without_importing_scikit_learn():
    code = """
import mclv, sys, json
shown = dir(mclv)
print(json.dumps([sorted(set(mclv.__all__) - set(shown)), "BernoulliRBM" in shown, "sklearn" in sys.modules, mclv.BernoulliRBM.__name__]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], True, False, "BernoulliRBM"]
    with pytest.raises(AttributeError, match="Bernouli"):
        mclv.Bernouli


RESULTS = [mclv.TrainResult, mclv.LogZ, mclv.Likelihood, mclv.Lab, mclv.LabEstimator, mclv.ModeShares, mclv.Samples, mclv.Mixing, mclv.Tours, mclv.datasets.Dataset]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.__name__)
def test_every_field_of_a_result_is_documented(result):
    """Each public field has a comment in the source and a line in the book."""
    lines = inspect.getsource(result).splitlines()
    book = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    section = book.split(f"### `{result.__name__}`")[1].split("\n### ")[0].split("\n## ")[0]
    names = [field.name for field in dataclasses.fields(result) if not field.name.startswith("_")]
    names += [name for name, value in vars(result).items() if not name.startswith("_") and name not in names and (isinstance(value, property) or callable(value))]
    for name in names:
        assert f"`{name}" in section, f"docs/reference/python.md, {result.__name__}: {name}"
        at = [k for k, line in enumerate(lines) if line.startswith(f"    {name}: ")]
        if at:
            assert lines[at[0] - 1].startswith("    #: ") or lines[at[0] - 1].startswith("    #  "), f"{result.__name__}.{name} has no comment"


def test_everything_public_has_a_docstring():
    for name in mclv.__all__:
        value = getattr(mclv, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
            for method, inner in vars(value).items() if inspect.isclass(value) else ():
                assert method.startswith("_") or not callable(inner) or inspect.getdoc(inner), f"{name}.{method}"
    assert typing.get_type_hints(mclv.RBM.sample)["n_samples"] is int
