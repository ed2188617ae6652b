#!/usr/bin/env bash
# Time per epoch beside scikit-learn's BernoulliRBM, in one run: `MCLV_DATA_DIR=… benches/sklearn_epoch.sh`.
# 55,000 rows of MNIST, minibatches of 128; scikit-learn (dense: the values do not matter to it) in float32 with its best
# number of threads.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-target/bench-venv}
[ -d "$venv" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet scikit-learn threadpoolctl; }
cargo build --release --quiet --package mclv-benches
"$venv/bin/python" - <<'PY'
import gzip, os, time
import numpy as np
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits
import sklearn

folder = os.environ["MCLV_DATA_DIR"]
path = next(p for p in (f"{folder}/mnist", folder) if os.path.exists(f"{p}/train-images-idx3-ubyte.gz"))
raw = gzip.open(f"{path}/train-images-idx3-ubyte.gz").read()
grey = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784)[5000:].astype(np.float32) / 255
rows = (grey >= 0.5).astype(np.float32)
for n_hidden in (32, 500):
    best = {}
    for threads in (1, os.cpu_count()):
        with threadpool_limits(threads):
            rbm = BernoulliRBM(n_components=n_hidden, batch_size=128, learning_rate=0.05, n_iter=1, random_state=0)
            times = []
            for _ in range(3):
                begun = time.perf_counter()
                rbm.fit(rows)
                times.append(time.perf_counter() - begun)
            best[threads] = min(times)
    times = ", ".join(f"{t} threads {s:.3f} s" for t, s in best.items())
    print(f"784 × {n_hidden:<4} scikit-learn {sklearn.__version__} PCD-1   {min(best.values()):7.3f} s per epoch ({times})")
PY
cargo run --release --quiet --package mclv-benches --bin epoch -- 32 500 "$@"
