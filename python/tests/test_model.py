"""Models against definitions written out in NumPy; files; errors."""

import pickle

import mclv
import numpy as np
import pytest
from mclv.errors import DataError, FormatError, MclvError, MissingFileError, SettingError


def states(n):
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.uint8)


def energies(rbm):
    """E(v, h) of all pairs of states, by its definition."""
    w, b, a = (x.astype(np.float64) for x in (rbm.weights, rbm.visible_bias, rbm.hidden_bias))
    v, h = states(rbm.n_visible), states(rbm.n_hidden)
    return -(v @ w @ h.T + (v @ b)[:, None] + h @ a)


def test_free_energies_means_and_z_are_those_of_the_definition(small):
    weights = np.exp(-energies(small))
    v, h = states(6), states(4)
    assert np.allclose(small.free_energy(v), -np.log(weights.sum(1)), atol=1e-10)
    assert np.allclose(small.mean_hidden(v), weights @ h / weights.sum(1, keepdims=True), atol=1e-5)
    assert np.allclose(small.mean_visible(h), weights.T @ v / weights.sum(0)[:, None], atol=1e-5)
    exact = mclv.log_partition(small)
    assert exact.guarantee == "exact" and abs(exact.value - np.log(weights.sum())) < 1e-10
    p = weights.sum(1) / weights.sum()
    assert np.allclose(mclv.log_likelihoods(small, v, exact), np.log(p), atol=1e-10)


def test_energies_of_pairs_are_those_of_the_definition(small):
    v, h = (x.ravel() for x in np.meshgrid(np.arange(64), np.arange(16), indexing="ij"))
    v, h = np.tile(states(6)[v], (2, 1)), np.tile(states(4)[h], (2, 1))
    assert np.allclose(small.energy(v, h), np.tile(energies(small).ravel(), 2), atol=1e-12)
    for bad in [(v, h[:5]), (v[:, :5], h), (v, v)]:
        with pytest.raises(DataError, match="give pairs|columns"):
            small.energy(*bad)


def test_single_steps_leave_the_model_as_it_is(small):
    """From exact draws, a step gives exact draws: chi-squared with 63 degrees of freedom is below 113 but once in 10,000 seeds."""
    joint = np.exp(-energies(small))
    p = joint.sum(1) / joint.sum()
    rng = np.random.default_rng(0)
    drawn = states(6)[rng.choice(64, size=20_000, p=p)]
    v, h = small.gibbs_step(drawn, seed=rng)
    assert v.dtype == h.dtype == np.uint8 and v.shape == (20_000, 6) and h.shape == (20_000, 4)

    def chi2(rows, p):
        counts = np.bincount(rows @ (1 << np.arange(rows.shape[1])), minlength=len(p))
        return ((counts - len(rows) * p) ** 2 / (len(rows) * p)).sum()

    assert chi2(v, p) < 113 and chi2(h, joint.sum(0) / joint.sum()) < 45
    # The pair is one of the joint distribution: its mean energy is the model's.
    mean, square = ((joint * energies(small) ** k).sum() / joint.sum() for k in (1, 2))
    h = small.sample_hidden(v, seed=rng)
    assert abs(small.energy(v, h).mean() - mean) < 4 * np.sqrt((square - mean**2) / 20_000)
    # The negative control: one half-step with the bias of another model.
    other = mclv.RBM(small.weights, small.visible_bias + [0.3, 0, 0, 0, 0, 0], small.hidden_bias)
    assert chi2(other.sample_visible(small.sample_hidden(drawn, seed=rng), seed=rng), p) > 113


def test_seeds_of_single_steps(small):
    v = np.tile(states(6), (5, 1))
    first, again, other = (small.gibbs_step(v, seed=seed)[0] for seed in (3, np.int64(3), 4))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    rng = np.random.default_rng(3)
    assert np.array_equal(first, small.gibbs_step(v, seed=rng)[0]) and not np.array_equal(first, small.gibbs_step(v, seed=rng)[0])
    assert not np.array_equal(small.sample_hidden(v), small.sample_hidden(v))
    assert np.array_equal(*(small.sample_hidden(v, seed=np.random.RandomState(1)) for _ in range(2)))


def test_samples_with_given_units_follow_the_conditional(small):
    p = np.exp(-energies(small)).sum(1)
    nan = np.nan
    given = np.array([[1, nan, nan, 0, nan, nan], [0, nan, nan, 0, nan, nan]])
    drawn = small.sample(20_000, given=given, burn_in=100, seed=1)
    assert (drawn[0::2, 0] == 1).all() and (drawn[1::2, 0] == 0).all() and (drawn[:, 3] == 0).all()
    for k in range(2):
        known = np.where((states(6)[:, 0] == 1 - k) & (states(6)[:, 3] == 0), p, 0)
        expected = 10_000 * known / known.sum()
        counts = np.bincount(drawn[k::2] @ (1 << np.arange(6)), minlength=64)
        chi2 = ((counts - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()
        # 15 degrees of freedom: below 45 but once in 10,000 seeds. The marginal distribution is far off.
        assert chi2 < 45
        free = 10_000 * (p / p.sum()).reshape(-1)[expected > 0]
        assert ((counts[expected > 0] - free) ** 2 / free).sum() > 45
    same = mclv.sample(small, 10, given=np.ma.masked_invalid(given[0]), burn_in=9, seed=2)
    assert np.array_equal(same.v, mclv.sample(small, 10, given=given[:1], burn_in=9, seed=2).v) and same.method == "gibbs"
    for bad, match in [
        ([1, 0], "rows of 6 values"),
        ([[1, nan, 0, 0, 0, 0], [nan, 1, 0, 0, 0, 0]], "row 2 has NaN in other places"),
        ([0.5, nan, nan, nan, nan, nan], "0 or 1"),
        ([nan] * 6, "known"),
        ([0] * 6, "unknown"),
        ([2, nan, nan, nan, nan, nan], "row 1, column 1 is 2"),
    ]:
        with pytest.raises(DataError, match=match):
            small.sample(3, given=bad)


def test_names_in_exceptions_cannot_change_a_terminal():
    with pytest.raises(MclvError) as caught:
        mclv.load("a\x1b[2J\u202e.npz")
    assert "[U+001B][2J[U+202E]" in str(caught.value) and "\x1b" not in str(caught.value)


def test_mixing_of_recorded_numbers():
    rng = np.random.default_rng(0)
    good = mclv.mixing(rng.normal(size=(4, 1000)))
    assert good.r_hat < 1.02 and abs(good.autocorrelation_time - 1) < 0.3 and 2500 < good.effective_sample_size < 5000
    slow = np.zeros((4, 4000))
    for t in range(1, 4000):  # its autocorrelation time is 1.9 / 0.1 = 19
        slow[:, t] = 0.9 * slow[:, t - 1] + rng.normal(size=4)
    assert 12 < mclv.mixing(slow).autocorrelation_time < 30
    assert mclv.mixing(np.arange(7.0)[None]) is None and mclv.mixing([[np.nan] * 20]) is None
    assert mclv.mixing(np.zeros((2, 30), [("a", "u1"), ("x", "f8")])["x"]).r_hat == 1
    for bad in [np.zeros(9), np.zeros((0, 9)), [["a"]]]:
        with pytest.raises(DataError, match="chains"):
            mclv.mixing(bad)


def test_the_pseudo_likelihood_is_that_of_the_definition(small):
    p = np.exp(-energies(small)).sum(1)
    v = states(6)
    at = np.arange(64)
    expected = sum(np.log(p / (p + p[at ^ (1 << i)])) for i in range(6))
    assert np.allclose(small.pseudo_log_likelihood(v), expected, atol=1e-9)


def test_many_rows_are_computed_in_pieces_with_the_same_bits(small):
    rng = np.random.default_rng(0)
    wide = mclv.RBM(rng.normal(size=(300, 200)) / 9, rng.normal(size=300), rng.normal(size=200))
    grey = rng.random((15_000, 300)).astype(np.float32)
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.where(grey > 0.9, grey, 0))
    for rows in (grey, grey > 0.5, sparse):
        parts = [rows[:7001], rows[7001:]]
        for method in ("free_energy", "mean_hidden"):
            whole = getattr(wide, method)(rows, n_jobs=1)
            assert np.array_equal(whole, np.concatenate([getattr(wide, method)(part, n_jobs=2) for part in parts]))
    h = rng.integers(0, 2, (15_000, 200))
    assert np.array_equal(wide.mean_visible(h, n_jobs=1), np.concatenate([wide.mean_visible(part) for part in (h[:7001], h[7001:])]))
    few = (grey > 0.5)[:1300]
    assert np.array_equal(wide.pseudo_log_likelihood(few, n_jobs=1), np.concatenate([wide.pseudo_log_likelihood(few[at : at + 100]) for at in range(0, 1300, 100)]))


def test_all_kinds_of_rows_give_the_same(small):
    sparse = pytest.importorskip("scipy.sparse")
    v = states(6)
    expected = small.free_energy(v)
    for rows in [v.astype(bool), v.astype(np.float32), v.astype(float), v.astype(np.int64), v.tolist(),
                 np.asfortranarray(v.astype(float)), sparse.csr_matrix(v), sparse.csc_matrix(v.astype(float)),
                 sparse.coo_array(v), sparse.csr_array(v.astype(bool))]:  # fmt: skip
        assert np.array_equal(small.free_energy(rows), expected)
    grey = np.linspace(0, 1, 24).reshape(4, 6)
    expected = small.free_energy(grey)
    for rows in [grey.astype(np.float32), sparse.csr_matrix(grey), sparse.csc_array(grey.astype(np.float32))]:
        assert np.array_equal(small.free_energy(rows), expected)


def test_duplicate_entries_of_a_sparse_matrix_are_added(small):
    sparse = pytest.importorskip("scipy.sparse")
    twice = sparse.csr_matrix((np.array([0.5, 0.25]), np.array([2, 2]), np.array([0, 2])), shape=(1, 6))
    assert np.array_equal(small.free_energy(twice), small.free_energy(twice.toarray()))


def test_bad_rows_are_refused_with_place_and_cure(small):
    for rows, parts in [
        (np.full((2, 6), 255.0), ["row 1, column 1 is 255", "divide by 255"]),
        (np.full((2, 6), np.nan), ["NaN", "missing value"]),
        (np.zeros((2, 5)), ["expected 6, got 5"]),
        (np.zeros((0, 6)), ["empty"]),
        (np.zeros(6), ["1 dimensions"]),
        (np.array([["a"] * 6]), ["give numbers"]),
    ]:
        with pytest.raises(DataError) as error:
            small.free_energy(rows)
        assert isinstance(error.value, ValueError) and isinstance(error.value, MclvError)
        assert all(part in str(error.value) for part in parts), str(error.value)
    with pytest.raises(DataError, match="finite"):
        mclv.RBM([[np.inf]], [0], [0])


@pytest.mark.parametrize("name", ["m.safetensors", "m.npz", "m.npy"])
def test_files_keep_the_model(small, tmp_path, name):
    small.save(tmp_path / name)
    assert mclv.load(tmp_path / name) == small
    assert pickle.loads(pickle.dumps(small)) == small


def test_file_errors_are_of_pythons_kinds(small, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        mclv.load(tmp_path / "none.safetensors")
    assert isinstance(error.value, MissingFileError) and isinstance(error.value, OSError)
    (tmp_path / "broken.safetensors").write_bytes(b"no model")
    with pytest.raises(FormatError, match="broken.safetensors"):
        mclv.load(tmp_path / "broken.safetensors")
    with pytest.raises(ValueError, match="known types are"):
        small.save(tmp_path / "m.txt")


def test_samples_follow_the_model_and_the_seed(small):
    drawn = small.sample(20_000, burn_in=100, seed=3)
    assert np.array_equal(drawn, small.sample(20_000, burn_in=100, seed=3, n_jobs=1))
    p = np.exp(-energies(small)).sum(1)
    p /= p.sum()
    counts = np.bincount(drawn @ (1 << np.arange(6)), minlength=64)
    # Chi-squared with 63 degrees of freedom: below 113 but once in 10,000 seeds.
    chi2 = ((counts - 20_000 * p) ** 2 / (20_000 * p)).sum()
    assert chi2 < 113
    # The same test sees a model with one bias changed.
    other = mclv.RBM(small.weights, small.visible_bias + [0.2, 0, 0, 0, 0, 0], small.hidden_bias)
    wrong = np.bincount(other.sample(20_000, burn_in=100, seed=3) @ (1 << np.arange(6)), minlength=64)
    assert ((wrong - 20_000 * p) ** 2 / (20_000 * p)).sum() > 113
    with pytest.raises(SettingError, match="burn_in"):
        small.sample(1, burn_in=0)


def test_the_method_of_samples_is_chosen_or_named_and_told(small):
    exact = mclv.sample(small, 20, seed=3, means=True)
    assert (exact.method, exact.burn_in, exact.mixing, exact.ladders) == ("exact", None, None, None)
    assert exact.v.shape == exact.means.shape == (20, 6) and exact.v.dtype == np.uint8
    assert np.array_equal(exact.v, small.sample(20, seed=3)) and np.array_equal(exact.v, small.sample(20, method="exact", seed=3))
    tempered = mclv.sample(small, 40, method="tempering", seed=3)
    assert np.array_equal(tempered.v, mclv.sample(small, 40, method="tempering", seed=3, n_jobs=1).v)
    assert tempered.ladders["n_ladders"] == 16 and tempered.ladders["not_renewed"] == 0 and tempered.doubt is None
    assert mclv.sample(small, 3, burn_in=5).method == "gibbs" == mclv.sample(small, 3, start=[[0] * 6]).method
    with pytest.raises(SettingError, match="method"):
        small.sample(1, method="best")
    with pytest.raises(SettingError, match="burn_in"):
        small.sample(1, method="exact", burn_in=3)
    with pytest.raises(SettingError, match="starts"):
        small.sample(1, method="tempering", start=[[0] * 6])


def test_samples_that_remember_their_start_are_warned_of():
    stuck = mclv.RBM(np.full((12, 12), 3.0), np.full(12, -18.0), np.full(12, -18.0))
    with pytest.warns(mclv.errors.UncertainWarning, match="method='tempering'") as caught:
        stuck.sample(20, method="gibbs")
    assert caught[0].filename == __file__
    with pytest.warns(mclv.errors.UncertainWarning, match="lowest rung"):
        mclv.sample(stuck, 20, method="tempering", burn_in=3)


def test_models_of_other_packages(small, tmp_path):
    sklearn = pytest.importorskip("sklearn.neural_network")
    h5py = pytest.importorskip("h5py")
    theirs = mclv.to_sklearn(small)
    v = states(6)
    assert isinstance(theirs, sklearn.BernoulliRBM)
    assert np.allclose(theirs.transform(v), small.mean_hidden(v), atol=1e-6)
    assert mclv.from_sklearn(theirs) == small
    path = tmp_path / "rbms.h5"
    with h5py.File(path, "w") as file:
        for n, scale in ((1, 0.0), (20, 1.0), (3, 0.5)):
            params = file.create_group(f"update_{n}/params")
            params["weight_matrix"], params["vbias"] = scale * small.weights, scale * small.visible_bias
            params["hbias"] = scale * small.hidden_bias
        file["hyperparameters/lr"] = 0.1
    assert mclv.from_rbms(path) == small
    assert np.array_equal(mclv.from_rbms(path, 3).weights, small.weights / 2)
    with pytest.raises(FormatError, match="no update 7"):
        mclv.from_rbms(path, 7)
    mclv.to_rbms(small, path, update=5)
    assert mclv.from_rbms(path) == small
