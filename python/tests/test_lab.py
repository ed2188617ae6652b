"""The laboratory for gradients."""

import json
import math

import pytest

import mclv


@pytest.fixture(scope="module")
def small():
    rows = mclv.datasets.load("bars-and-stripes:3")
    return mclv.train(rows, 6, epochs=100, seed=1), rows


def test_the_laboratory_finds_what_the_command_finds(cli, small, tmp_path):
    result, rows = small
    found = mclv.lab(result, rows, ["cd:1", "ucd:1:max-meeting=100000", "exact"], n_replicates=20, seed=4)
    result.model.save(tmp_path / "m.safetensors")
    args = ["lab", "m.safetensors", "--data", "bars-and-stripes:3", "--estimators", "cd:1,ucd:1:max-meeting=100000,exact"]
    out = json.loads(cli(*args, "--replicates", "20", "--seed", "4", "--json", cwd=tmp_path))["models"][0]
    for mine, theirs in zip(found.estimators, out["estimators"]):
        assert mine.variance.value == theirs["variance"]["value"]
        assert mine.bias_squared.value == theirs["bias"]["squared"]["value"] and mine.p == theirs["bias"]["p"]
    assert found.gradient_norm == out["gradient_norm"] and found.reference == "exact" and found.doubt is None
    assert not found["exact"].is_biased and float(found["exact"].mse) == 0.0
    assert found["cd:1"].mse_at_steps(1e12) == pytest.approx(max(found["cd:1"].bias_squared.value, 0.0), abs=1e-9)
    assert math.isnan(found["exact"].mse_at_steps(10))
    with pytest.raises(KeyError):
        found["cd:2"]


def test_wrong_estimators_are_refused(small):
    result, rows = small
    with pytest.raises(mclv.errors.SettingError, match="did you mean `pcd`"):
        mclv.lab(result, rows, ["pdc:1"])
    with pytest.raises(mclv.errors.SettingError, match="at least 8"):
        mclv.lab(result, rows, ["cd:1"], n_replicates=2)
