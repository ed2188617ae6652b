"""The code of the documentation runs."""

import os
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
DOCS = Path(os.environ.get("MCLV_DOCS", HERE.parents[2] / "docs"))
PAGES = ["reference/python.md", "coming-from/scikit-learn.md", "coming-from/rbms.md", "coming-from/pytorch.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """Blocks that need PyTorch are compiled only."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) >= 2
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        code = compile(block, page, "exec")
        if "import torch" not in block:
            exec(code, {})
    assert page != "reference/python.md" or (tmp_path / "digits.safetensors").exists()
