#!/usr/bin/env bash
# Strong and weak scaling over MPI ranks on this machine, as ratios in one run: `MCLV_DATA_DIR=… benches/ranks.sh`.
# Prints the tables of docs/background/scaling.md. A rank has one thread; "1 × 2" is one rank with two threads.
set -euo pipefail
cd "$(dirname "$0")/.."
export MCLV=${MCLV:-target/release/mclv}
[ -n "${BUILT:-}" ] || cargo build --release --quiet --package mclv-cli --features mpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
python3 - <<'PY'
import json, os, re, signal, subprocess, tempfile, time

MCLV = os.environ["MCLV"]
LAYOUTS = [(1, 1), (1, 2), (2, 1), (4, 1)]

def mclv(ranks, threads, *args):
    command = ["mpirun", "-n", str(ranks), MCLV, *map(str, args), "--threads", str(threads), "--json", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    sent = re.search(r"rank 0 of \d+: (\d+) exchanges, (\d+) bytes", done.stderr)
    return json.loads(done.stdout), (int(sent[1]), int(sent[2])) if sent else (0, 0)

def best(n, work):
    return min((work() for _ in range(n)), key=lambda result: result[0])

def row(name, results, digits=2):
    base = results[0][0]
    cells = [f"{seconds:.{digits}f} s ({base / seconds:.2f})" for seconds, _ in results]
    calls, sent = results[2][1]
    print(f"| {name} | " + " | ".join(cells) + f" | {calls:,} | {sent / max(calls, 1) / 1e3:,.1f} kB |", flush=True)

with tempfile.TemporaryDirectory() as folder:
    def init(hidden, epochs=0):
        path = f"{folder}/m{hidden}"
        subprocess.run([MCLV, "train", "mnist", "--n-hidden", str(hidden), "--epochs", str(epochs), "--no-report", "--eval-every",
                        "1000", "--output", path], check=True, capture_output=True)
        return f"{path}/model.safetensors"

    print("| | 1 × 1 | 1 × 2 | 2 × 1 | 4 × 1 | exchanges | from each |\n|---|---|---|---|---|---|---|", flush=True)
    m27, m32 = init(27, 1), init(32, 5)

    def logz(ranks, threads, method, *flags):
        def once():
            result, sent = mclv(ranks, threads, "logz", m27 if method == "exact" else m32, "--method", method, *flags)
            return result["estimates"][0]["seconds"], sent
        return best(3, once)

    row("exact log Z, 784 × 27", [logz(r, t, "exact") for r, t in LAYOUTS])
    tours = ["--n-tours", 400_000, "--max-steps", 4_000_000_000]
    row("tours, 784 × 32", [logz(r, t, "mclv", *tours) for r, t in LAYOUTS])
    ais = ["--n-chains", 256, "--n-betas", 4000]
    row("AIS, 256 chains", [logz(r, t, "ais", *ais) for r, t in LAYOUTS])

    def train(ranks, threads, hidden, batch, n):
        """Seconds of an epoch, the first left out; stopped before the last, which would be evaluated."""
        out = tempfile.mkdtemp(dir=folder)
        metrics = f"{out}/run/metrics.jsonl"
        flags = ["--n-hidden", hidden, "--k", 1, "--batch-size", batch, "--eval-every", 1000, "--epochs", 1000]
        command = ["mpirun", "-n", str(ranks), MCLV, "train", "mnist", "--binarize", "threshold=0.5", *map(str, flags),
                   "--threads", str(threads), "--no-report", "--output", f"{out}/run", "-v"]
        job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        seconds = []
        while len(seconds) < n:
            time.sleep(0.05)
            if os.path.exists(metrics):
                lines = open(metrics).read().split("\n")[:-1]
                seconds = [json.loads(line)["seconds"] for line in lines]
        for rank in subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True).stdout.split():
            os.kill(int(rank), signal.SIGTERM)
        sent = re.search(r"rank 0 of \d+: (\d+) exchanges, (\d+) bytes", job.communicate()[1])
        return min(b - a for a, b in zip(seconds, seconds[1:])), (int(sent[1]), int(sent[2]))

    for hidden, batch, n in ((32, 128, 20), (500, 128, 6), (500, 1024, 6)):
        row(f"PCD-1 epoch, {hidden} hidden, minibatch {batch}", [train(r, t, hidden, batch, n) for r, t in LAYOUTS], digits=3)

    print("\nWeak scaling, the work grows with the ranks:\n\n| | 1 | 2 | 2 against 1 |\n|---|---|---|---|", flush=True)
    for name, method, flags in (("tours, 200,000 a rank", "mclv", lambda r: ["--n-tours", 200_000 * r, "--max-steps", 4_000_000_000]),
                                ("AIS, 128 chains a rank", "ais", lambda r: ["--n-chains", 128 * r, "--n-betas", 4000])):
        one, two = (logz(r, 1, method, *flags(r))[0] for r in (1, 2))
        print(f"| {name} | {one:.2f} s | {two:.2f} s | {one / two:.2f} |", flush=True)
PY
