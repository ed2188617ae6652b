#!/usr/bin/env bash
# Time per epoch beside an RBM written by hand in PyTorch, in one run: `MCLV_DATA_DIR=… benches/torch_epoch.sh [SIZES]`.
# The first run installs PyTorch (gigabytes) into a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-target/torch-venv}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c "import torch, numpy" 2>/dev/null || "$venv/bin/pip" install --quiet torch numpy
cargo build --release --quiet --package mclv-benches
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(32 500)
"$venv/bin/python" benches/torch_epoch.py "${sizes[@]}"
