"""The direction and the budgets of the Rust crates, and what no file of the project may hold.

What of this Python's own modules must obey is in test_layout.py.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.support import ROOT

PURE = {"frames", "packets", "fabric", "networks", "pathmtu", "diagnosis", "traffic", "metering", "simulator"}
# What each crate may use of the others; external crates are free.
MAY_USE = {
    "frames": set(),
    "packets": {"frames"},
    "fabric": {"frames"},
    "networks": {"fabric", "frames"},
    "pathmtu": {"frames", "packets"},
    "diagnosis": {"frames", "packets"},
    "traffic": {"frames"},
    "metering": {"frames"},
    "simulator": {"networks", "fabric", "traffic", "frames"},
    "linux": {"frames", "packets"},
    "drivers": {"linux"} | PURE,
    "agent": {"drivers"} | PURE,
    "fuzzing": {"agent", "drivers", "linux"} | PURE,
    "nodelay": set(),
}
# They join pure code to the world, so they may use clocks, sockets, threads and files.
IMPURE = {"linux", "drivers", "agent"}
LONGEST_FUNCTION = 60

CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/Cargo.toml"))
RUST = sorted(path for crate in CRATES for path in crate.rglob("*.rs"))
SKIPPED = {".git", ".venv", "build", "target", "results", "artifacts", "corpus", "__pycache__", "node_modules"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def crate_of(path: Path) -> str:
    return path.relative_to(ROOT / "crates").parts[0]


def used_crates(manifest: dict[str, object]) -> Iterator[str]:
    """Crates of ours that a manifest depends on, for builds and tests alike."""
    tables = [manifest, *manifest.get("target", {}).values()]  # type: ignore[attr-defined]
    for table in tables:
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, value in table.get(kind, {}).items():
                real = value.get("package", name) if isinstance(value, dict) else name
                if real.startswith("framegauge-"):
                    yield real.removeprefix("framegauge-")


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_a_crate_uses_only_what_its_place_allows(crate: Path) -> None:
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    assert manifest["package"]["name"] == f"framegauge-{crate.name}"
    # Its own tests may use a feature of it.
    extra = set(used_crates(manifest)) - MAY_USE[crate.name] - {crate.name}
    assert not extra, f"{crate.name} may not use {', '.join(sorted(extra))}"


def test_the_rules_themselves_have_no_circle() -> None:
    done: set[str] = set()
    while ready := {name for name, uses in MAY_USE.items() if name not in done and uses <= done}:
        done |= ready
    assert done == set(MAY_USE)


def test_no_crate_hands_on_another_one_whole() -> None:
    whole = re.compile(r"^\s*pub use framegauge_\w+(?: as \w+)?;", re.MULTILINE)
    assert not [named(path) for path in RUST if whole.search(path.read_text())]


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_only_linux_and_what_is_preloaded_may_hold_unsafe_code(crate: Path) -> None:
    lints = tomllib.loads((crate / "Cargo.toml").read_text()).get("lints", {})
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["lints"]
    # `forbid` cannot be taken back further down, so the compiler does the rest.
    assert workspace["rust"]["unsafe_code"] == "forbid"
    assert workspace["clippy"]["disallowed_methods"] == "deny"
    assert (lints == {"workspace": True}) == (crate.name not in ("linux", "nodelay"))
    assert lints == {"workspace": True} or lints["clippy"]["undocumented_unsafe_blocks"] == "deny"


def test_pure_crates_never_lift_the_ban_on_clocks_sockets_and_files() -> None:
    lifted = re.compile(r"\b(?:allow|expect)\s*\([^)]*\bdisallowed_methods\b")
    for path in RUST:
        if lifted.search(path.read_text()) and crate_of(path) not in IMPURE:
            folder = path.relative_to(ROOT / "crates").parts[1]
            assert folder in ("examples", "tests", "benches"), named(path)


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and length of every function. rustfmt closes each at the indentation at which it begins."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if not (begun := re.match(r"( *)(?:pub(?:\([^)]*\))? |const |unsafe |extern \"C\" |async )*fn (\w+)", line)):
            continue
        for end in range(start, len(lines)):
            if lines[end] == begun[1] + "}" or (end == start and line.endswith("}")) or lines[end].endswith(";"):
                if lines[end].endswith(";") and any(each.endswith("{") for each in lines[start : end + 1]):
                    continue  # a statement of the body, not the end of a declaration
                yield begun[2], end - start + 1
                break


def test_functions_are_measured_to_their_own_end() -> None:
    text = "impl A {\n    fn a(&self) {\n        b();\n    }\n    fn c();\n}\nfn d() {}\n"
    assert list(functions(text)) == [("a", 3), ("c", 1), ("d", 1)]


@pytest.mark.parametrize("path", RUST, ids=named)
def test_rust_functions_are_short(path: Path) -> None:
    text = path.read_text()
    if re.search(r"^//!.*longer than", text, re.IGNORECASE | re.MULTILINE):
        return
    long = [f"{name}: {length} lines" for name, length in functions(text) if length > LONGEST_FUNCTION]
    assert not long, f"functions above {LONGEST_FUNCTION} lines: {', '.join(long)}"


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the project."""
    for folder, inner, files in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in SKIPPED and not name.endswith(("_cache", ".egg-info"))]
        for name in files:
            path = Path(folder, name)
            try:
                yield path, path.read_text()
            except (UnicodeDecodeError, FileNotFoundError):
                continue


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    own = re.escape(str(ROOT)) if len(ROOT.parts) > 2 else r"(?!)"
    machine = re.compile(rf"{own}(?![\w.-])|/(?:home|Users)/\w+/")
    found = [named(path) for path, text in texts() if machine.search(text)]
    assert not found
