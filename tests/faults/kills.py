"""Kill commands with `kill -9`, at any time and at any call that changes files. What goes on must end as if nothing happened."""

import random
import signal
import subprocess
import time
from pathlib import Path

from work import ENV, KILLED, PATIENCE, Wrong, broken, check_result, command, copy, expect, run, succeed

SHORT = "--epochs 6 --eval-every 2 --snapshots 1,4 --checkpoint-every 1 --checkpoint-minutes 0 --output run".split()
TRAININGS = [
    ["train", "bars-and-stripes:3", "--n-hidden", "3", "--batch-size", "5", *words.split(), *SHORT]
    for words in (
        "--gradient lvs",
        "--gradient pcd --optimizer adam",
        "--gradient tempered --n-chains 4 --n-rungs 2 --momentum 0.5",
        "--gradient cd --patience 1",
    )
]
# Each with the command that goes on after the folder has begun to exist, and the file that says so.
WORK = [(words, ["train", "--resume", "run"], "run/config.toml") for words in TRAININGS]
SWEEP = "sweep bars-and-stripes:3 --n-hidden 2,3 --seeds 0,1 --epochs 4 --validation-fraction 0.2 --output run".split()
REPRODUCE = "reproduce table1 --quick --data rows.csv --seeds 1 --output run".split()
# Further commands of the long check.
MORE_WORK = [(SWEEP, "sweep --resume run".split(), "run/sweep.toml"), (REPRODUCE, REPRODUCE, "run/runs")]


def rows():
    """160 rows of two kinds."""
    draws = random.Random(1)
    bits = ([int(draws.random() < (0.8 if j % 2 == k % 2 else 0.2)) for j in range(8)] for k in range(160))
    return "".join(",".join(map(str, row)) + "\n" for row in bits)


def check_order(folder, calls):
    """A power cut takes away what is not synced: files are synced before they get their names, metrics before checkpoints."""
    unsynced = set()
    for call in calls:
        path = str(folder / call.path)
        if call.name == "write" and not path.endswith(".lock"):
            unsynced.add(path)
        elif call.name in ("fsync", "fdatasync"):
            unsynced.discard(path)
        elif call.name.startswith("rename") and path.endswith(".tmp"):
            expect(path not in unsynced, f"{path} is renamed before it is synced")
            if "/checkpoints/" in path:
                metrics = str(Path(path).parents[1] / "metrics.jsonl")
                expect(metrics not in unsynced, f"{path} counts metrics that are not synced")
    renamed = sum(call.name.startswith("rename") for call in calls)
    expect(renamed > 2, "too few files are renamed to be true")


class Study:
    """One command: whole once, and then killed again and again."""

    def __init__(self, folder, work, rng):
        self.words, self.again, self.begun = work
        self.folder, self.rng = folder, rng
        self.empty, self.whole, self.killed = (folder / name for name in ("empty", "whole", "killed"))
        for path in (folder, self.empty):
            path.mkdir()
        (self.empty / "rows.csv").write_text(rows())
        # In the same place, because runs record the folder that relative paths start from.
        copy(self.empty, self.killed)
        begun = time.monotonic()
        succeed(self.killed, self.words)
        self.seconds = time.monotonic() - begun
        copy(self.killed, self.whole)
        self.calls = broken(copy(self.empty, self.killed), self.words, 0, "kill").calls
        check_order(self.killed, self.calls)
        self.n_killed = self.n_calls_killed = 0

    def next_words(self):
        return self.again if (self.killed / self.begun).exists() else self.words

    def finish(self, what):
        """Goes on until the end, and compares."""
        done = run(self.killed, self.next_words())
        expect(done.code == 0, f"{what}: {' '.join(self.next_words())} fails: {done.stderr}")
        check_result(self.killed, self.whole)

    def kill_at_call(self, call, how):
        """Kills the command at a call; then perhaps what goes on, too."""
        copy(self.empty, self.killed)
        what = f"{' '.join(self.words)}, {how} at call {call}"
        code = broken(self.killed, self.words, call, how).code
        expect(code in (0, KILLED), f"{what}: code {code}")
        self.n_calls_killed += code == KILLED
        if self.rng.random() < 0.5:
            again = self.rng.randrange(1, len(self.calls) + 1)
            what += f", and again at call {again}"
            code = broken(self.killed, self.next_words(), again, how).code
            expect(code in (0, KILLED), f"{what}: code {code}")
            self.n_calls_killed += code == KILLED
        self.finish(what)

    def kill_at_random(self):
        """Kills the command after a random time, up to five times."""
        copy(self.empty, self.killed)
        what = f"{' '.join(self.words)}, killed after"
        for _ in range(self.rng.randrange(1, 6)):
            seconds = self.rng.random() * self.seconds
            what += f" {seconds:.4f} s"
            process = subprocess.Popen(
                command(self.next_words()), cwd=self.killed, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            try:
                _, stderr = process.communicate(timeout=seconds)
                expect(process.returncode == 0, f"{what}: {stderr}")
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate(timeout=PATIENCE)
                self.n_killed += process.returncode == -signal.SIGKILL
        self.finish(what)


def control(study):
    """A run that ends with other bits must be found out, and so must a program that does not sync."""
    copy(study.empty, study.killed)
    succeed(study.killed, [*study.words, "--seed", "1"])
    lazy = [call for call in study.calls if call.name != "fsync"]
    for is_wrong in (lambda: check_result(study.killed, study.whole), lambda: check_order(study.killed, lazy)):
        try:
            is_wrong()
        except Wrong:
            continue
        raise Wrong("a control is not found out")


def check(folder, seed, n_kills, is_long):
    """About `n_kills` kills; all calls and other commands, too, if it is a long check."""
    rng = random.Random(seed)
    work = WORK + (MORE_WORK if is_long else [])
    studies = [Study(folder / f"kill-{k}", one, rng) for k, one in enumerate(work)]
    control(studies[0])
    for study in studies:
        expect(len(study.calls) > 20, "too few calls to be true")
        calls = list(range(1, len(study.calls) + 1))
        if not is_long:
            calls = rng.sample(calls, n_kills // (2 * len(studies)))
        elif study.words not in TRAININGS:
            calls = rng.sample(calls, 100)
        for call in calls:
            for how in ("kill", "half") if is_long else (rng.choice(("kill", "half")),):
                study.kill_at_call(call, how)
        until = n_kills // (len(studies) if is_long else 2 * len(studies))
        for _ in range(20 * until):
            if study.n_killed >= until:
                break
            study.kill_at_random()
        print(
            f"  {' '.join(study.words)}: {len(study.calls)} calls; {study.n_calls_killed} kills at calls, "
            f"{study.n_killed} at random times",
            flush=True,
        )
    n_calls, n_random = (sum(getattr(s, name) for s in studies) for name in ("n_calls_killed", "n_killed"))
    print(f"{n_calls} kills at calls and {n_random} at random times: every run ends with the same bits", flush=True)
