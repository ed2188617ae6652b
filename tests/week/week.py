"""Tasks of a user's first week with the command line.

Each task begins with files that a user may have, and needs at most three commands. The output of
every command is checked. Only the standard library of Python is used.
"""

import gzip
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_COMMANDS = 3
PROGRAM = Path(sys.argv[1]).resolve()


class Task:
    """Runs the commands of one task, and counts them."""

    def __init__(self, name):
        self.name, self.n_commands = name, 0

    def run(self, *words):
        self.n_commands += 1
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
        shown = "mclv " + " ".join(map(str, words))
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {shown} failed:\n{done.stderr}")
        return done.stdout

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))


def expect(condition, what):
    if not condition:
        raise SystemExit(f"not as expected: {what}")


# Files as users have them


def animals(n, rng):
    """Rows of 12 traits. Two kinds of animals have opposite traits, with some noise."""
    rows = []
    for _ in range(n):
        kind = rng.randrange(2)
        rows.append(([int((j % 2 == kind) != (rng.random() < 0.1)) for j in range(12)], ["bird", "fish"][kind]))
    return rows


def write_csv(path, rows, extra=None, separator=","):
    names = [f"trait{j}" for j in range(12)] + ["kind"] + ([extra[0]] if extra else [])
    lines = [separator.join(names)]
    for k, (traits, kind) in enumerate(rows):
        lines.append(separator.join([*map(str, traits), kind] + ([extra[1][k]] if extra else [])))
    text = "\n".join(lines) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


def write_npy(path, kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    code = {"|u1": "B", "|i1": "b"}[kind]
    body = struct.pack(f"{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body)


def stripes(n, rng):
    """Pictures of 6 × 5 pixels: bright columns, or bright lines."""
    pictures = []
    for _ in range(n):
        across, on = rng.random() < 0.5, [rng.random() < 0.5 for _ in range(6)]
        pictures += [255 if on[r if across else c] else 0 for r in range(6) for c in range(5)]
    return pictures


def first_look(task):
    """How good is a model of my table, in nats, with an error?"""
    result = task.json("train", "animals.csv", "--label-column", "kind", "--n-hidden", 4, "-o", "first")
    expect(result["rows"]["train"]["n_rows"] > 0 and result["rows"]["test"]["n_rows"] > 0, result["rows"])
    parts = task.json("likelihood", "first")["likelihoods"]
    test = next(part for part in parts if part["split"] == "test")
    # Independent fair units have −12 ln 2 = −8.3 nats.
    expect(-8.3 < test["mean"] < -3 and test["std_err_rows"] > 0, test)


def data_survey(task):
    """What is in my file?"""
    shown = task.run("data", "show", "animals.csv", "--label-column", "kind")
    for word in ["12;", "bird fish", "values       0 and 1"]:
        expect(word in shown, (word, shown))


def semicolons(task):
    """A table from a spreadsheet: separated by semicolons, and compressed."""
    result = task.json("train", "sheet.csv.gz", "--label-column", "kind", "--n-hidden", 3, "--epochs", 20, "-o", "sheet")
    expect(result["metrics"]["epoch"] == 20, result["metrics"])


def pictures(task):
    """Pictures as bytes from 0 to 255, and samples of the model as a picture."""
    task.run("train", "pictures.npy", "--scale", 255, "--shape", "6x5", "--n-hidden", 8, "-o", "pictures")
    task.run("sample", "pictures", "-o", "samples.png")
    expect(Path("samples.png").read_bytes().startswith(b"\x89PNG"), "samples.png")


def spins(task):
    """Spins of −1 and 1, and samples that are spins, too."""
    task.run("train", "spins.npy", "--spins", "--n-hidden", 4, "--epochs", 50, "-o", "spins")
    task.run("sample", "spins", "-n", 100, "-o", "drawn.npy")
    content = Path("drawn.npy").read_bytes()
    expect(b"|i1" in content and set(content[-1000:]) == {1, 255}, content[:80])


def own_parts(task):
    """The parts of a benchmark are given as files."""
    flags = ["--validation", "valid.csv", "--test", "test.csv", "--label-column", "kind"]
    rows = task.json("train", "train.csv", *flags, "--n-hidden", 4, "--epochs", 30, "-o", "parts")["rows"]
    numbers = [rows[part]["n_rows"] for part in ["train", "validation", "test"]]
    expect(numbers == [300, 100, 200], rows)


def named_parts(task):
    """A column of the table names the part of each row."""
    flags = ["--split-column", "part", "--label-column", "kind", "--n-hidden", 4, "--epochs", 30]
    rows = task.json("train", "named.csv", *flags, "-o", "named")["rows"]
    expect([rows[part]["n_rows"] for part in ["train", "validation", "test"]] == [200, 100, 100], rows)


def more_epochs(task):
    """A finished run goes on, and another one starts from its model."""
    longer = task.json("train", "--resume", "parts", "--epochs", 20)
    expect(longer["metrics"]["epoch"] == 50, longer["metrics"])
    other = task.json("train", "train.csv", "--label-column", "kind", "--from", "parts", "--lr", 0.05, "--epochs", 10)
    expect(other["metrics"]["epoch"] == 10, other["metrics"])


def interrupted(task):
    """Ctrl-C stops a training; it goes on, and then for more epochs than it was to make."""
    words = ["train", "train.csv", "--label-column", "kind", "--n-hidden", 4, "--epochs", 100_000, "-o", "long"]
    # The program leaves a signal ignored that was ignored when it began, as in jobs of scripts.
    hears = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    training = subprocess.Popen([PROGRAM, *map(str, words)], stderr=subprocess.PIPE, text=True, preexec_fn=hears)
    task.n_commands += 1
    while not Path("long/config.toml").exists():
        time.sleep(0.05)
    time.sleep(0.5)
    training.send_signal(signal.SIGINT)
    said = training.communicate(timeout=60)[1]
    expect(training.returncode == 130 and "mclv train --resume long" in said, said)
    config = Path("long/config.toml")
    made = len(Path("long/metrics.jsonl").read_text().splitlines())
    # Nobody wants to wait for a hundred thousand epochs.
    config.write_text(config.read_text().replace("epochs = 100000", f"epochs = {made + 20}"))
    longer = task.json("train", "--resume", "long", "--epochs", 5)
    expect(longer["metrics"]["epoch"] == made + 25, longer["metrics"])


def meaning(task):
    """What is a hidden unit about, in the names of my columns?"""
    units = task.json("inspect", "first")["strongest_units"]
    # The two kinds of animals have the even and the odd traits.
    columns = units[0]["columns"]
    signs = {(int(column["column"].removeprefix("trait")) % 2, column["weight"] > 0) for column in columns}
    expect(len(columns) == 5 and len(signs) <= 2, units[0])
    task.run("sample", "first", "-n", 7, "-o", "samples.csv")
    lines = Path("samples.csv").read_text().splitlines()
    expect(lines[0].startswith("trait0,trait1,") and len(lines) == 8, lines[0])


def sweep(task):
    """Which number of hidden units? Validation rows choose, and test rows judge the choice."""
    flags = ["--validation", "valid.csv", "--test", "test.csv", "--label-column", "kind"]
    task.json("sweep", "train.csv", *flags, "--n-hidden", "2,6", "--seeds", "0..2", "--epochs", 40, "-o", "sweep")
    lines = Path("sweep/sweep.csv").read_text().splitlines()
    expect(len(lines) == 1 + 6 and Path("sweep/report.html").stat().st_size > 50_000, lines)
    # The folder stands for its chosen model.
    parts = task.json("likelihood", "sweep")["likelihoods"]
    expect([part["split"] for part in parts] == ["train", "validation", "test"], parts)


def figure(task):
    """A figure for a paper: mean and band over three seeds, as PDF."""
    runs = sorted(Path("sweep/runs").glob("n-hidden=6,seed=?"))
    expect(len(runs) == 3, runs)
    task.run("plot", "likelihood", *runs, "--mean", "--title", "", "-o", "figure.pdf")
    expect(Path("figure.pdf").read_bytes().startswith(b"%PDF"), "figure.pdf")


def trust(task):
    """Do independent methods agree on log Z, and is a kind of animal lost?"""
    result = task.json("logz", "first", "--method", "exact,ladder,ais,bar", "--target-se", 0.05)
    expect(result["agreement"]["agree"] is True, result["verdict"])
    modes = task.json("modes", "first", "--by", "class")
    expect(all(mode["standing"] == "even" for mode in modes["modes"]), modes["verdict"])


def use(task):
    """Features for another program, and rows of which some units are known."""
    task.run("transform", "first", "-o", "features.csv")
    expect(len(Path("features.csv").read_text().splitlines()) > 100, "features.csv")
    given = ["--given", "train.csv", "--label-column", "kind", "--known", "units:0-3", "-n", 5]
    task.run("sample", "first", *given, "-o", "completed.npy")
    expect(Path("completed.npy").stat().st_size > 128, "completed.npy")


TASKS = [
    first_look, data_survey, semicolons, pictures, spins, own_parts,
    named_parts, more_epochs, interrupted, meaning, sweep, figure, trust, use,
]  # fmt: skip


def make_files():
    rng = random.Random(1)
    rows = animals(600, rng)
    write_csv(Path("animals.csv"), rows)
    write_csv(Path("sheet.csv.gz"), rows, separator=";")
    for name, part in [("train", rows[:300]), ("valid", rows[300:400]), ("test", rows[400:])]:
        write_csv(Path(f"{name}.csv"), part)
    parts = ["train"] * 200 + ["validation"] * 100 + ["test"] * 100
    write_csv(Path("named.csv"), rows[:400], extra=("part", parts))
    write_npy(Path("pictures.npy"), "|u1", [400, 30], stripes(400, rng))
    values = [2 * value - 1 for traits, _ in rows for value in traits[:10]]
    write_npy(Path("spins.npy"), "|i1", [600, 10], values)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_files()
        for number, function in enumerate(TASKS, start=1):
            task = Task(function.__name__)
            function(task)
            expect(0 < task.n_commands <= MOST_COMMANDS, f"{task.name}: {task.n_commands} commands")
            print(f"{number:2}. {function.__doc__.splitlines()[0]} {task.n_commands} command(s)")
        os.chdir("/")
    print(f"{len(TASKS)} passed, 0 failed")


main()
