"""See whether the version, the changelog and the tags agree. Prints each disagreement and fails if there is one."""

import pathlib
import re
import subprocess
import sys
import tomllib

HEADINGS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
# A version of semver.org, without build metadata.
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?")


def order(version: str) -> tuple[int, int, int, bool, str]:
    """Sort key of a version; a pre-release comes before its release."""
    major, minor, patch, pre = VERSION.fullmatch(version).groups()
    return int(major), int(minor), int(patch), pre is None, pre or ""


def problems(manifest: dict, changelog: str, tags_here: list[str], citation: str | None) -> list[str]:
    """Everything that disagrees, in words."""
    found = []
    version = manifest["workspace"]["package"]["version"]
    if not VERSION.fullmatch(version):
        return [f"Cargo.toml: {version!r} is no semantic version"]
    for name, dependency in manifest["workspace"]["dependencies"].items():
        if "path" in dependency and dependency.get("version") != version:
            found.append(f"Cargo.toml: {name} is asked for as {dependency.get('version')}, the workspace is {version}")
    if citation and not re.search(rf'^version: ["\']?{re.escape(version)}["\']?$', citation, re.M):
        found.append(f"CITATION.cff: its version is not {version}")

    parts = re.split(r"^## ", changelog, flags=re.M)[1:]
    if not parts or not parts[0].startswith("[Unreleased]"):
        return found + ["CHANGELOG.md: the first heading is not `## [Unreleased]`"]
    released = []
    for part in parts:
        heading, _, body = part.partition("\n")
        for kind in re.findall(r"^### (.*)$", body, re.M):
            if kind not in HEADINGS:
                found.append(f"CHANGELOG.md: `### {kind}` under `{heading}` is none of {', '.join(sorted(HEADINGS))}")
        if heading.strip() == "[Unreleased]":
            continue
        match = re.fullmatch(r"\[([^\]]+)\] - (\d{4}-\d{2}-\d{2})( \[YANKED\])?", heading.strip())
        if not match or not VERSION.fullmatch(match[1]):
            found.append(f"CHANGELOG.md: `## {heading}` is not of the form `## [1.2.3] - 2026-01-31`")
            continue
        released.append((match[1], match[2]))
    for (newer, later), (older, earlier) in zip(released, released[1:]):
        if order(newer) <= order(older) or later < earlier:
            found.append(f"CHANGELOG.md: {newer} ({later}) stands above {older} ({earlier})")
    newest = released[0][0] if released else None
    if newest and order(version) < order(newest):
        found.append(f"Cargo.toml: version {version}, but CHANGELOG.md has released {newest}")

    for tag in tags_here:
        if tag != f"v{version}":
            found.append(f"tag {tag}: the version of this commit is {version}")
        elif newest != version:
            found.append(f"tag {tag}: CHANGELOG.md has no heading `## [{version}] - DATE` below [Unreleased]")
        elif re.search(r"^- ", parts[0], re.M):
            found.append(f"tag {tag}: CHANGELOG.md still has entries under [Unreleased]")
    return found


def git_tags() -> list[str]:
    """Tags of this commit that name a version; none outside of a repository."""
    done = subprocess.run(["git", "tag", "--points-at", "HEAD"], capture_output=True, text=True, check=False)
    return [tag for tag in done.stdout.split() if re.match(r"v\d", tag)]


def selftest() -> None:
    """Each kind of disagreement is noticed."""
    good = {"workspace": {"package": {"version": "1.2.0"}, "dependencies": {"a": {"path": "a", "version": "1.2.0"}}}}
    log = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-02-01\n\n### Added\n- x\n\n## [1.1.0] - 2026-01-01\n"
    assert problems(good, log, ["v1.2.0"], "version: 1.2.0\n") == []
    assert problems(good, log.replace("## [1.2.0] - 2026-02-01", ""), [], None) == []
    for broken in (
        ({"workspace": {"package": {"version": "1.2"}, "dependencies": {}}}, log, [], None),
        ({"workspace": {"package": {"version": "1.2.0"}, "dependencies": {"a": {"path": "a", "version": "1"}}}}, log, [], None),
        (good, log, ["v1.3.0"], None),
        (good, log, [], "version: 1.1.0\n"),
        (good, log.replace("[Unreleased]\n", "[Unreleased]\n\n### Added\n- y\n"), ["v1.2.0"], None),
        (good, log.replace("1.2.0", "1.3.0"), [], None),
        (good, log.replace("1.1.0", "1.4.0"), [], None),
        (good, log.replace("### Added", "### New"), [], None),
        (good, log.replace("2026-02-01", "today"), [], None),
        (good, log.replace("## [Unreleased]\n", ""), [], None),
    ):
        assert problems(*broken), broken


if __name__ == "__main__":
    selftest()
    root = pathlib.Path(__file__).resolve().parent.parent
    cargo = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    cff = root / "CITATION.cff"
    wrong = problems(cargo, log, git_tags(), cff.read_text(encoding="utf-8") if cff.exists() else None)
    print("\n".join(wrong) or f"version {cargo['workspace']['package']['version']}: manifest, changelog and tags agree")
    sys.exit(bool(wrong))
