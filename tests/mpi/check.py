"""Run `mclv` under mpirun and compare what comes out, byte for byte where it is not a time."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = os.environ["PROGRAM"]
ENV = {
    **os.environ,
    # Containers run as root, and have fewer cores than ranks.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}
TIMES = {"seconds", "evaluation_seconds", "core_seconds", "begun", "time"}


def command(ranks, *args):
    """The command line for this number of ranks; without mpirun if it is 0."""
    return [*(["mpirun", "-n", str(ranks)] if ranks else []), PROGRAM, *map(str, args), "--threads", "1"]


def run(ranks, *args):
    done = subprocess.run(command(ranks, *args), env=ENV, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{ranks} ranks, {args}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def timeless(value):
    """JSON without times and names of folders."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in TIMES | {"run", "model", "report", "folder"}}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def same(what, results):
    first = results[0]
    for ranks, result in zip((0, 1, 2, 4), results):
        assert result == first, f"{what}: {ranks} ranks give {result!r}\ninstead of {first!r}"
    print(f"the same for no MPI, 1, 2 and 4 ranks: {what}")


def trained(folder):
    """Return the digest of a run's model, and its metrics without times."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return (
        hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        [timeless(json.loads(line)) for line in lines],
    )


def results_do_not_depend_on_ranks(tmp):
    estimators = {
        "pcd": ["--n-hidden", 70, "--n-chains", 300],
        "cd": ["--gradient", "cd", "--n-hidden", 20, "--binarize", "threshold=0.5"],
        "carry": ["--gradient", "lvs", "--n-hidden", 12, "--n-chains", 150],
        "paper": ["--preset", "paper", "--gradient", "lvs", "--n-hidden", 12, "--warm-up-epochs", 1],
        "tempered": ["--gradient", "tempered", "--n-hidden", 70, "--n-chains", 20, "--n-rungs", 7],
        "exact": ["--gradient", "exact", "--n-hidden", 8],
    }
    for name, flags in estimators.items():
        results = []
        for ranks in (0, 1, 2, 4):
            folder = tmp / f"{name}-{ranks}"
            run(ranks, "train", "digits", *flags, "--epochs", 3, "--batch-size", 200, "--eval-every", 2, "--output", folder)
            assert not list(folder.glob("**/.mclv-*")), "a half-written file is left"
            results.append(trained(folder))
        same(f"training by {name}", results)

    results = []
    run(0, "sample", tmp / "carry-0" / "model.safetensors", "-n", 500, "--burn-in", 20, "--output", tmp / "rows.npy")
    for ranks in (0, 1, 2, 4):
        folder = tmp / f"file-{ranks}"
        run(ranks, "train", tmp / "rows.npy", "--n-hidden", 8, "--epochs", 2, "--batch-size", 100, "--output", folder)
        results.append(trained(folder))
    same("training on a file of which each rank reads its part", results)

    model = tmp / "carry-0" / "model.safetensors"
    small = ["--n-tours", 4000, "--n-chains", 100, "--n-betas", 100, "--n-ladders", 4, "--ladder-steps", 100]
    asked = {
        "log Z by every method": ["logz", model, "--method", "exact,mclv,ladder,ais,reverse-ais,bar", *small],
        "likelihood": ["likelihood", model, "--split", "train,test", "--pseudo"],
        "tours": ["tours", model, "--n-tours", 3000, "--samples-per-row", "1,2"],
        "features": ["transform", model, "--force", "--output"],
        "samples": ["sample", model, "-n", 150, "--burn-in", 20, "--force", "--output"],
        "tempered samples": [
            *("sample", model, "-n", 50, "--method", "tempering", "--burn-in", 100, "--force", "--output")
        ],
        "exact samples": ["sample", model, "-n", 150, "--method", "exact", "--force", "--output"],
    }
    for what, args in asked.items():
        results = []
        for ranks in (0, 1, 2, 4):
            if args[-1] == "--output":
                out = tmp / f"{args[0]}.npy"
                run(ranks, *args, out)
                results.append(out.read_bytes())
            else:
                results.append(timeless(json.loads(run(ranks, *args, "--json"))))
        same(what, results)

    results = []
    for ranks in (0, 1, 2, 4):
        folder = tmp / f"reproduce-{ranks}"
        run(ranks, "reproduce", "inspection", "--quick", "--seeds", 2, "--data", "digits", "--output", folder)
        # All but the time that it took.
        results.append((folder / "inspection.md").read_text().split(" runs,")[0])
    same("reproduce inspection", results)


def a_killed_rank_ends_the_job_and_fewer_ranks_go_on(tmp):
    flags = ["digits", "--n-hidden", 16, "--epochs", 300, "--batch-size", 200, "--eval-every", 100, "--checkpoint-every", 1]
    run(0, "train", *flags, "--output", tmp / "whole")
    folder = tmp / "killed"
    job = subprocess.Popen(command(4, "train", *flags, "--output", folder), env=ENV, stderr=subprocess.PIPE, text=True)
    metrics = folder / "metrics.jsonl"
    until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 3, "the first epochs")
    ranks = subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True).stdout.split()
    assert len(ranks) == 4, f"the children of mpirun: {ranks}"
    os.kill(int(ranks[2]), signal.SIGKILL)
    _, said = job.communicate(timeout=60)
    assert job.returncode != 0 and "rank" in said and "signal 9" in said, (job.returncode, said)
    assert not (folder / "model.safetensors").exists(), "it was killed too late to tell anything"
    run(2, "train", "--resume", folder)
    assert trained(folder)[0] == trained(tmp / "whole")[0], "2 ranks resumed the run to another model"
    print("a killed rank ends the job; 2 ranks go on from the checkpoint of 4 to the same model")


def a_stopped_job_is_gone_on_with(tmp):
    folder = tmp / "stopped"
    flags = ["digits", "--n-hidden", 16, "--epochs", 300, "--batch-size", 200, "--eval-every", 100]
    job = subprocess.Popen(command(2, "train", *flags, "--output", folder), env=ENV, stderr=subprocess.PIPE, text=True)
    metrics = folder / "metrics.jsonl"
    until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 3, "the first epochs")
    for rank in subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True).stdout.split():
        os.kill(int(rank), signal.SIGTERM)
    _, said = job.communicate(timeout=60)
    assert job.returncode == 130 and "--resume" in said, (job.returncode, said)
    run(4, "train", "--resume", folder)
    assert trained(folder)[0] == trained(tmp / "whole")[0], "4 ranks resumed the run to another model"
    print("a job that is told to stop says how to go on; 4 ranks do, to the same model")


def jobs(*parts, env=ENV):
    """Run a job of one rank for each part: a folder to start in, the program, and its arguments."""
    ranks = [["-n", "1", "-wdir", str(folder), str(program), *map(str, args)] for folder, program, args in parts]
    line = ["mpirun", *[word for rank in ranks for word in (":", *rank)][1:]]
    return subprocess.run(line, env=env, capture_output=True, text=True, timeout=60)


def who_cannot_read_stops_all(tmp):
    # The same arguments in two folders, of which one lacks a file: as on a machine without the shared disk.
    here, there = tmp / "here", tmp / "there"
    for folder in (here, there):
        folder.mkdir()
    shutil.copy(tmp / "carry-0" / "model.safetensors", here / "m.safetensors")
    shutil.copy(tmp / "rows.npy", here / "rows.npy")
    model = tmp / "carry-0" / "model.safetensors"
    for args in (["logz", "m.safetensors", "--method", "exact"], ["likelihood", model, "--data", "rows.npy"]):
        done = jobs((here, PROGRAM, args), (there, PROGRAM, args))
        assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
        assert "rank 1" in done.stderr and "cannot read" in done.stderr, done.stderr
        assert not done.stdout, done.stdout
    print("a rank that cannot read its file, of a model or of data, stops all, and says so")
    wrong = {**ENV, "PMI_SIZE": "3"}
    done = subprocess.run([PROGRAM, "data", "list"], env=wrong, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "started 3 processes, but MPI knows only 1" in done.stderr, done
    print("a launcher that MPI does not know is refused")


def ranks_that_disagree_end_at_once(tmp):
    """Another seed, rate, method, or file of the same size: an error, exit code 1, no model."""
    folders = [tmp / "rank-0", tmp / "rank-1"]
    for k, folder in enumerate(folders):
        folder.mkdir()
        run(0, "sample", tmp / "carry-0" / "model.safetensors", "-n", 500, "--seed", k, "--output", folder / "rows.npy")
        (folder / "settings.toml").write_text(f"[train]\nn-hidden = 8\nlearning-rate = 0.{k + 1}\nepochs = 2\n")
        run(0, "train", "bars-and-stripes:3", "--n-hidden", 3, "--epochs", 2, "--seed", k, "--output", folder / "run")
        shutil.copy(tmp / "rows.npy", folder / "same.npy")
    assert len({(folder / "rows.npy").stat().st_size for folder in folders}) == 1
    train = ["train", "digits", "--n-hidden", 8, "--epochs", 2, "--output", "trained"]
    model = ["run/model.safetensors"]
    cases = [
        ("--seed is 1, not 0", [[*train, "--seed", seed] for seed in (0, 1)]),
        ("--learning-rate is 0.2, not 0.1", [[*train, "--learning-rate", rate] for rate in (0.1, 0.2)]),
        ("--gradient is exact, not pcd", [[*train, "--gradient", name] for name in ("pcd", "exact")]),
        ("the command is likelihood, not logz", [["logz", *model], ["likelihood", *model]]),
        ("train.learning-rate is 0.2, not 0.1", [["train", "digits", "--config", "settings.toml", "--output", "trained"]]),
        ("rows.npy: has another content for rank 1", [["train", "rows.npy", "--n-hidden", 8, "--output", "trained"]]),
        ("rank 1 differs", [["train", "--resume", "run"]]),
        *[
            ("the model of run/model.safetensors is", [[command, *model, *more]])
            for command, *more in (
                ["logz"],
                ["likelihood"],
                ["tours", "--n-tours", 100],
                ["modes"],
                ["sample", "-n", 10, "--output", "s.npy"],
                ["transform", "--output", "f.npy"],
            )
        ],
        ("rows.npy: has another content", [["reproduce", "digits", "--quick", "--data", "rows.npy"]]),
        ("rows.npy: has another content", [["sweep", "rows.npy", "--n-hidden", "4", "--epochs", "1"]]),
    ]
    for what, args in cases:
        done = jobs(*[(folder, PROGRAM, args[k % len(args)]) for k, folder in enumerate(folders)])
        assert done.returncode == 1, (what, done.returncode, done.stdout, done.stderr)
        assert what in done.stderr and "panicked" not in done.stderr, (what, done.stderr)
        assert not done.stdout, (what, done.stdout)
        assert not (folders[0] / "trained" / "config.toml").exists(), what
    # What cannot change results may differ.
    same = ["train", "same.npy", "--n-hidden", 8, "--epochs", 2, "--output", "trained"]
    done = jobs((folders[0], PROGRAM, [*same, "--threads", 1]), (folders[1], PROGRAM, [*same, "--threads", 2, "-v"]))
    assert done.returncode == 0, done.stderr
    print(f"ranks that disagree end with an error before the first update: {len(cases) + 1} cases")


def until(condition, what):
    deadline = time.time() + 120
    while not condition():
        if time.time() > deadline:
            sys.exit(f"waited in vain for {what}")
        time.sleep(0.02)


with tempfile.TemporaryDirectory() as folder:
    tmp = Path(folder)
    results_do_not_depend_on_ranks(tmp)
    a_killed_rank_ends_the_job_and_fewer_ranks_go_on(tmp)
    a_stopped_job_is_gone_on_with(tmp)
    who_cannot_read_stops_all(tmp)
    ranks_that_disagree_end_at_once(tmp)
