"""Seconds per epoch of an RBM written by hand in PyTorch: MNIST, 55,000 rows, minibatches of 128.

Called by benches/torch_epoch.sh. PyTorch computes with dense float32, so 0/1 rows and grey rows take
the same time. Each case is timed with one thread and with all, and the faster one counts.
"""

import gzip
import os
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
    for n_hidden in map(int, sys.argv[1:]):
        for name, k, persistent in (("CD-1", 1, False), ("PCD-1", 1, True), ("CD-10", 10, False)):
            best = {}
            for threads in (1, os.cpu_count()):
                torch.set_num_threads(threads)
                torch.manual_seed(0)
                w = 0.01 * torch.randn(784, n_hidden)
                b, a = torch.zeros(784), torch.zeros(n_hidden)
                chains = torch.bernoulli(torch.full((128, n_hidden), 0.5)) if persistent else None
                times = []
                for _ in range(3 if k == 1 else 2):
                    begun = time.perf_counter()
                    epoch(x, w, b, a, k, chains)
                    times.append(time.perf_counter() - begun)
                best[threads] = min(times)
            seconds = min(best.values())
            print(f"torch {torch.__version__} 784 × {n_hidden:<4} {name:<6} {seconds:7.3f} s per epoch", flush=True)


main()
