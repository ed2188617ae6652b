"""Run commands, whole or broken, and judge the files that they leave."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

PROGRAM = os.environ["PROGRAM"]
BREAKER = os.environ["BREAKER"]
ENV = {**os.environ, "MCLV_PROGRESS": "0", "MCLV_DATA_DIR": "/nonexistent", "MCLV_CACHE_DIR": "/nonexistent"}
PATIENCE = 120
# Names of values that are times, or belong to a process.
TIMES = {"seconds", "evaluation_seconds", "cpu_seconds", "core_seconds", "begun", "ended", "time", "metrics_bytes"}
KILLED = 137


class Wrong(Exception):
    """A promise that was not kept."""


def expect(condition, what):
    if not condition:
        raise Wrong(what)


@dataclass
class Done:
    """How a command ended, and the calls that it made."""

    code: int
    stderr: str
    calls: list


@dataclass
class Call:
    """A system call that changes a file."""

    number: int
    name: str
    path: str


def command(words):
    return [PROGRAM, *words, "--threads", "1"] if words[0] != "/bin/sh" else list(words)


def run(folder, words):
    """Runs a command in a folder, undisturbed."""
    done = subprocess.run(command(words), cwd=folder, env=ENV, capture_output=True, text=True, timeout=PATIENCE)
    return Done(done.returncode, done.stderr, [])


def succeed(folder, words):
    done = run(folder, words)
    expect(done.code == 0, f"{' '.join(words)} fails with code {done.code}: {done.stderr}")


def broken(folder, words, call, how):
    """Runs a command in a folder and breaks one of its calls (0: none)."""
    log = folder.with_name(folder.name + ".log")
    breaker = [BREAKER, log, folder, str(call), str(how), *command(words)]
    done = subprocess.run(breaker, cwd=folder, env=ENV, capture_output=True, text=True, timeout=PATIENCE)
    calls = []
    for line in log.read_text().splitlines():
        number, name, path = line.split(" ", 2)
        calls.append(Call(int(number), name, path))
    return Done(done.returncode, done.stderr, calls)


def copy(source, target):
    """Puts a copy of a folder in the place of another."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def files(folder):
    """All files below a folder, by their names there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def timeless(value):
    """JSON without times."""
    if isinstance(value, dict):
        return {name: timeless(x) for name, x in value.items() if name not in TIMES}
    return [timeless(x) for x in value] if isinstance(value, list) else value


def meaning(name, content):
    """What two files must have in common to be the same result: all but times and processes."""
    if name.endswith(".jsonl"):
        return [timeless(json.loads(line)) for line in content.splitlines()]
    if name.endswith(".json"):
        return timeless(json.loads(content))
    if name.endswith(".csv"):
        lines = list(csv.reader(io.StringIO(content.decode())))
        kept = [k for k, title in enumerate(lines[0]) if title not in TIMES]
        return [[line[k] for k in kept] for line in lines]
    if name.endswith(".md"):
        return re.sub(rb"[\d.]+ m?s of one core", b"", content)
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {entry: archive.read(entry) for entry in archive.namelist()}
    return content


def whole(name, content):
    """Is this a whole file of its kind? `None` if that cannot be said."""
    if name.endswith(".safetensors"):
        return has_its_checksum(content)
    if name.endswith(".html"):
        return content.startswith(b"<!") and content.rstrip().endswith(b"</html>")
    if name.endswith(".png"):
        return content.endswith(b"IEND\xaeB\x60\x82")
    if name.endswith(".svg"):
        return content.rstrip().endswith(b"</svg>")
    if name.endswith((".json", ".jsonl", ".npz")):
        try:
            meaning(name, content)
            return True
        except (ValueError, zipfile.BadZipFile):
            return False
    return None


def has_its_checksum(content):
    """Does a .safetensors file match the checksum inside it?"""
    end = 8 + int.from_bytes(content[:8], "little")
    found = list(re.finditer(rb'checksum\\":\\"([0-9a-f]{64})', content[:end]))
    if not found:
        return False
    start = found[-1].start(1)
    blank = content[:start] + b"0" * 64 + content[start + 64 :]
    return hashlib.sha256(blank).hexdigest().encode() == found[-1][1]


def check_result(folder, reference):
    """The files of a folder are those of the undisturbed command."""
    ours, theirs = files(folder), files(reference)
    skip = re.compile(r"\.lock$|\.html$|sittings\.jsonl$|events\.out\.tfevents")
    names = {name for name in ours.keys() | theirs.keys() if not skip.search(name)}
    for name in sorted(names):
        expect(name in ours, f"{name} is missing")
        expect(name in theirs, f"{name} should not be there")
        if name.endswith("latest.safetensors"):
            # It holds the seconds of the run.
            expect(whole(name, ours[name]), f"{name} is damaged")
        else:
            expect(meaning(name, ours[name]) == meaning(name, theirs[name]), f"{name} differs")
    expect(all(whole(name, ours[name]) for name in ours if name.endswith(".html")), "half a page")
