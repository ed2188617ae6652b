"""Let calls that change files fail. Nothing that was there is lost, no half file has a final name, and the command says so."""

import errno
import os
import random
from pathlib import Path

from work import Wrong, broken, check_result, copy, expect, files, meaning, run, succeed, whole

TRAIN = ("train bars-and-stripes:3 --n-hidden 3 --batch-size 5 --epochs 4 --eval-every 2 --snapshots 1,3 "
         "--checkpoint-every 1 --checkpoint-minutes 0").split()
# What is there before: a run, a model, and files that are overwritten.
BEFORE = [
    [*TRAIN, "--gradient", "pcd", "--output", "old"],
    "init bars-and-stripes:3 --n-hidden 3 --seed 5 --output model.safetensors".split(),
    "sample model.safetensors --n-samples 5 --output samples.npy".split(),
    "convert model.safetensors model.npz".split(),
    "transform model.safetensors --data bars-and-stripes:3 --output hidden.csv".split(),
    "tours model.safetensors --data bars-and-stripes:3 --n-tours 50 --csv tail.csv --report tours.html --seed 9".split(),
]
COMMANDS = [
    [*TRAIN, "--output", "run"],
    "train --resume old --epochs 2 --tensorboard".split(),
    "sweep bars-and-stripes:3 --n-hidden 2 --seeds 0 --epochs 2 --validation-fraction 0.2 --output sweep".split(),
    "report old".split(),
    "report old --output other.html".split(),
    "init bars-and-stripes:3 --n-hidden 3 --seed 6 --output model.safetensors --force".split(),
    "sample old --n-samples 40 --output samples.npy --force".split(),
    "sample old --n-samples 40 --output new.png".split(),
    "plot likelihood old --output new.svg".split(),
    "convert old/model.safetensors model.npz --force".split(),
    "convert old/model.safetensors new.safetensors".split(),
    "transform old --output hidden.csv --force".split(),
    "tours old --n-tours 50 --csv tail.csv --report tours.html --force".split(),
]
ERRORS = (errno.ENOSPC, errno.EIO)
# Calls whose failure harms nothing: a lock on a file system without locks, the sync of a folder, the end of a lock's words.
HARMLESS_NAMES = ("flock", "unlink", "unlinkat")


def is_harmless(call, folder):
    return call.name in HARMLESS_NAMES or call.path.endswith("/.lock") or (call.name == "fsync" and Path(call.path).is_dir())


def check_files(folder, before, after_whole, what):
    """Every file is as before, or as after the undisturbed command, or at least whole."""
    now = files(folder)
    for name in before:
        # A training that goes on moves its last model to the snapshots.
        moved = name.endswith("/model.safetensors") and before[name] in now.values()
        expect(name in now or moved, f"{what}: {name} is lost")
    for name, content in now.items():
        expect(not name.rsplit("/", 1)[-1].startswith(".mclv-"), f"{what}: {name} stays behind")
        if content == before.get(name) or content == after_whole.get(name):
            continue
        if name.endswith("metrics.jsonl"):
            # Lines are appended; a half one is cut off by whoever goes on.
            lines = content.splitlines(keepends=True)
            content = b"".join(line for line in lines if line.endswith(b"\n"))
            expect(content.startswith(before.get(name, b"")), f"{what}: {name} lost lines")
        # Events are appended, too, and have a new name in each sitting.
        if name.endswith(".lock") or "events.out.tfevents" in name:
            continue
        sound = whole(name, content)
        if sound is None:
            # Files without a mark of their end must be the same but for times.
            sound = any(name in x and same(name, content, x[name]) for x in (before, after_whole))
        expect(sound, f"{what}: {name} is half written")


def same(name, a, b):
    try:
        return meaning(name, a) == meaning(name, b)
    except ValueError:
        return False


class Study:
    """One command, with each of its calls broken."""

    def __init__(self, folder, base, words):
        self.words, self.base = words, base
        self.broken, self.whole = folder / "broken", folder / "whole"
        folder.mkdir()
        succeed(copy(base, self.whole), words)
        self.before, self.after = files(base), files(self.whole)
        done = broken(copy(base, self.broken), words, 0, 0)
        expect(done.code == 0, f"{' '.join(words)} fails under watch: {done.stderr}")
        check_result(self.broken, self.whole)
        self.calls, self.n_faults, self.n_failures = done.calls, 0, 0

    def fault(self, number, how):
        """Breaks one call, and judges what is left."""
        copy(self.base, self.broken)
        done = broken(self.broken, self.words, number, how)
        call = done.calls[number - 1] if number <= len(done.calls) else None
        what = f"{' '.join(self.words)}, {how} at call {number} ({call.name} {call.path})" if call else "no such call"
        self.n_faults += call is not None
        if call is None:
            return
        if how == "short" or done.code == 0:
            expect(done.code == 0, f"{what}: code {done.code}, {done.stderr}")
            silent = how != "short" and not is_harmless(call, self.broken)
            expect(not silent or "warn" in done.stderr.lower(), f"{what}: it says nothing: {done.stderr!r}")
            if how == "short":
                check_result(self.broken, self.whole)
        else:
            self.n_failures += 1
            message = os.strerror(int(str(how).lstrip("+")))
            expect(done.code == 1, f"{what}: code {done.code}, {done.stderr}")
            lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            expect(len(lines) == 1 and message in lines[0], f"{what}: it does not say {message!r}: {done.stderr}")
            expect("panicked" not in done.stderr, f"{what}: {done.stderr}")
        check_files(self.broken, self.before, self.after, what)
        if self.words[0] == "train":
            self.go_on(done, what)

    def go_on(self, done, what):
        """A training that failed goes on to the same model."""
        run_folder = self.words[self.words.index("--output" if "--output" in self.words else "--resume") + 1]
        if not (self.broken / run_folder / "config.toml").exists():
            again = self.words
        elif "--output" not in self.words and done.code != 0:
            # Whether the epochs were added already is written in the settings.
            added = files(self.broken)[f"{run_folder}/config.toml"] != self.before[f"{run_folder}/config.toml"]
            again = ["train", "--resume", run_folder] if added else self.words
        else:
            again = ["train", "--resume", run_folder]
        after = run(self.broken, again)
        expect(after.code == 0, f"{what}; then {' '.join(again)}: {after.stderr}")
        check_result(self.broken, self.whole)


def control(folder):
    """A program that writes in place must be found out by each kind of fault."""
    folder.mkdir()
    base = folder / "base"
    base.mkdir()
    (base / "x.json").write_text('["old"]')
    words = ["/bin/sh", "-c", "printf '[\"new and longer\"]' > x.json || { echo 'error: No space left on device' >&2; exit 1; }"]
    study = Study(folder / "control", base, words)
    for how in ("half", errno.ENOSPC):
        try:
            number = next(call.number for call in study.calls if call.name == "write")
            done = broken(copy(base, study.broken), words, number, how)
            expect(done.code != 0, "the fault does not happen")
            check_files(study.broken, study.before, study.after, "control")
        except Wrong as problem:
            expect("half written" in str(problem), problem)
        else:
            raise Wrong(f"a program that writes in place is not found out by {how}")


def check(folder, seed, per_command, is_long):
    """Breaks `per_command` calls of every command, or all of them in every way."""
    control(folder / "control")
    rng = random.Random(seed)
    base = folder / "base"
    base.mkdir()
    for words in BEFORE:
        succeed(base, words)
    n_faults = n_failures = 0
    for k, words in enumerate(COMMANDS):
        study = Study(folder / f"fault-{k}", base, words)
        expect(study.calls, f"{words}: no calls")
        numbers = [call.number for call in study.calls]
        if is_long:
            faults = [(number, how) for number in numbers for how in (*ERRORS, f"+{errno.ENOSPC}", "short")]
        else:
            chosen = rng.sample(numbers, min(per_command, len(numbers)))
            faults = [(number, rng.choice((*ERRORS, f"+{errno.ENOSPC}", "short"))) for number in chosen]
        for number, how in faults:
            study.fault(number, how)
        print(f"  {' '.join(words)}: {len(study.calls)} calls, {study.n_faults} faults, {study.n_failures} errors", flush=True)
        n_faults += study.n_faults
        n_failures += study.n_failures
    print(f"{n_faults} faults, of which {n_failures} end a command: nothing is lost", flush=True)
