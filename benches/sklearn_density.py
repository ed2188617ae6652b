"""scikit-learn's BernoulliRBM on the sets of `mclv reproduce density`, tuned by its own score.

    MCLV=target/release/mclv python benches/sklearn_density.py FOLDER [SET …]

For each set, trains with 25 hidden units and every setting of GRID, on one thread. The score of the
validation rows (`score_samples`, a random estimate of the pseudo-likelihood) chooses the setting and
the number of epochs. Test rows are not read. FOLDER then holds, for each of SEEDS, the model of the
chosen setting as `SET.scikit-learn.SEED.npz`, models along the way of the first seed as
`SET.scikit-learn.SEED.EPOCH.npz`, and the settings and times as `SET.scikit-learn.json`.
`mclv reproduce density --models FOLDER` evaluates them.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import sklearn
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

MCLV = os.environ.get("MCLV", "mclv")
SETS = ("nltcs plants baudio jester bnetflix accidents mushrooms pumsb_star dna nips genome805").split()
N_HIDDEN = 25
# Batch size and learning rate. 10 rows and 0.1 are the defaults.
GRID = [(10, 0.01), (10, 0.03), (10, 0.1), (128, 0.03), (128, 0.1), (128, 0.3)]
# Every setting gets as many updates as the default of mclv, and 30 epochs at least.
N_UPDATES, N_EPOCHS = 10_000, 30
SEEDS = (0, 1, 2)


def rows_of(name, part):
    """The rows of a part of a set, as mclv divides it."""
    command = [MCLV, "data", "show", name, "--split", part, "--rows", "1000000", "--json"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return np.array(json.loads(shown)["first_rows"], np.float32)


class Watched(BernoulliRBM):
    """`BernoulliRBM.fit` unchanged, with a look at the model after some epochs."""

    def fit(self, rows, look):
        self._look, self._updates, self._per_epoch = look, 0, math.ceil(len(rows) / self.batch_size)
        self._clock, self._spent = time.process_time(), 0.0
        return super().fit(rows)

    def _fit(self, batch, rng):
        super()._fit(batch, rng)
        self._updates += 1
        if self._updates % self._per_epoch == 0:
            self._spent += time.process_time() - self._clock
            self._look(self, self._updates // self._per_epoch, self._spent)
            self._clock = time.process_time()


def is_looked_at(epoch, last):
    """1, 2, 5, 10, 20, 50, … and the last epoch."""
    return epoch == last or epoch in [m * 10**e for e in range(5) for m in (1, 2, 5)]


def train(rows, batch_size, rate, epochs, seed):
    """Models after some epochs, each with the seconds of one core that it took."""
    found = []

    def look(rbm, epoch, seconds):
        if is_looked_at(epoch, epochs):
            arrays = (rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_)
            found.append((epoch, seconds, [a.astype(np.float32) for a in arrays]))

    rbm = Watched(N_HIDDEN, learning_rate=rate, batch_size=batch_size, n_iter=epochs, random_state=seed)
    rbm.fit(rows, look)
    return rbm, found


def score(rbm, arrays, rows):
    rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_ = arrays
    scores = []
    for rbm.random_state in range(5):
        scores.append(rbm.score_samples(rows).mean())
    return float(np.mean(scores))


def save(path, arrays):
    names = ("components_", "intercept_visible_", "intercept_hidden_")
    np.savez(path, **dict(zip(names, arrays)))


def study(output, name):
    rows, validation = rows_of(name, "train"), rows_of(name, "validation")
    tried, tuning = [], 0.0
    for batch_size, rate in GRID:
        epochs = max(N_EPOCHS, math.ceil(N_UPDATES / math.ceil(len(rows) / batch_size)))
        rbm, found = train(rows, batch_size, rate, epochs, SEEDS[0])
        tuning += found[-1][1]
        for epoch, seconds, arrays in found:
            if all(np.isfinite(a).all() for a in arrays):
                tried.append((score(rbm, arrays, validation), batch_size, rate, epoch))
    best, batch_size, rate, epochs = max(tried)
    models = []
    for seed in SEEDS:
        _, found = train(rows, batch_size, rate, epochs, seed)
        for epoch, seconds, arrays in found:
            if epoch == epochs:
                file = f"{name}.scikit-learn.{seed}.npz"
            elif seed == SEEDS[0]:
                file = f"{name}.scikit-learn.{seed}.{epoch}.npz"
            else:
                continue
            save(output / file, arrays)
            models.append({"file": file, "seed": seed, "epoch": epoch, "seconds": seconds, "final": epoch == epochs})
    record = {
        "package": f"scikit-learn {sklearn.__version__}",
        "settings": {"n_components": N_HIDDEN, "batch_size": batch_size, "learning_rate": rate, "n_iter": epochs},
        "score": best,
        "tuning_seconds": tuning,
        "models": models,
    }
    (output / f"{name}.scikit-learn.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"{name}: batch {batch_size}, rate {rate}, {epochs} epochs, score {best:.3f}, tuning {tuning:.1f} s", flush=True)


if __name__ == "__main__":
    output = pathlib.Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        for name in sys.argv[2:] or SETS:
            if not (output / f"{name}.scikit-learn.json").exists():
                study(output, name)
