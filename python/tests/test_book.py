"""The Python code of README and book runs."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(os.environ.get("MCLV_ROOT", Path(__file__).resolve().parents[2]))
PAGES = [ROOT / "README.md", ROOT / "docs/reference/python.md"]
PAGES += sorted((ROOT / "docs/coming-from").glob("*.md")) + sorted((ROOT / "docs/learn").glob("*.md"))


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


def test_there_is_code():
    assert sum(len(blocks(page)) for page in PAGES) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    # `X` and `X_test` are the reader's own data.
    names = {"X": rng.integers(0, 2, (60, 16)), "X_test": rng.integers(0, 2, (20, 16))}
    for block in blocks(page):
        code = compile(block, str(page), "exec")
        if not re.search("^import (torch|wandb)$", block, flags=re.M):  # too large to install for a test: only compiled
            exec(code, names)
