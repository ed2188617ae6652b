"""The guide's code runs."""

import os
import re
from pathlib import Path


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch):
    here = Path(__file__).resolve()
    guide = Path(os.environ.get("MCLV_GUIDE", here.parents[2] / "docs" / "python.md"))
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) >= 2
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, str(guide), "exec"), {})
    assert (tmp_path / "digits.safetensors").exists()
