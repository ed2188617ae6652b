"""Tasks of a user's first week in Python, each in at most three calls of the package.

`tests/week` has the same tasks for the command line.
"""

import numpy as np
import pytest

import mclv


@pytest.fixture(scope="module")
def animals():
    """Rows of 12 traits. Two kinds of animals have opposite traits, with some noise."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 2, 600)
    rows = (np.arange(12) % 2 == kind[:, None]) ^ (rng.random((600, 12)) < 0.1)
    return rows, np.array(["bird", "fish"])[kind]


@pytest.fixture(scope="module")
def model(animals):
    return mclv.train(animals[0][:300], 4, epochs=60, seed=1)


def test_1_how_good_is_a_model_of_my_rows(animals, model):
    likelihood = mclv.log_likelihood(model, animals[0][400:])
    # Independent fair units have −12 ln 2 = −8.3 nats.
    assert -8.3 < likelihood.mean < -3 and likelihood.std_err_rows > 0 and likelihood.std_err_log_z == 0


def test_2_a_file_with_labels(tmp_path, animals):
    rows, kinds = animals
    lines = [",".join([*map(str, row.astype(int)), kind]) for row, kind in zip(rows, kinds, strict=True)]
    (tmp_path / "animals.csv").write_text("\n".join(lines) + "\n")
    data = mclv.datasets.load(tmp_path / "animals.csv", label_column="-1")
    assert data.shape == (600, 12) and sorted(data.label_names) == ["bird", "fish"]


def test_3_rows_of_a_data_frame(animals):
    pandas = pytest.importorskip("pandas")
    result = mclv.train(pandas.DataFrame(animals[0].astype(int)), 3, epochs=5)
    assert result.outcome == "finished"


def test_4_pictures_as_bytes(tmp_path):
    rng = np.random.default_rng(2)
    across, on = rng.random((200, 1, 1)) < 0.5, rng.random((200, 6)) < 0.5
    pictures = np.where(across, on[:, :, None], on[:, None, :]).astype(np.uint8) * 255
    np.save(tmp_path / "pictures.npy", pictures.reshape(200, -1))
    data = mclv.datasets.load(tmp_path / "pictures.npy", scale=255)
    samples = mclv.train(data, 8, epochs=50).model.sample(10, seed=1)
    assert set(np.unique(data.X)) == {0, 1} and samples.shape == (10, 36)


def test_5_spins(tmp_path, animals):
    np.save(tmp_path / "spins.npy", np.where(animals[0], 1, -1).astype(np.int8))
    data = mclv.datasets.load(tmp_path / "spins.npy", spins=True)
    assert np.array_equal(data.X, animals[0])


def test_6_own_parts(tmp_path, animals):
    for name, rows in [("train", animals[0][:300]), ("valid", animals[0][300:400])]:
        np.save(tmp_path / f"{name}.npy", rows)
    parts = {
        part: mclv.datasets.load(tmp_path / "train.npy", validation=tmp_path / "valid.npy", split=part)
        for part in ["train", "validation"]
    }
    result = mclv.train(parts["train"], 4, validation=parts["validation"], epochs=30)
    assert (len(parts["train"]), len(parts["validation"])) == (300, 100)
    assert result.best_epoch is not None and "validation_log_likelihood" in result.history[-1]


def test_7_grid_search_of_scikit_learn(animals):
    from sklearn.model_selection import GridSearchCV

    estimator = mclv.BernoulliRBM(n_iter=20, batch_size=64, random_state=0)
    search = GridSearchCV(estimator, {"n_components": [1, 4]}, cv=2).fit(animals[0].astype(float))
    assert search.best_params_ == {"n_components": 4}


def test_8_training_goes_on(animals, model):
    longer = mclv.train(animals[0][:300], init=model.model, epochs=10, learning_rate=0.05)
    assert longer.model.n_hidden == 4 and len(longer.history) >= 1


def test_9_early_stopping_by_a_callback(animals):
    seen = []

    def stop(metrics, model):
        seen.append(metrics["epoch"])
        return len(seen) == 5

    result = mclv.train(animals[0], 4, epochs=50, callback=stop)
    assert result.outcome == "interrupted" and len(seen) == 5


def test_10_a_figure(tmp_path, model):
    pytest.importorskip("matplotlib").use("Agg")
    axes = model.plot("train_log_likelihood")
    axes.figure.savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_11_do_independent_methods_agree(animals, model):
    exact = mclv.log_partition(model)
    tours = mclv.log_partition(model, "ladder", data=animals[0], target_se=0.05)
    shares = mclv.mode_shares(model, animals[0][:300], animals[1][:300])
    assert abs(tours.value - exact.value) < 5 * tours.std_err and not shares.is_bad


def test_12_features_and_missing_values(animals, model):
    features = model.model.mean_hidden(animals[0])
    incomplete = animals[0][:5].astype(float)
    incomplete[:, 4:] = np.nan
    completed = model.model.sample(5, given=incomplete, seed=1)
    assert features.shape == (600, 4)
    assert np.array_equal(completed[:, :4], animals[0][:5, :4])


def test_13_a_run_folder_goes_on_and_becomes_a_page(tmp_path, animals):
    run = tmp_path / "run"
    first = mclv.train(animals[0][:300], 4, epochs=20, snapshots=[0, 20], output=run)
    longer = mclv.train(animals[0][:300], resume=run, epochs=10)
    page = mclv.report(longer, data=animals[0][:300])
    assert (first.folder, longer.folder, longer.history[-1]["epoch"], sorted(longer.snapshots)) == (run, run, 30, [0, 20])
    text = page.read_text()
    assert page == run / "report.html" and "Generated against data" in text and "Missing" not in text


def test_14_figures_of_several_runs(tmp_path, animals):
    runs = [mclv.train(animals[0][:300], 4, epochs=10, seed=seed, output=tmp_path / f"seed-{seed}") for seed in range(3)]
    mclv.plot("likelihood", *runs, mean=True, title="", output=tmp_path / "figure.pdf")
    mclv.report(*runs, output=tmp_path / "comparison.html")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert "seed-2" in (tmp_path / "comparison.html").read_text()


def test_15_names_of_columns_reach_the_model(tmp_path, animals):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(animals[0].astype(int), columns=[f"trait{j}" for j in range(12)])
    result = mclv.train(frame, 3, epochs=5, output=tmp_path / "run")
    for model in (result.model, mclv.load(tmp_path / "run")):
        assert model.provenance["data"]["column_names"] == list(frame.columns)
