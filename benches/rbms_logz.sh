#!/usr/bin/env bash
# log Z of a trained model by tours and AIS, and by the AIS of the PyPI package `rbms`, in one run and on one thread each:
# `MCLV_DATA_DIR=… benches/rbms_logz.sh MODEL EXACT [RUNS]`, EXACT being log Z by `mclv logz --method exact`.
# CPU is processor time of whole commands (for rbms: of the call alone, without loading torch); *for 0.02* is CPU × (rms error / 0.02)²,
# which a busy machine hardly changes.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-target/rbms-venv}
[ -d "$venv" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet rbms; }
export MCLV=${MCLV:-target/release/mclv}
[ -x "$MCLV" ] || cargo build --release --quiet --package mclv-cli
"$venv/bin/python" - "$@" <<'PY'
import importlib.metadata, json, math, os, resource, subprocess, sys, tempfile, time
import numpy as np
import torch
from rbms.bernoulli_bernoulli.classes import BBRBM
from rbms.partition_function.ais import compute_partition_function_ais

model, exact = sys.argv[1], float(sys.argv[2])
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
torch.set_num_threads(1)
torch.set_grad_enabled(False)
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([os.environ["MCLV"], "convert", model, f"{folder}/m.npz"], check=True, stdout=subprocess.DEVNULL)
    arrays = dict(np.load(f"{folder}/m.npz"))
# scikit-learn's names: components_ is (n_hidden, n_visible).
w, b, a = arrays["components_"].T, arrays["intercept_visible_"], arrays["intercept_hidden_"]
rbm = BBRBM(*(torch.tensor(x, dtype=torch.float32) for x in (w, b, a)))

def show(name, results):
    errors = [value - exact for value, _ in results]
    rms = math.sqrt(sum(e * e for e in errors) / len(errors))
    cpu = sum(seconds for _, seconds in results) / len(results)
    mean = sum(errors) / len(errors)
    print(f"{name:42} mean error {mean:+.4f}, rms {rms:.4f}, CPU {cpu:8.2f} s, for 0.02: {cpu * (rms / 0.02) ** 2:9.2f} s", flush=True)

def ours(*flags):
    results = []
    for seed in range(1, runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [os.environ["MCLV"], "logz", model, "--threads", "1", "--json", "--seed", str(seed), *flags]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        results.append((json.loads(text)["estimates"][0]["value"], cpu))
    return results

def theirs(n_chains, n_betas):
    results = []
    for seed in range(1, runs + 1):
        torch.manual_seed(seed)
        begun = time.process_time()
        value = compute_partition_function_ais(n_chains, n_betas, rbm)
        results.append((value, time.process_time() - begun))
    return results

print(f"{w.shape[0]} × {w.shape[1]}, {runs} runs each, one thread; rbms {importlib.metadata.version('rbms')}, torch {torch.__version__}")
show("mclv, target 0.02", ours("--method", "mclv", "--target-se", "0.02"))
show("mclv, target 0.01", ours("--method", "mclv", "--target-se", "0.01"))
show("mclv's AIS, 100 chains × 1,000", ours("--method", "ais", "--n-chains", "100", "--n-betas", "1000"))
show("mclv's AIS, 100 chains × 10,000", ours("--method", "ais", "--n-chains", "100", "--n-betas", "10000"))
show("rbms, AIS, 100 chains × 1,000", theirs(100, 1000))
show("rbms, AIS, 100 chains × 10,000", theirs(100, 10000))
PY
