"""What framegauge depends on: lists it, and holds it to `deny.toml`.

    scripts/dependencies.py           what is wrong, one line each; 0 if nothing is
    scripts/dependencies.py --write   the list in docs/reference/dependencies.md
    scripts/dependencies.py --here    what is installed here, with versions and licences

Crates are those of `Cargo.lock` and `fuzz/Cargo.lock` on the machines that the agent is built for. Of Python packages
the list has those that `pyproject.toml` names, with its bounds; what they bring in is held to the same licences.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "docs/reference/dependencies.md"
MACHINES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
LOCKS = (ROOT / "Cargo.lock", ROOT / "fuzz/Cargo.lock")
OWN = "framegauge"

# What crates are for, and how `cargo tree` finds them; the first that fits is told.
AGENT, BUILD, TEST, FUZZING = "agent", "building", "tests", "fuzzing"
TREES = (
    (AGENT, ("-p", "framegauge-agent", "-e", "normal,no-proc-macro")),
    (BUILD, ("-p", "framegauge-agent", "-e", "normal,build")),
    (TEST, ("--workspace", "-e", "normal,build,dev")),
    (FUZZING, ("--manifest-path", str(ROOT / "fuzz/Cargo.toml"), "-e", "normal,build")),
)
# What older metadata says, in lower case, in the words of SPDX. "BSD" alone is taken for the one that asks for more.
WORDS = {
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "2-clause bsd": "BSD-2-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}


@dataclass(frozen=True, order=True)
class Dependency:
    """A crate or a Python package. `versions`: the locked one, or the bounds; `licence`: an expression of SPDX, empty
    if it names none."""

    name: str
    versions: str
    licence: str
    use: str


def accepts(allowed: Iterable[str], expression: str) -> bool:
    """Whether an expression of SPDX can be met by licences that are allowed."""
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    known = set(allowed)

    def both() -> bool:
        result = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            result = one() and result
        return result

    def either() -> bool:
        result = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            result = both() or result
        return result

    def one() -> bool:
        word = tokens.pop(0) if tokens else ""
        if word == "(":
            result = either()
            return bool(tokens) and tokens.pop(0) == ")" and result
        if tokens[:1] == ["WITH"]:
            word = " ".join([word, *tokens[:2]])
            del tokens[:2]
        return word in known

    return either() and not tokens


def crates() -> list[Dependency]:
    """Every crate that is not ours, by name and version.

    Raises:
        RuntimeError: cargo refuses, in its words; a lock that is not in step is one reason.
    """
    found: dict[tuple[str, str], Dependency] = {}
    for use, words in TREES:
        for machine in MACHINES:
            command = ["cargo", "tree", "--locked", "--target", machine, "--prefix", "none", "-f", "{p}|{l}", *words]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command[:3])}: {done.stderr.strip()}")
            for line in done.stdout.splitlines():
                package, _, licence = line.removesuffix(" (*)").partition("|")
                name, _, version = package.partition(" v")
                if name and not name.startswith(OWN):
                    version = version.split()[0]
                    # How old crates write OR.
                    licence = re.sub(r"\s*/\s*", " OR ", licence)
                    found.setdefault((name, version), Dependency(name, version, licence, use))
    return sorted(found.values())


def licence_of(package: importlib.metadata.Distribution, stated: dict[str, str]) -> str:
    """An expression of SPDX: what `deny.toml` states, or what a package says of itself; empty if neither does."""
    said = package.metadata
    if name := stated.get(canonicalize_name(package.name)):
        return name
    if "License-Expression" in said:
        return str(said["License-Expression"])
    classified = [
        each.rpartition(" :: ")[2] for each in said.get_all("Classifier") or [] if each.startswith("License ::")
    ]
    # In old metadata the field may be the whole text.
    written = [text for text in said.get_all("License") or [] if text and "\n" not in text]
    for words in (*written, *classified):
        if words.lower() in WORDS or re.fullmatch(r"[\w.+-]+", words):
            return WORDS.get(words.lower(), words)
    return ""


def named_packages() -> list[tuple[Requirement, str]]:
    """What `pyproject.toml` names, and what for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    texts = [(text, "framegauge") for text in project["project"]["dependencies"]]
    texts += [(text, TEST) for text in project["project"]["optional-dependencies"]["test"]]
    texts += [(text, BUILD) for text in project["build-system"]["requires"]]
    return [(Requirement(text), use) for text, use in texts]


def installed(stated: dict[str, str]) -> list[Dependency]:
    """What is named and all that it brings in, as installed here. What is named and not here has no version."""
    found: dict[str, Dependency] = {}
    queue = [(requirement, use) for requirement, use in named_packages() if applies(requirement)]
    while queue:
        requirement, use = queue.pop(0)
        name = canonicalize_name(requirement.name)
        if name in found or name == OWN:
            continue
        try:
            package = importlib.metadata.distribution(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = Dependency(name, "", "", use)
            continue
        found[name] = Dependency(name, package.version, licence_of(package, stated), use)
        needed = [Requirement(text) for text in package.requires or []]
        # Depth first: what the program itself brings in is told before what its tests do.
        queue[:0] = [(each, use) for each in needed if applies(each, requirement.extras)]
    return sorted(found.values())


def applies(requirement: Requirement, extras: Iterable[str] = ()) -> bool:
    """Whether a requirement holds here, for a package that is wanted with these extras."""
    return not requirement.marker or any(requirement.marker.evaluate({"extra": each}) for each in (*extras, ""))


def packages(here: list[Dependency]) -> list[Dependency]:
    """The Python packages that are named, with the bounds of their versions."""
    licences = {each.name: each.licence for each in here}
    return sorted(
        Dependency(name, str(requirement.specifier) or "any", licences.get(name, ""), use)
        for requirement, use in named_packages()
        for name in [canonicalize_name(requirement.name)]
    )


def stated_licences(rules: dict[str, Any]) -> dict[str, str]:
    """Licences of packages whose metadata has none."""
    return {each["name"]: each["expression"] for each in rules["licenses"].get("clarify", [])}


def wrong_licences(dependencies: Iterable[Dependency], rules: dict[str, Any]) -> Iterator[str]:
    """Those that `deny.toml` does not allow."""
    special = {each["name"]: each["allow"] for each in rules["licenses"].get("exceptions", [])}
    for each in dependencies:
        if not accepts([*rules["licenses"]["allow"], *special.get(each.name, [])], each.licence):
            yield f"{each.name} {each.versions}: found the licence {each.licence!r}, expected one that deny.toml allows"


def repeated(dependencies: Iterable[Dependency], rules: dict[str, Any]) -> Iterator[str]:
    """Crates in several versions, but for those that `deny.toml` lists with a reason."""
    versions: dict[str, list[str]] = {}
    for each in dependencies:
        versions.setdefault(each.name, []).append(each.versions)
    skipped = rules["bans"].get("skip", [])
    for skip in skipped:
        if not skip.get("reason"):
            yield f"deny.toml: skip of {skip['name']}: found no reason"
        if not any(is_skipped(version, skip) for version in versions.get(skip["name"], [])):
            yield f"deny.toml: skip of {skip['name']} {skip['version']}: found no such crate"
    for name, found in versions.items():
        left = [one for one in found if not any(skip["name"] == name and is_skipped(one, skip) for skip in skipped)]
        if len(left) > 1:
            yield f"{name}: found {' and '.join(left)}, expected one version, or a skip in deny.toml with its reason"


def is_skipped(version: str, skip: dict[str, str]) -> bool:
    """Whether a version begins with the parts that a skip names."""
    parts = skip["version"].split(".")
    return version.split(".")[: len(parts)] == parts


def wrong_locks(locks: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Crates from elsewhere than the registry, without a checksum, or fuzzed in another version than the agent has."""
    versions: dict[str, set[str]] = {}
    for place, lock in locks.items():
        for package in lock["package"]:
            name, version, source = package["name"], package["version"], package.get("source")
            if name.startswith(OWN):
                continue
            if source != REGISTRY or not package.get("checksum"):
                yield f"{place}: {name} {version}: found the source {source!r}, expected {REGISTRY} with a checksum"
            if place == next(iter(locks)):
                versions.setdefault(name, set()).add(version)
            elif name in versions and version not in versions[name]:
                usual = " or ".join(sorted(versions[name]))
                yield f"{place}: {name}: found {version}, expected {usual}, as in {next(iter(locks))}"


def table(heading: str, dependencies: Iterable[Dependency]) -> str:
    """A table of Markdown."""
    rows = [f"| {each.name} | {each.versions} | {each.licence} | {each.use} |" for each in dependencies]
    return "\n".join([f"| {heading} | version | licence | for |", "| --- | --- | --- | --- |", *rows])


def document(rust: list[Dependency], python: list[Dependency]) -> str:
    """The list, as a page."""
    return f"""# Dependencies

Made by `scripts/dependencies.py --write`; a test compares it with `Cargo.lock`, `fuzz/Cargo.lock` and `pyproject.toml`.
Licences are those that the packages state, in the words of [SPDX](https://spdx.org/licenses/). Which are allowed, and
which crates may be there twice, is in `deny.toml`, in the format of
[cargo-deny](https://embarkstudios.github.io/cargo-deny/).

## Crates

The agent is one static program, and holds the code of the crates "for agent" alone. All crates come from crates.io,
with checksums in the locks.

{table("crate", rust)}

## Python packages

The bounds are those of `pyproject.toml`. These bring in others; `scripts/dependencies.py --here` lists all that is
installed here, with versions, and `make test` holds them to the same licences. No package is part of framegauge's
wheel.

{table("package", python)}
"""


def lines_that_last(text: str) -> list[str]:
    """A list without the licences of Python packages: those change with a release of somebody else's."""
    crates, _, packages = text.partition("## Python packages")
    return [*crates.splitlines(), *(re.sub(r"\| [^|]* (\| \w+ \|)$", r"\1", line) for line in packages.splitlines())]


def is_lacking(package: Dependency) -> bool:
    """Whether a package is named and not installed. What builds the wheel need not be here."""
    return not package.versions and package.use != BUILD


def problems(rules: dict[str, Any], rust: list[Dependency], here: list[Dependency]) -> Iterator[str]:
    """Everything that is wrong, one line each."""
    yield from wrong_locks({str(path.relative_to(ROOT)): tomllib.loads(path.read_text()) for path in LOCKS})
    yield from (
        f"{each.name}: found none here, expected it as pyproject.toml says" for each in here if is_lacking(each)
    )
    yield from wrong_licences([*rust, *(each for each in here if each.versions)], rules)
    yield from repeated([each for each in rust if each.use != FUZZING], rules)
    written = LIST.read_text() if LIST.exists() else ""
    if lines_that_last(written) != lines_that_last(document(rust, packages(here))):
        yield f"{LIST.relative_to(ROOT)}: found another list, expected what scripts/dependencies.py --write makes"


def main(words: list[str]) -> int:
    """Check, write or show; 0 if nothing is wrong, 2 for bad arguments."""
    if words not in ([], ["--write"], ["--here"]):
        print("usage: scripts/dependencies.py [--write|--here]", file=sys.stderr)
        return 2
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    try:
        here = installed(stated_licences(rules))
        if words == ["--here"]:
            print(table("package", here))
            return 0
        rust = crates()
    except (OSError, RuntimeError) as error:
        print(f"scripts/dependencies.py: {error}", file=sys.stderr)
        return 1
    if words == ["--write"]:
        LIST.write_text(document(rust, packages(here)))
        return 0
    found = list(problems(rules, rust, here))
    print("".join(f"{problem}\n" for problem in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    os.environ["CARGO_TERM_COLOR"] = "never"
    sys.exit(main(sys.argv[1:]))
