"""scikit-learn's own tests of its BernoulliRBM, run against ours.

`DIFFERENCES` lists every test that ours does not pass, with the reason. Such a test must fail: if it passes, its line is wrong.
"""

import inspect
import types

import mclv
import numpy as np
import pytest

theirs = pytest.importorskip("sklearn.neural_network.tests.test_rbm")

GREY = (
    "for a grey value x, our pseudo-likelihood has x log p(1) + (1 - x) log p(0); theirs compares x with 1 - x. With their score, our "
    "models pass (test_our_models_pass_with_their_score)"
)
DIFFERENCES = {
    "test_fit": GREY,
    "test_partial_fit": GREY,
    "test_fit_gibbs": "the test compares weights with those of NumPy's random numbers; ours are other random numbers",
}


def ours(test):
    """The same test with our estimator in place of theirs."""
    names = vars(theirs) | {"BernoulliRBM": mclv.BernoulliRBM}
    copy = types.FunctionType(test.__code__, names, test.__name__, test.__defaults__, test.__closure__)
    copy.__doc__, copy.pytestmark = test.__doc__, list(getattr(test, "pytestmark", []))
    if test.__name__ in DIFFERENCES:
        copy.pytestmark.append(pytest.mark.xfail(strict=True, reason=DIFFERENCES[test.__name__]).mark)
    return copy


TESTS = {name: ours(test) for name, test in vars(theirs).items() if name.startswith("test_") and inspect.isfunction(test)}
globals().update(TESTS)


def their_score(estimator, X):
    """What scikit-learn's `score_samples` estimates, over 20 seeds."""
    same = mclv.to_sklearn(estimator)
    return np.mean([same.set_params(random_state=seed).score_samples(X).mean() for seed in range(20)])


def test_our_models_pass_with_their_score():
    """The settings and the limits are those of `test_fit` and `test_partial_fit`."""
    X = theirs.Xdigits.copy()
    fitted = mclv.BernoulliRBM(n_components=64, learning_rate=0.1, batch_size=10, n_iter=7, random_state=9).fit(X)
    assert abs(their_score(fitted, X) + 21) < 1.5 and np.array_equal(X, theirs.Xdigits)
    in_pieces = mclv.BernoulliRBM(n_components=64, learning_rate=0.1, batch_size=20, random_state=9)
    for _ in range(7):
        for piece in np.array_split(X, -(-len(X) // 20)):
            in_pieces.partial_fit(piece)
    assert abs(their_score(in_pieces, X) + 21) < 1.5
    # The limit would see a model that has learnt nothing but the biases.
    assert abs(their_score(mclv.RBM(np.zeros((64, 1)), fitted.intercept_visible_, [0]), X) + 21) > 1.5


def test_gibbs_restores_what_it_was_fitted_to():
    """The other half of `test_fit_gibbs`: rows come back, and sparse rows give the same model."""
    for container in [np.array, *theirs.CSC_CONTAINERS]:
        X = container([[0.0], [1.0]])
        rbm = mclv.BernoulliRBM(n_components=2, batch_size=2, n_iter=42, random_state=0).fit(X)
        dense = mclv.BernoulliRBM(n_components=2, batch_size=2, n_iter=42, random_state=0).fit(np.array([[0.0], [1.0]]))
        assert np.array_equal(rbm.components_, dense.components_)
        assert np.array_equal(rbm.gibbs(X), dense.gibbs(np.array([[0.0], [1.0]])))


def test_the_list_names_their_tests():
    assert len(TESTS) >= 10 and set(DIFFERENCES) <= set(TESTS)
