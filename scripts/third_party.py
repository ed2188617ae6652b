"""Print the licences of every crate in the program or in the Python package.

`python3 scripts/third_party.py mclv-cli` takes the package in question and reads what `cargo metadata` says. It fails if
the text of a licence is missing.
"""

import json
import pathlib
import re
import subprocess
import sys

TEXTS = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.I)


def metadata() -> dict:
    """All packages, and which needs which."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def parts(meta: dict, root: str) -> list[dict]:
    """The packages of others that end up in the program `root`: no tests, no build scripts."""
    nodes = {node["id"]: node for node in meta["resolve"]["nodes"]}
    packages = {package["id"]: package for package in meta["packages"]}
    (start,) = (id for id in nodes if packages[id]["name"] == root)
    found, rest = set(), [start]
    while rest:
        here = rest.pop()
        if here not in found:
            found.add(here)
            rest += [d["pkg"] for d in nodes[here]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
    others = (packages[id] for id in found if packages[id]["source"])
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def texts(package: dict) -> list[str]:
    """The texts of its licences."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and TEXTS.search(file.name))
    return [file.read_text(encoding="utf-8", errors="replace").strip() for file in files]


def main() -> None:
    (root,) = sys.argv[1:] or ["mclv-cli"]
    by_text: dict[str, list[str]] = {}
    without = []
    for package in parts(metadata(), root):
        name = f"{package['name']} {package['version']} ({package['license']})"
        found = texts(package)
        for text in found:
            by_text.setdefault(text, []).append(name)
        if not found:
            without.append(name)
    print(f"Licences of the crates in {root}. Each text stands below the crates that bring it.\n")
    for text, names in sorted(by_text.items(), key=lambda item: item[1]):
        print("=" * 100, *names, "-" * 100, text, "", sep="\n")
    if without:
        print("=" * 100, "These crates bring no text. That of their licence, MIT or Apache-2.0, stands above.", *without, sep="\n")
    unknown = [name for name in without if not re.search(r"\b(MIT|Apache-2\.0)\b", name)]
    sys.exit(f"no text of the licence of {', '.join(unknown)}" if unknown else 0)


if __name__ == "__main__":
    main()
