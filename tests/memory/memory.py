"""Watch the memory of a training with an open page, and that of tours, for as long as you want.

    memory.py PROGRAM FOLDER MINUTES

A client asks for the page of `mclv train --live` as a browser does. Beside it `mclv tours` and
`mclv logz` run in turn. FOLDER gets memory.csv and memory.svg. The exit code is 1 if memory grows.
Only the standard library of Python is used.
"""

import csv
import json
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

# The memory at the end may be larger than after the first sixth of the time by this many megabytes.
MOST_GROWTH = 16.0
# With fewer epochs a run says nothing: on a busy machine a training may hardly move.
FEWEST_EPOCHS = 5000
SECONDS_PER_SAMPLE = 2.0
TRAINING = "digits --n-hidden 100 --gradient pcd --epochs 100000000 --eval-every 100 --checkpoint-every 50".split()
# Each of these takes some minutes.
TOURS = ["tours model.safetensors --n-tours 2000000 --max-steps none", "logz model.safetensors --method mclv --n-tours 2000000"]


def memory(process):
    """The resident memory of a process in megabytes."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"VmRSS:\s*(\d+) kB", status)
    return int(found[1]) / 1024 if found else None


class Page(threading.Thread):
    """Asks for the state once a second, as the page does, and for the whole page once a minute."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.n_answers, self.n_states, self.n_failures = address, 0, 0, 0

    def get(self, path=""):
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            self.n_answers += 1
            return answer.read()

    def run(self):
        version, k = "", 0
        while True:
            try:
                if k % 60 == 0:
                    self.get()
                if state := self.get("state?since=" + version):
                    self.n_states += 1
                    version = json.loads(state)["version"]
            except (OSError, urllib.error.URLError, ValueError):
                self.n_failures += 1
            k += 1
            time.sleep(1)


def start(program, folder, *words):
    return subprocess.Popen(
        ["nice", "-n", "19", program, *words, "--threads", "1"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )


def begin_training(program, folder):
    """Starts a training with a live page; returns the process and the address."""
    training = start(program, folder, "train", *TRAINING, "--live", "--port", "0", "--output", "run")
    for line in training.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+/\S*", line):
            threading.Thread(target=training.stderr.read, daemon=True).start()
            return training, found[0]
    raise SystemExit("mclv train --live names no address")


def svg(samples):
    """A chart of memory over time."""
    width, height, left, bottom = 760, 320, 60, 40
    most = 1.1 * max(x for _, *pair in samples for x in pair if x is not None)
    end = max(samples[-1][0], 1.0)

    def line(column, colour):
        points = ((t, row[column - 1]) for t, *row in samples if row[column - 1] is not None)
        at = (f"{left + t / end * (width - left - 20):.1f},{height - bottom - x / most * (height - bottom - 30):.1f}" for t, x in points)
        return f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{" ".join(at)}"/>'

    texts = [
        (left - 8, height - bottom, "0", "end"),
        (left - 8, 38, f"{most:.0f} MB", "end"),
        (width - 20, height - 15, f"{end / 60:.0f} minutes", "end"),
        (left, height - 15, "0", "middle"),
    ]
    words = "".join(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>' for x, y, text, anchor in texts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<path d="M{left} 30V{height - bottom}H{width - 20}" fill="none" stroke="#888"/>{words}'
        f'{line(1, "#0b62a4")}{line(2, "#c2410c")}'
        f'<text x="{left + 10}" y="20" fill="#0b62a4">training with an open page</text>'
        f'<text x="{left + 220}" y="20" fill="#c2410c">tours and log Z</text></svg>\n'
    )


def growth(samples, column):
    """The growth in megabytes from after the first sixth of the time to the end. Peaks count: tours come and go."""
    values = [row[column] for row in samples if row[column] is not None]
    n = max(len(values) // 6, 1)
    early, late = values[n : 2 * n] or values, values[-n:]
    return (statistics.median(late) - statistics.median(early), max(late) - max(early))


def main():
    program, folder, minutes = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), float(sys.argv[3])
    folder.mkdir(parents=True)
    subprocess.run([program, "train", "digits", "--n-hidden", "16", "--epochs", "5", "--no-report",
                    "--threads", "1", "--output", "short"], cwd=folder, check=True, capture_output=True)
    (folder / "short" / "model.safetensors").rename(folder / "model.safetensors")
    training, address = begin_training(program, folder)
    page = Page(address)
    page.start()
    samples, tours, n_tours, begun = [], None, 0, time.monotonic()
    with open(folder / "memory.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["seconds", "training_mb", "tours_mb", "epochs"])
        while (now := time.monotonic() - begun) < 60 * minutes:
            if tours is None or tours.poll() is not None:
                if tours is not None and tours.returncode != 0:
                    raise SystemExit(f"tours end with code {tours.returncode}: {tours.stderr.read()}")
                tours = start(program, folder, *TOURS[n_tours % len(TOURS)].split())
                n_tours += 1
            if training.poll() is not None:
                raise SystemExit(f"the training ends with code {training.returncode}")
            with open(folder / "run" / "metrics.jsonl", "rb") as metrics:
                epochs = sum(1 for _ in metrics) if len(samples) % 30 == 0 else ""
            samples.append((now, memory(training), memory(tours)))
            table.writerow([f"{now:.1f}", *(f"{x:.2f}" if x is not None else "" for x in samples[-1][1:]), epochs])
            if len(samples) % 30 == 0:
                file.flush()
                (folder / "memory.svg").write_text(svg(samples))
            time.sleep(SECONDS_PER_SAMPLE)
    (folder / "memory.svg").write_text(svg(samples))
    for process in (training, tours):
        process.terminate()
        process.wait(60)
    print(f"{now / 60:.0f} minutes, {len(samples)} samples; the page: {page.n_answers} answers, {page.n_states} new states, {page.n_failures} failures")
    with open(folder / "run" / "metrics.jsonl", "rb") as metrics:
        n_epochs = sum(1 for _ in metrics)
    print(f"{n_epochs} epochs")
    grows = False
    for column, name in ((1, "training with an open page"), (2, "tours and log Z")):
        typical, peak = growth(samples, column)
        values = [row[column] for row in samples if row[column] is not None]
        print(f"{name}: {min(values):.1f} to {max(values):.1f} MB; growth {typical:+.1f} MB (median), {peak:+.1f} MB (peak)")
        grows |= typical > MOST_GROWTH
    if n_epochs < FEWEST_EPOCHS:
        sys.exit(f"too few epochs to tell: {FEWEST_EPOCHS} are needed")
    sys.exit("memory grows" if grows else 0)


if __name__ == "__main__":
    main()
