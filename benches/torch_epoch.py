"""Seconds per epoch beside an RBM written by hand in PyTorch: MNIST, 55,000 rows, minibatches of 128.

Called by benches/torch_epoch.sh. PyTorch computes with dense float32, so 0/1 rows and grey rows take
the same time. The two programs take turns, three times for each case, because other programs may
disturb either of them. The best time of each counts. PyTorch uses the faster of one thread and all.
Above 500 hidden units an epoch takes a minute, so there is one turn, and no CD-10.
"""

import gzip
import os
import re
import subprocess
import sys
import time

import numpy as np
import torch


def epoch(x, w, b, a, k, chains, rate=0.05, batch=128):
    """One epoch of CD-k (`chains` is None) or PCD-k, in place."""
    for rows in torch.randperm(len(x)).split(batch):
        v0 = x[rows]
        p0 = torch.sigmoid(v0 @ w + a)
        h = torch.bernoulli(p0) if chains is None else chains
        for _ in range(k):
            v = torch.bernoulli(torch.sigmoid(h @ w.T + b))
            p = torch.sigmoid(v @ w + a)
            h = torch.bernoulli(p)
        if chains is not None:
            chains.copy_(h)
        w += rate * (v0.T @ p0 / len(v0) - v.T @ p / len(v))
        b += rate * (v0.mean(0) - v.mean(0))
        a += rate * (p0.mean(0) - p.mean(0))


def main():
    folder = os.environ["MCLV_DATA_DIR"]
    path = next(p for p in (f"{folder}/mnist", folder) if os.path.exists(f"{p}/train-images-idx3-ubyte.gz"))
    raw = gzip.open(f"{path}/train-images-idx3-ubyte.gz").read()
    grey = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784)[5000:].astype(np.float32) / 255
    x = torch.from_numpy(grey)
    torch.set_grad_enabled(False)
    print(f"PyTorch {torch.__version__}; seconds per epoch")
    print("| | PyTorch | `mclv`, 0/1 rows | `mclv`, grey rows | grey / 0/1 |\n|---|---|---|---|---|")
    for n_hidden in map(int, sys.argv[1:]):
        is_small = n_hidden <= 500
        methods = [("CD-1", 1, False), ("PCD-1", 1, True), ("CD-10", 10, False)]
        for name, k, persistent in methods if is_small else methods[:2]:
            peer, ours = [], {"bits": [], "grey": []}
            for _ in range(3 if is_small else 1):
                peer.append(min(torch_seconds(x, n_hidden, k, persistent, n) for n in (1, os.cpu_count())))
                for how, seconds in mclv_seconds(n_hidden, name).items():
                    ours[how].append(seconds)
            peer, bits, grey = min(peer), min(ours["bits"]), min(ours["grey"])
            print(
                f"| {name}, {n_hidden} hidden units | {peer:.3f} | {bits:.3f} ({peer / bits:.1f} ×) "
                f"| {grey:.3f} ({peer / grey:.1f} ×) | {grey / bits:.2f} |",
                flush=True,
            )


def torch_seconds(x, n_hidden, k, persistent, n_threads):
    """The better of two epochs."""
    torch.set_num_threads(n_threads)
    torch.manual_seed(0)
    w = 0.01 * torch.randn(784, n_hidden)
    b, a = torch.zeros(784), torch.zeros(n_hidden)
    chains = torch.bernoulli(torch.full((128, n_hidden), 0.5)) if persistent else None
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        epoch(x, w, b, a, k, chains)
        times.append(time.perf_counter() - begun)
    return min(times)


def mclv_seconds(n_hidden, name):
    """The best epoch of the benchmark `epoch`, for both kinds of rows."""
    command = ["target/release/epoch", str(n_hidden), name, "epochs=4"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {how: float(s) for how, s in re.findall(r"(bits|grey) .* ([0-9.]+) s per epoch", output)}


main()
