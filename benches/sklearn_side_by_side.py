"""scikit-learn's BernoulliRBM and mclv's in one run: time per epoch, and the exact log-likelihood reached in equal time.

    scripts/python                                      # builds the wheel and an environment that has it
    MCLV_DATA_DIR=… target/python/venv/bin/python benches/sklearn_side_by_side.py

Times are of whole calls of `fit`, arrays in, divided by the number of epochs, of float32 rows; both have their best number of
threads. In equal time: scikit-learn trains for some epochs, mclv for as long as that took. Both have the best of the same
learning rates by the training likelihood; what is shown is the exact average log-likelihood of rows that neither has seen.
"""

import argparse
import os
import time

import mclv
import numpy as np
import sklearn
from sklearn.neural_network import BernoulliRBM as Theirs
from threadpoolctl import threadpool_limits

RATES = (0.01, 0.05, 0.1, 0.4)


def seconds(fit):
    begun = time.perf_counter()
    result = fit()
    return time.perf_counter() - begun, result


def epoch_times(rows, n_repeats):
    print(f"Seconds per epoch, {len(rows)} binary rows, minibatches of 128, PCD-1 (best of {n_repeats}, in turn)")
    print(f"{'components':>10} {'scikit-learn':>13} {'mclv':>8} {'ratio':>7}")
    for n in (32, 500):
        settings = {"n_components": n, "batch_size": 128, "learning_rate": 0.05, "n_iter": 2, "random_state": 0}
        theirs, ours = [], []
        for _ in range(n_repeats):
            for n_threads in (1, os.cpu_count()):
                with threadpool_limits(n_threads):
                    theirs.append(seconds(lambda: Theirs(**settings).fit(rows))[0] / 2)
                ours.append(seconds(lambda: mclv.BernoulliRBM(**settings, n_jobs=n_threads).fit(rows))[0] / 2)
        print(f"{n:>10} {min(theirs):>13.3f} {min(ours):>8.3f} {min(theirs) / min(ours):>7.1f}", flush=True)


def equal_time(name, train, test, batch_size, n_iter):
    """The exact likelihood of both after the time that scikit-learn takes for `n_iter` epochs."""
    settings = {"n_components": 25, "batch_size": batch_size, "random_state": 0}

    def best(make):
        models = [(rate, make(rate)) for rate in RATES]
        return max(models, key=lambda model: float(mclv.log_likelihood(model[1], train)))

    clock = []
    trials = {}
    for n_threads in (1, os.cpu_count()):
        with threadpool_limits(n_threads):
            trials[n_threads] = seconds(lambda: Theirs(**settings, n_iter=1).fit(train))[0]

    def theirs(rate):
        with threadpool_limits(min(trials, key=trials.get)):
            spent, rbm = seconds(lambda: Theirs(**settings, learning_rate=rate, n_iter=n_iter).fit(train))
        clock.append(spent)
        return rbm

    their_rate, their_model = best(theirs)
    budget = min(clock)
    trial, _ = seconds(lambda: mclv.BernoulliRBM(**settings, n_iter=n_iter).fit(train))
    n_ours = max(1, int(n_iter * budget / trial))
    spent = []

    def ours(rate):
        t, rbm = seconds(lambda: mclv.BernoulliRBM(**settings, learning_rate=rate, n_iter=n_ours).fit(train))
        spent.append(t)
        return rbm

    our_rate, our_model = best(ours)
    for who, model, rate, epochs, t in (
        ("scikit-learn", their_model, their_rate, n_iter, budget),
        ("mclv", our_model, our_rate, n_ours, float(np.mean(spent))),
    ):
        likelihood = mclv.log_likelihood(model, test)
        assert likelihood.log_z.guarantee == "exact"
        print(f"{name:>7} {who:>13} {rate:>6} {epochs:>7} {t:>8.2f} {likelihood.mean:>10.3f} ± {likelihood.std_err_rows:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each timing")
    parser.add_argument("--epochs", type=int, default=10, help="epochs of scikit-learn on MNIST")
    args = parser.parse_args()
    print(f"scikit-learn {sklearn.__version__}, mclv {mclv.__version__} ({mclv.kernels()}), {os.cpu_count()} cores\n")
    bits = {split: mclv.datasets.load("mnist", split=split, binarize=0.5).X for split in ("train", "test")}
    epoch_times(bits["train"].astype(np.float32), args.repeats)
    print("\nExact log-likelihood of unseen rows (nats), 25 components, equal time")
    print(f"{'data':>7} {'':>13} {'rate':>6} {'epochs':>7} {'seconds':>8} {'log-likelihood':>15}")
    digits = {split: mclv.datasets.load("digits", split=split, binarize=0.5).X for split in ("train", "test")}
    equal_time("digits", digits["train"].astype(np.float32), digits["test"].astype(np.float32), 10, 100)
    equal_time("mnist", bits["train"].astype(np.float32), bits["test"].astype(np.float32), 128, args.epochs)


if __name__ == "__main__":
    main()
