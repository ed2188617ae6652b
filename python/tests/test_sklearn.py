"""The estimator among scikit-learn's own tools."""

import copy
import pickle
import re
import subprocess
import sys
import warnings

import joblib
import mclv
import numpy as np
import pytest
from mclv.errors import DataError, SettingError
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM as Theirs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from threadpoolctl import threadpool_limits


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{number}-{getattr(check, 'func', check).__name__}")
        for number, settings in enumerate([{}, {"gradient": "lvs"}, {"gradient": "cd", "optimizer": "adam", "learning_rate": 0.01}])
        for estimator, check in estimator_checks_generator(mclv.BernoulliRBM(**settings), mark=None)
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    if getattr(check, "func", check).__name__.startswith("check_sample_weight_equivalence"):
        # A row of weight 2 is in one minibatch, a row given twice in two: the models differ, as those of SGDClassifier do.
        with pytest.raises(AssertionError, match="not equivalent"):
            check(estimator)
    else:
        check(estimator)


@pytest.fixture(scope="module")
def digits_X_y():
    digits = mclv.datasets.load("digits")
    return digits.X, digits.y


def test_a_pipeline_classifies_digits(digits_X_y):
    X, y = digits_X_y
    rbm = mclv.BernoulliRBM(100, learning_rate=0.06, random_state=0)
    model = make_pipeline(MinMaxScaler(clip=True), rbm, LogisticRegression(C=100, max_iter=2000))
    # Threads that wait for each other take ten times as long on a busy machine.
    with threadpool_limits(1):
        assert model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.85


def test_grid_search_with_and_without_labels(digits_X_y):
    X, y = digits_X_y
    X, y = X[:300], y[:300]
    grid = {"learning_rate": [0.01, 0.2], "gradient": ["pcd", "exact"]}
    search = GridSearchCV(mclv.BernoulliRBM(8, n_iter=5, random_state=0, score_method="likelihood"), grid, cv=2, n_jobs=2)
    search.fit(X)
    assert search.best_params_["learning_rate"] == 0.2
    # Processes find what threads of one process find.
    alone = GridSearchCV(search.estimator, grid, cv=2).fit(X)
    assert np.array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    steps = make_pipeline(mclv.BernoulliRBM(16, random_state=0), LogisticRegression(max_iter=500))
    search = GridSearchCV(steps, {"bernoullirbm__n_iter": [1, 10]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.3


def test_clones_pickles_and_joblib_files_give_the_same(bits, tmp_path):
    rbm = mclv.BernoulliRBM(12, n_iter=2, random_state=4, gradient="lvs", stopping_samples=2).fit(bits)
    expected = rbm.transform(bits)
    assert np.array_equal(clone(rbm).fit(bits).transform(bits), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(rbm)).transform(bits), expected)
    joblib.dump(rbm, tmp_path / "rbm.joblib")
    assert np.array_equal(joblib.load(tmp_path / "rbm.joblib", mmap_mode="r").transform(bits), expected)
    mclv.save(rbm, tmp_path / "rbm.safetensors")
    assert mclv.load(tmp_path / "rbm.safetensors") == rbm.to_model()


def test_the_model_is_the_command_lines_bit_for_bit(cli, digits, tmp_path):
    cli("train", "digits", "--gradient", "pcd", "--k", 1, "--n-hidden", 10, "--epochs", 3, "--batch-size", 20, "--learning-rate", 0.1, "--seed", 11,
        "--output", "run", cwd=tmp_path)  # fmt: skip
    rbm = mclv.BernoulliRBM(10, n_iter=3, batch_size=20, random_state=11).fit(digits.X)
    theirs = mclv.load(tmp_path / "run" / "model.safetensors")
    assert np.array_equal(rbm.components_.T.view(np.uint32), theirs.weights.view(np.uint32))
    assert np.array_equal(rbm.intercept_visible_, theirs.visible_bias)
    assert np.array_equal(rbm.intercept_hidden_, theirs.hidden_bias)


def test_sparse_and_dense_rows_of_any_type_give_the_same(bits):
    fitted = [
        mclv.BernoulliRBM(7, n_iter=2, random_state=1).fit(X).components_
        for X in (bits, bits.astype(bool), bits.astype(float), bits.astype(np.float32), sparse.csr_matrix(bits),
                  sparse.csc_matrix(bits.astype(float)), sparse.csr_array(bits.astype(np.int64)))
    ]  # fmt: skip
    assert all(np.array_equal(components, fitted[0]) for components in fitted)
    rbm = mclv.BernoulliRBM(7, n_iter=2, random_state=1).fit(bits)
    assert rbm.transform(bits.astype(np.float32)).dtype == np.float32
    assert rbm.transform(bits.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("gradient", ["pcd", "cd", "lvs", "tempered"])
def test_grey_sparse_rows_give_what_dense_ones_give(digits, gradient):
    grey = digits.X[:300]
    rbms = [
        mclv.BernoulliRBM(7, n_iter=2, random_state=1, gradient=gradient, eval_every=1).fit(X).partial_fit(X[:30])
        for X in (grey, sparse.csr_matrix(grey), sparse.csc_array(grey.astype(float)))
    ]
    for rbm in rbms[1:]:
        assert np.array_equal(rbm.components_, rbms[0].components_)
        assert [m["train_log_likelihood"] for m in rbm.history_] == [m["train_log_likelihood"] for m in rbms[0].history_]
        X = sparse.csr_array(grey)
        assert np.array_equal(rbm.transform(X), rbm.transform(grey)) and np.array_equal(rbm.score_samples(X), rbm.score_samples(grey))
    steps = [mclv.RBM.sample(rbms[0].to_model(), 300, start=X, burn_in=2) for X in (grey, sparse.csr_array(grey))]
    assert np.array_equal(*steps)


def test_a_sparse_matrix_is_never_expanded_as_a_whole():
    """Training on a sparse matrix takes less memory than a fourth of the dense matrix."""
    code = """
import mclv, numpy as np
from scipy import sparse
X = sparse.random_array((20_000, 20_000), density=1e-4, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
assert mclv.BernoulliRBM(2, n_iter=1, batch_size=1000, random_state=0).fit(X).transform(X[:9]).shape == (9, 2)
# The peak of this program. That of getrusage would begin with the memory of the process that starts it.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 20_000 * 20_000 * 4 / 2**20 / 4, "megabytes"


def test_scores_are_deterministic_and_near_what_scikit_learn_estimates(bits):
    rbm = mclv.BernoulliRBM(10, n_iter=20, random_state=0).fit(bits)
    scores = rbm.score_samples(bits)
    assert np.array_equal(scores, rbm.score_samples(bits))
    theirs = mclv.to_sklearn(rbm)
    estimates = [theirs.set_params(random_state=seed).score_samples(bits.astype(float)).mean() for seed in range(100)]
    error = np.std(estimates) / 10
    # Four standard errors: once in 16,000 seeds.
    assert abs(np.mean(estimates) - scores.mean()) < 4 * error
    assert abs(np.mean(estimates) - 1.1 * scores.mean()) > 4 * error, "the test would not see a factor of 1.1"
    likelihood = rbm.log_likelihood(bits)
    assert likelihood.guarantee == "exact"
    assert np.isclose(rbm.score_samples(bits, method="likelihood").mean(), likelihood.mean)
    assert float(likelihood) < rbm.score(bits)


def test_partial_fit_learns_from_pieces_of_any_size(bits):
    """The likelihood exceeds that of the best model without couplings.

    The library tests the law of pieces.
    """
    rng = np.random.default_rng(0)
    p = bits.mean(0).clip(1e-9, 1 - 1e-9)
    independent = float((p * np.log(p) + (1 - p) * np.log(1 - p)).sum())
    for gradient in ("pcd", "cd", "lvs"):
        rbm = mclv.BernoulliRBM(10, gradient=gradient, learning_rate=0.05, batch_size=32, random_state=0)
        assert rbm.partial_fit(bits[:1]) is rbm
        assert float(rbm.log_likelihood(bits)) < independent
        for _ in range(300):
            n = int(rng.integers(1, 70))
            rbm.partial_fit(bits[rng.permutation(300)[:n]])
        assert float(rbm.log_likelihood(bits)) > independent, gradient


@pytest.mark.parametrize("settings", [{}, {"gradient": "cd", "optimizer": "adam"}, {"gradient": "lvs", "momentum": 0.5}])
def test_partial_fit_goes_on_bit_for_bit_after_unpickling(bits, tmp_path, settings):
    rbm = mclv.BernoulliRBM(10, batch_size=32, random_state=0, **settings).partial_fit(bits[:70])
    joblib.dump(rbm, tmp_path / "rbm.joblib")
    again = [pickle.loads(pickle.dumps(rbm)), copy.deepcopy(rbm), joblib.load(tmp_path / "rbm.joblib")]
    for piece in (bits[70:71], bits[71:200]):
        rbm.partial_fit(piece)
        for other in again:
            other.partial_fit(piece)
            assert np.array_equal(other.components_, rbm.components_)
            assert np.array_equal(other.intercept_visible_, rbm.intercept_visible_)
    forgetful = mclv.BernoulliRBM(10, batch_size=32, random_state=0, **settings).partial_fit(bits[:70])
    forgetful.components_ = forgetful.components_.copy()  # an assigned array is another model
    assert "_feed" not in forgetful.__getstate__()
    assert not np.array_equal(forgetful.partial_fit(bits[70:71]).partial_fit(bits[71:200]).components_, rbm.components_)


def test_partial_fit_goes_on_from_the_model_of_fit(bits):
    rbm = mclv.BernoulliRBM(10, n_iter=30, batch_size=32, random_state=0).fit(bits)
    fitted = rbm.components_
    rbm.set_params(learning_rate=1e-7).partial_fit(bits)
    # Ten updates, none larger than this rate times a gradient of at most 2; and rounding.
    assert rbm.components_ is not fitted and np.abs(rbm.components_ - fitted).max() < 3e-6
    with pytest.raises(ValueError, match="features"):
        rbm.partial_fit(bits[:, :60])


def test_values_outside_are_warned_of_once_or_refused(bits):
    X = bits.astype(float)
    X[3, 5], X[4, 6] = -2.0, 7.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rbm = mclv.BernoulliRBM(4, n_iter=1, random_state=0).fit(X)
    assert len(caught) == 1 and "2 of 19200 values of X lie outside [0, 1] (from -2 to 7)" in str(caught[0].message)
    clipped = mclv.BernoulliRBM(4, n_iter=1, random_state=0).fit(X.clip(0, 1))
    assert np.array_equal(rbm.components_, clipped.components_)
    with pytest.raises(DataError, match="row 4, column 6 is -2"):
        mclv.BernoulliRBM(4, input_range="error").fit(X)
    with pytest.raises(DataError, match="divide by 255"):
        mclv.train(bits * 255, 4)


def test_gibbs_goes_on_with_other_random_numbers(bits):
    rbm = mclv.BernoulliRBM(10, n_iter=5, random_state=0).fit(bits)
    first, second = rbm.gibbs(bits), rbm.gibbs(bits)
    assert first.dtype == bool and first.shape == bits.shape and (first != second).any()
    assert rbm.sample(3, burn_in=10).shape == (3, 64)
    assert np.array_equal(rbm.sample(3, burn_in=10, random_state=1), rbm.to_model().sample(3, burn_in=10, seed=1))


def test_history_and_verbose(bits, capsys):
    rbm = mclv.BernoulliRBM(6, n_iter=4, random_state=0, verbose=1).fit(bits)
    lines = capsys.readouterr().out.splitlines()
    # scikit-learn's line, and the log-likelihood behind it if the epoch was evaluated.
    line = r"\[BernoulliRBM\] Iteration (\d), pseudo-likelihood = (-\d+\.\d\d), time = \d+\.\d\ds(, log-likelihood = -\d+\.\d{3})?"
    found = [re.fullmatch(line, text) for text in lines]
    assert [int(each[1]) for each in found] == [1, 2, 3, 4] and found[-1][3]
    assert abs(float(found[-1][2]) - rbm.score(bits)) < 0.006
    assert [m["epoch"] for m in rbm.history_] == [0, 1, 2, 3, 4] and rbm.history_[-1]["train_log_likelihood"] < 0
    silent = mclv.BernoulliRBM(6, n_iter=4, random_state=0).fit(bits)
    assert "train_log_likelihood" not in silent.history_[-1]
    assert np.array_equal(silent.components_, rbm.components_)


def test_names_and_constructor_are_scikit_learns(bits):
    ours, theirs = mclv.BernoulliRBM().get_params(), Theirs().get_params()
    assert {name: ours[name] for name in theirs} == theirs
    rbm = mclv.BernoulliRBM(2, n_iter=1).fit(bits)
    assert list(rbm.get_feature_names_out()) == ["bernoullirbm0", "bernoullirbm1"]
    for settings in ({"n_components": 0}, {"n_iter": 1.5}, {"input_range": "no"}, {"n_jobs": 0}, {"random_state": "x"}):
        with pytest.raises(SettingError, match=next(iter(settings))):
            mclv.BernoulliRBM(**({"n_components": 2} | settings)).fit(bits)


def test_types_are_scikit_learns(bits):
    for dtype in (np.float32, np.float64, np.float16, int, np.uint8, bool):
        X = bits[:50].astype(dtype)
        ours = mclv.BernoulliRBM(5, n_iter=1, random_state=0).fit(X)
        theirs = Theirs(5, n_iter=1, random_state=0).fit(X)
        for name in ("components_", "intercept_visible_", "intercept_hidden_", "h_samples_"):
            assert getattr(ours, name).dtype == getattr(theirs, name).dtype, (dtype, name)
            assert getattr(ours, name).shape == getattr(theirs, name).shape, (dtype, name)
        assert ours.transform(X).dtype == theirs.transform(X).dtype
        assert ours.gibbs(X).dtype == theirs.gibbs(X).dtype and ours.score_samples(X).shape == theirs.score_samples(X.astype(float)).shape


def test_chains_of_the_estimator(bits):
    rbm = mclv.BernoulliRBM(5, n_iter=2, batch_size=30, random_state=0).fit(bits)
    assert rbm.h_samples_.shape == (30, 5) and set(np.unique(rbm.h_samples_)) == {0, 1}
    before = rbm.h_samples_
    assert rbm.partial_fit(bits[:60]).h_samples_.shape == (30, 5) and rbm.h_samples_ is not before
    theirs = mclv.to_sklearn(rbm)
    assert np.array_equal(theirs.h_samples_, rbm.h_samples_) and theirs.batch_size == 30
    theirs.partial_fit(bits[:30])
    for gradient in ("cd", "exact"):
        assert not hasattr(rbm.set_params(gradient=gradient).fit(bits), "h_samples_")


def test_weights_of_rows_count(bits):
    weights = np.where(np.arange(len(bits)) < 100, 0.0, 1.0)
    weighted = mclv.BernoulliRBM(4, n_iter=200, gradient="exact", random_state=1).fit(bits, sample_weight=weights)
    left_out = mclv.BernoulliRBM(4, n_iter=300, gradient="exact", random_state=1).fit(bits[100:])
    likelihoods = [float(rbm.log_likelihood(bits[100:])) for rbm in (weighted, left_out)]
    assert abs(likelihoods[0] - likelihoods[1]) < 0.2
    ones = mclv.BernoulliRBM(4, n_iter=2, random_state=1).fit(bits, sample_weight=np.ones(len(bits)))
    assert np.abs(ones.components_ - mclv.BernoulliRBM(4, n_iter=2, random_state=1).fit(bits).components_).max() < 1e-5
    for bad in (np.ones(3), -np.ones(len(bits)), np.full(len(bits), np.nan)):
        with pytest.raises(ValueError):
            mclv.BernoulliRBM(4).fit(bits, sample_weight=bad)


def test_a_warm_start_goes_on_from_the_fitted_model(bits):
    rbm = mclv.BernoulliRBM(4, n_iter=3, random_state=1, warm_start=True).fit(bits)
    first = rbm.to_model()
    again = mclv.BernoulliRBM(4, n_iter=3, random_state=1).fit(bits)
    assert np.array_equal(rbm.components_, again.components_), "the first fit begins anew"
    rbm.set_params(learning_rate=1e-12).fit(bits)
    assert np.abs(rbm.to_model().weights - first.weights).max() < 1e-6
    with pytest.raises(SettingError, match="n_components = 5 is not allowed: the fitted model has 4"):
        rbm.set_params(n_components=5).fit(bits)
    cold = rbm.set_params(warm_start=False, n_components=5, learning_rate=0.1).fit(bits)
    assert np.array_equal(cold.components_, mclv.BernoulliRBM(5, n_iter=3, random_state=1).fit(bits).components_)


def test_callbacks_of_the_estimator(bits):
    seen = []
    rbm = mclv.BernoulliRBM(4, n_iter=9, random_state=1, callback=lambda metrics, model: seen.append(model) or len(seen) == 2).fit(bits)
    assert len(seen) == 2 and seen[-1] == rbm.to_model()
    assert clone(rbm).callback is not None


def test_samples_given_units(bits):
    rbm = mclv.BernoulliRBM(4, n_iter=2, random_state=1).fit(bits)
    given = np.full(64, np.nan)
    given[:10] = bits[0, :10]
    assert (rbm.sample(3, given=given)[:, :10] == bits[0, :10]).all()
