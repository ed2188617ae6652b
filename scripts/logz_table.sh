#!/usr/bin/env bash
# The tables of docs/background/log-z.md: log Z of trained MNIST models by every method against enumeration.
# `MCLV_DATA_DIR=… [EPOCHS=100] scripts/logz_table.sh [HIDDEN …]`, 25 and 32 hidden units if none are given; models and exact values are kept in
# target/logz and not made again.
set -euo pipefail
cd "$(dirname "$0")/.."
mclv=${MCLV:-target/release/mclv}
[ -x "$mclv" ] || cargo build --release --quiet --package mclv-cli
out=${OUT:-target/logz}
mkdir -p "$out"

train() { # name, then flags of `mclv train`
    local run=$out/$1
    shift
    [ -f "$run/model.safetensors" ] && [ -f "$run.done" ] && return
    rm -rf "$run"
    "$mclv" train mnist "$@" --epochs "${EPOCHS:-100}" --seed 1 --output "$run" >"$run.log" 2>&1 && touch "$run.done"
}

[ $# -gt 0 ] || set -- 25 32
for hidden in "$@"; do
    train "paper-$hidden" --n-hidden "$hidden" --preset paper --gradient lvs --starts weighted
    train "pcd-$hidden" --n-hidden "$hidden" --gradient pcd --k 3
    train "carry-$hidden" --n-hidden "$hidden" --gradient lvs --k 1 --row-fraction 1 --learning-rate 0.2
    for name in paper pcd carry; do
        model=$out/$name-$hidden
        ask() { "$mclv" logz "$model/model.safetensors" --seed 1 --json "$@"; }
        [ -f "$model.exact.json" ] || { ask --method exact >"$model.tmp" && mv "$model.tmp" "$model.exact.json"; }
        ask --method mclv,ais,reverse-ais,bar --target-se 0.02 >"$model.all.json"
        ask --method mclv --visible mean-field --n-tours 20000 >"$model.mean-field.json"
    done
    python3 - "$out" "$hidden" <<'PY'
import json, sys
out, hidden = sys.argv[1:]
print(f"\n{hidden} hidden units:\n")
print("| model | method | log Z | error | error bar | 95 % interval − exact | steps | seconds |")
print("|---|---|---|---|---|---|---|---|")
for name in ("paper", "pcd", "carry"):
    read = lambda what: json.load(open(f"{out}/{name}-{hidden}.{what}.json"))["estimates"]
    exact = read("exact")[0]
    print(f"| {name} | exact | {exact['value']:.4f} | | | | 2^{hidden} states | {exact['seconds']:.1f} |")
    rows = [(e["method"], e) for e in read("all")]
    rows.insert(1, ("mclv, mean field", read("mean-field")[0]))
    for label, e in rows:
        interval = e.get("interval")
        ends = " … ".join(f"{x - exact['value']:+.3f}" for x in interval) if interval else "declined"
        cells = (f"{e['value']:.4f}", f"{e['value'] - exact['value']:+.4f}", f"{e['std_err']:.4f}", ends,
                 f"{e['n_states']:,.0f}", f"{e['seconds']:.1f}")
        print(f"| | {label} | " + " | ".join(cells) + " |")
PY
done
