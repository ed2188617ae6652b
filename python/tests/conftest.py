"""Data and programs that several tests use. Tests run against the installed wheel."""

import os
import shutil
import subprocess

import mclv
import numpy as np
import pytest


@pytest.fixture(scope="session")
def digits():
    return mclv.datasets.load("digits", split="train")


@pytest.fixture(scope="session")
def bits():
    """Binary digits, few enough for tests."""
    return mclv.datasets.load("digits", split="train", binarize=0.5).X[:300]


@pytest.fixture
def small():
    """A model whose couplings are strong enough for mistakes to show."""
    rng = np.random.default_rng(5)
    return mclv.RBM(rng.normal(size=(6, 4)), rng.normal(size=6), rng.normal(size=4))


@pytest.fixture(scope="session")
def cli():
    """Run the `mclv` program that MCLV_CLI names, or that is on the path."""
    program = os.environ.get("MCLV_CLI") or shutil.which("mclv")
    assert program, "build the command line first (cargo build --release -p mclv-cli) and name it in MCLV_CLI"

    def run(*args, cwd):
        done = subprocess.run([program, *map(str, args)], cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
