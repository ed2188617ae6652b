"""scikit-learn's BernoulliRBM and mclv's in one run: time per epoch, and the exact log-likelihood reached in equal time.

    scripts/python                                      # builds the wheel and an environment that has it
    MCLV_DATA_DIR=… target/python/venv/bin/python benches/sklearn_side_by_side.py >table.md

Prints the table of docs/coming-from/scikit-learn.md, and to standard error how far it is. Times are of whole calls of `fit`,
arrays in, divided by the number of epochs, of float32 rows; both have their best number of threads. In equal time: scikit-learn
trains for some epochs, mclv for as long as that took. Both have the best of the same learning rates by the training likelihood;
what is shown is the exact average log-likelihood of rows that neither has seen.
"""

import argparse
import os
import sys
import time

import mclv
import numpy as np
import sklearn
from sklearn.neural_network import BernoulliRBM as Theirs
from threadpoolctl import threadpool_limits

RATES = (0.01, 0.05, 0.1, 0.4)


def say(text):
    print(text, file=sys.stderr, flush=True)


def seconds(fit):
    begun = time.perf_counter()
    result = fit()
    return time.perf_counter() - begun, result


def epoch_time(rows, n_components, n_repeats, n_iter=5):
    """Return the seconds per epoch of both programs: the best of several calls, made in turn."""
    settings = {"n_components": n_components, "batch_size": 128, "learning_rate": 0.05, "n_iter": n_iter, "random_state": 0}
    theirs, ours = [], []
    for _ in range(n_repeats):
        for n_threads in sorted({1, os.cpu_count()}):
            with threadpool_limits(n_threads):
                theirs.append(seconds(lambda: Theirs(**settings).fit(rows))[0] / n_iter)
            ours.append(seconds(lambda: mclv.BernoulliRBM(**settings, n_jobs=n_threads).fit(rows))[0] / n_iter)
    say(f"{n_components} components: scikit-learn {theirs}, mclv {ours}")
    return min(theirs), min(ours)


def best_rate(make, train):
    models = [(rate, make(rate)) for rate in RATES]
    return max(models, key=lambda model: float(mclv.log_likelihood(model[1], train)))


def equal_time(train, test, batch_size, n_iter):
    """Likelihood, learning rate, epochs and seconds of both, after the time that scikit-learn takes for `n_iter` epochs."""
    settings = {"n_components": 25, "batch_size": batch_size, "random_state": 0}
    trials = {}
    for n_threads in sorted({1, os.cpu_count()}):
        with threadpool_limits(n_threads):
            trials[n_threads] = seconds(lambda: Theirs(**settings, n_iter=1).fit(train))[0]
    their_seconds, our_seconds = [], []

    def theirs(rate):
        with threadpool_limits(min(trials, key=trials.get)):
            spent, rbm = seconds(lambda: Theirs(**settings, learning_rate=rate, n_iter=n_iter).fit(train))
        their_seconds.append(spent)
        return rbm

    their_rate, their_model = best_rate(theirs, train)
    budget = min(their_seconds)
    per_epoch = seconds(lambda: mclv.BernoulliRBM(**settings, n_iter=n_iter).fit(train))[0] / n_iter
    n_ours = max(1, int(budget / per_epoch))

    def ours(rate):
        spent, rbm = seconds(lambda: mclv.BernoulliRBM(**settings, learning_rate=rate, n_iter=n_ours).fit(train))
        our_seconds.append(spent)
        return rbm

    our_rate, our_model = best_rate(ours, train)
    results = []
    for model, rate, epochs, spent in ((their_model, their_rate, n_iter, budget), (our_model, our_rate, n_ours, np.mean(our_seconds))):
        likelihood = mclv.log_likelihood(model, test)
        assert likelihood.log_z.guarantee == "exact"
        results.append((likelihood, rate, epochs, float(spent)))
    say(f"25 components, equal time: {results}")
    return results


def minus(text):
    return text.replace("-", "−")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each timing")
    parser.add_argument("--epochs", type=int, default=10, help="epochs of scikit-learn on MNIST")
    args = parser.parse_args()
    load = " ".join(f"{x:.2f}" for x in os.getloadavg())
    say(f"mclv {mclv.__version__} ({mclv.kernels()}), {os.cpu_count()} cores, load {load}")

    def rows(name):
        splits = (mclv.datasets.load(name, split=split, binarize=0.5) for split in ("train", "test"))
        return [part.X.astype(np.float32) for part in splits]

    mnist, digits = rows("mnist"), rows("digits")
    print(f"| | scikit-learn {sklearn.__version__} | mclv | |")
    print("|---|---|---|---|")
    for n in (32, 500):
        theirs, ours = epoch_time(mnist[0], n, args.repeats)
        print(f"| seconds per epoch, MNIST, {n} components | {theirs:.3f} | {ours:.3f} | {theirs / ours:.1f} times as fast |", flush=True)
    for name, data, batch_size, n_iter in (("digits", digits, 10, 100), ("MNIST", mnist, 128, args.epochs)):
        both = equal_time(*data, batch_size, n_iter)
        cells = [
            f"{minus(f'{value.mean:.2f}')} ± {value.std_err_rows:.2f} ({epochs} epochs, {spent:.2f} s, rate {rate})"
            for value, rate, epochs, spent in both
        ]
        gained = minus(f"{both[1][0].mean - both[0][0].mean:+.1f}")
        print(f"| exact log-likelihood of test rows, {name} cut at 0.5, 25 components | {cells[0]} | {cells[1]} | {gained} nats |", flush=True)


if __name__ == "__main__":
    main()
