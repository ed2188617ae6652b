"""Pages and figures of runs, and runs that go on, from Python."""

import os
import subprocess

import numpy as np
import pytest

import mclv

PATTERNS = np.array([[1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]], dtype=np.uint8)


@pytest.fixture
def rows():
    return np.repeat(PATTERNS, 50, axis=0)


def test_a_resumed_run_is_that_of_one_training(tmp_path, rows):
    whole = mclv.train(rows, 3, epochs=12, seed=2)
    stops = lambda metrics, model: metrics["epoch"] == 5  # noqa: E731
    first = mclv.train(rows, 3, epochs=12, seed=2, callback=stops, output=tmp_path / "run")
    assert first.outcome == "interrupted" and first.folder == tmp_path / "run"
    result = mclv.train(rows, resume=tmp_path / "run")
    assert result.outcome == "finished" and [m["epoch"] for m in result.history if m["epoch"]] == list(range(1, 13))
    assert result.model == whole.model
    assert result.settings["seed"] == 2


def test_more_epochs_come_after_the_end(tmp_path, rows):
    whole = mclv.train(rows, 3, epochs=9, restarts=[6], seed=2)
    mclv.train(rows, 3, epochs=6, seed=2, output=tmp_path / "finished")
    stops = lambda metrics, model: metrics["epoch"] == 4  # noqa: E731
    mclv.train(rows, 3, epochs=6, seed=2, callback=stops, output=tmp_path / "interrupted")
    for run in ("finished", "interrupted"):
        longer = mclv.train(rows, resume=tmp_path / run, epochs=3)
        assert longer.model == whole.model, run
        assert list(longer.snapshots) == [6]


def test_a_run_that_names_its_data_needs_none(tmp_path):
    program = os.environ.get("MCLV_CLI")
    if program is None:
        pytest.skip("needs the command line")
    run = tmp_path / "run"
    subprocess.run([program, "train", "bars-and-stripes:3", "--n-hidden", "3", "--epochs", "4", "-o", run], check=True)
    result = mclv.train(resume=run, epochs=2)
    assert result.history[-1]["epoch"] == 6
    assert "Generated against data" in mclv.report(result).read_text()
    with pytest.raises(mclv.errors.SettingError, match="names its data .bars-and-stripes:3.; leave out data"):
        mclv.train(PATTERNS, resume=run)
    swept = tmp_path / "swept"
    flags = ["--n-hidden", "2,3", "--seeds", "0", "--epochs", "2", "--validation-fraction", "0.3"]
    subprocess.run([program, "sweep", "bars-and-stripes:3", *flags, "-o", swept], check=True)
    assert mclv.load(swept).n_hidden in (2, 3)


def test_what_cannot_be_resumed_is_refused(tmp_path, rows):
    run = tmp_path / "run"
    mclv.train(rows, 3, epochs=2, validation=rows, output=run)
    for arguments, words in [
        ({"resume": run}, "were in memory; give them again"),
        ({"data": rows, "resume": run}, "has validation rows; give the same again"),
        ({"data": rows[1:], "validation": rows, "resume": run}, "has changed"),
        ({"data": rows, "validation": rows, "resume": run, "k": 2}, "k cannot be used with resume"),
        ({"data": rows, "validation": rows, "resume": run, "n_hidden": 2}, "n_hidden cannot be used with resume"),
        ({"data": rows, "validation": rows, "resume": run, "epochs": 0}, "epochs = 0 is not allowed"),
        ({"data": rows, "validation": rows, "resume": run, "epochs": "auto"}, "epochs = 'auto' is not allowed"),
    ]:
        with pytest.raises(mclv.errors.MclvError, match=words):
            mclv.train(**arguments)
    with pytest.raises(mclv.errors.MissingFileError, match="nowhere"):
        mclv.train(rows, resume=tmp_path / "nowhere")
    with pytest.raises(TypeError, match="needs data"):
        mclv.train()
    # Nothing of this has changed the run.
    assert mclv.train(rows, validation=rows, resume=run).history[-1]["epoch"] == 2


def test_pages_say_what_they_lack(tmp_path, rows):
    result = mclv.train(rows, 3, epochs=2, output=tmp_path / "run")
    lacking = mclv.report(result, output=tmp_path / "page.html").read_text()
    assert "in the memory of another program" in lacking and "Generated against data" not in lacking
    wrong = mclv.report(result, data=rows[:50], output=tmp_path / "page.html").read_text()
    assert "was not trained on the given rows" in wrong
    assert "Missing" not in mclv.report(result, data=rows).read_text()


def test_reports_and_figures_that_cannot_be_made(tmp_path, rows):
    folders = [tmp_path / "a", tmp_path / "b"]
    runs = [mclv.train(rows, 3, epochs=2, output=folder) for folder in folders]
    memory = mclv.train(rows, 3, epochs=2)
    error = mclv.errors.SettingError
    for call, words in [
        (lambda: mclv.report(memory), "has no run folder"),
        (lambda: mclv.report(), "at least one"),
        (lambda: mclv.report(*runs), "output: name a file"),
        (lambda: mclv.report(*runs, data=rows, output=tmp_path / "c.html"), "data: give the rows of one run"),
        (lambda: mclv.plot("filtres", runs[0], output=tmp_path / "f.svg"), "known figures are likelihood"),
        (lambda: mclv.plot("means", runs[0], scale=3, output=tmp_path / "f.svg"), "scale = 3 is not allowed"),
        (lambda: mclv.plot("likelihood", runs[0], against="days", output=tmp_path / "f.svg"), "against"),
    ]:
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(mclv.errors.FormatError, match="shows one run"):
        mclv.plot("spectrum", *runs, output=tmp_path / "f.svg")
    with pytest.raises(mclv.errors.FormatError, match="f.eps"):
        mclv.plot("spectrum", runs[0], output=tmp_path / "f.eps")
    assert not list(tmp_path.glob("f.*"))


def test_figures_have_the_wanted_format(tmp_path, rows):
    result = mclv.train(rows, 3, epochs=4, output=tmp_path / "run")
    for extension, start in [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]:
        for figure in ("likelihood", "means"):
            path = mclv.plot(figure, result, data=rows, output=tmp_path / f"{figure}.{extension}")
            assert path.read_bytes().startswith(start)
