"""Print the licences of all that others wrote in the program or in the Python package: crates, fonts, scripts and data.

`python3 scripts/third_party.py mclv-cli` takes the package in question and reads what `cargo metadata` says. It fails if
the text of a licence is missing. Files that are no crates are in folders `assets`, whose README.md says where they are from.
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
    """The packages that end up in the program `root`: no tests, no build scripts."""
    nodes = {node["id"]: node for node in meta["resolve"]["nodes"]}
    packages = {package["id"]: package for package in meta["packages"]}
    (start,) = (id for id in nodes if packages[id]["name"] == root)
    found, rest = set(), [start]
    while rest:
        here = rest.pop()
        if here not in found:
            found.add(here)
            rest += [d["pkg"] for d in nodes[here]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
    return sorted((packages[id] for id in found), key=lambda package: (package["name"], package["version"]))


def texts(package: dict) -> list[str]:
    """The texts of its licences."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and TEXTS.search(file.name))
    return [file.read_text(encoding="utf-8", errors="replace").strip() for file in files]


def assets(package: dict) -> list[pathlib.Path]:
    """What the files in a package of ours say about their origin and their licences."""
    folder = pathlib.Path(package["manifest_path"]).parent / "assets"
    about = sorted(file for file in folder.rglob("*") if file.name == "README.md" or TEXTS.match(file.name))
    if folder.is_dir() and not about:
        sys.exit(f"{folder} has no README.md")
    return about


def main() -> None:
    (root,) = sys.argv[1:] or ["mclv-cli"]
    by_text: dict[str, list[str]] = {}
    without = []
    found = parts(metadata(), root)
    for package in (package for package in found if package["source"]):
        name = f"{package['name']} {package['version']} ({package['license']})"
        all_texts = texts(package)
        for text in all_texts:
            by_text.setdefault(text, []).append(name)
        if not all_texts:
            without.append(name)
    print(f"Licences of the parts of {root}. Each text stands below the crates that bring it; files that are no crates come last.")
    print("The standard library of Rust is in it too, under MIT OR Apache-2.0.\n")
    for text, names in sorted(by_text.items(), key=lambda item: item[1]):
        print("=" * 100, *names, "-" * 100, text, "", sep="\n")
    if without:
        print("=" * 100, "These crates bring no text. That of their licence, MIT or Apache-2.0, stands above.", *without, sep="\n")
    for package in (package for package in found if not package["source"]):
        for file in assets(package):
            folder = file.parent.relative_to(pathlib.Path(package["manifest_path"]).parent)
            text = file.read_text(encoding="utf-8").strip()
            print("=" * 100, f"files in {package['name']}/{folder}", "-" * 100, text, "", sep="\n")
    unknown = [name for name in without if not re.search(r"\b(MIT|Apache-2\.0)\b", name)]
    sys.exit(f"no text of the licence of {', '.join(unknown)}" if unknown else 0)


if __name__ == "__main__":
    main()
