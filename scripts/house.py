"""The rules of this project that no other tool knows: budgets, docstrings, who may print, what crates may use.

    scripts/house.py [FOLDER]

Every file is read once. All offenders are listed, a line each; 1 if there are any. Who may use whom in Python:
import-linter, in pyproject.toml. Why the rules are as they are: CONTRIBUTING.md.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

LONGEST_FILE, LONGEST_FUNCTION = 400, 60
PURE = {"frames", "packets", "fabric", "networks", "pathmtu", "diagnosis", "traffic", "metering", "simulator"}
# What each crate may use of the others; external crates are free.
MAY_USE: dict[str, set[str]] = {
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
UNSAFE = {"linux", "nodelay"}
# What writes to a stream of the process; argparse prints what arguments.py gives to it.
PRINTERS = {
    "cli/output.py", "cli/enduring.py", "cli/console.py", "testbeds/fake/agent.py", "apps/web/driver.py",
    "apps/iscsi/client.py", "apps/nfs/client.py",
}  # fmt: skip
VAGUE = {"asked", "found", "listed", "mine", "said", "told"}
# Folders of tests that are no room. The tests of the room rack, which need no hosts, are in hand/.
NO_ROOMS = {"browser", "documents", "hand", "helpers", "install", "recorded"}
JUDGES = {"helpers/real.py", "helpers/unjudged.py"}  # which may end a test as not judged
SKIPPED = {".git", ".venv", "__pycache__", "node_modules"}
MADE = {"build", "dist", "results", "target", "fuzz/artifacts", "fuzz/corpus", "fuzz/target"}
IS_LONG = re.compile(r"^//!.*longer than", re.IGNORECASE | re.MULTILINE)  # with a reason at the head of the file

Offenders = Iterator[str]


class Tree:
    """The files of the project, each read and parsed once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def texts(self) -> dict[str, str]:
        """Every text file, by its path."""
        texts = {}
        for folder, inner, files in os.walk(self.root):
            place = Path(folder).relative_to(self.root)
            inner[:] = [
                name
                for name in inner
                if name not in SKIPPED and str(place / name) not in MADE and not name.endswith(("_cache", ".egg-info"))
            ]
            for name in files:
                path = Path(folder, name)
                try:
                    texts[str(path.relative_to(self.root))] = path.read_text()
                except (UnicodeDecodeError, FileNotFoundError):
                    continue
        return texts

    def below(self, folder: str, suffix: str) -> dict[str, str]:
        """The texts of a folder, by their paths in it."""
        return {
            path.removeprefix(f"{folder}/"): text
            for path, text in self.texts.items()
            if path.startswith(f"{folder}/") and path.endswith(suffix)
        }

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        """Python's modules, by their paths in the package."""
        return {path: ast.parse(text) for path, text in self.below("python/src/framegauge", ".py").items()}

    @cached_property
    def rust(self) -> dict[str, str]:
        """The sources of all crates, by their paths in crates/."""
        return self.below("crates", ".rs")

    @cached_property
    def manifests(self) -> dict[str, dict[str, Any]]:
        """The manifest of each crate."""
        manifests = self.below("crates", "/Cargo.toml").items()
        return {path.split("/")[0]: tomllib.loads(text) for path, text in manifests if path.count("/") == 1}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Of pyproject.toml."""
        return tomllib.loads(self.texts.get("pyproject.toml", ""))


def used_crates(manifest: dict[str, Any]) -> Iterator[str]:
    """Crates of ours that a manifest depends on, for builds and tests alike."""
    for table in (manifest, *manifest.get("target", {}).values()):
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, value in table.get(kind, {}).items():
                real = value.get("package", name) if isinstance(value, dict) else name
                if real.startswith("framegauge-"):
                    yield real.removeprefix("framegauge-")


def crates_use_only_what_their_place_allows(tree: Tree) -> Offenders:
    """Its own tests may use a feature of a crate."""
    for crate, manifest in tree.manifests.items():
        if (name := manifest["package"]["name"]) != f"framegauge-{crate}":
            yield f"crates/{crate}/Cargo.toml: found the name {name}, expected framegauge-{crate}"
        if crate not in MAY_USE:
            yield f"crates/{crate}: found a crate without a place in scripts/house.py, expected one"
        for extra in sorted(set(used_crates(manifest)) - MAY_USE.get(crate, set()) - {crate}):
            yield f"crates/{crate}/Cargo.toml: may not use {extra}"


def places_have_no_circle(_: Tree) -> Offenders:
    """What each crate may use lies below it."""
    done: set[str] = set()
    while ready := {name for name, uses in MAY_USE.items() if name not in done and uses <= done}:
        done |= ready
    yield from (f"scripts/house.py: {name} may use what may use it" for name in sorted(set(MAY_USE) - done))


def no_crate_hands_on_another_one_whole(tree: Tree) -> Offenders:
    """What a crate uses is not a part of it."""
    whole = re.compile(r"^\s*pub use framegauge_\w+(?: as \w+)?;", re.MULTILINE)
    yield from (f"crates/{path}: hands on a crate whole" for path, text in tree.rust.items() if whole.search(text))


def only_linux_and_what_is_preloaded_hold_unsafe_code(tree: Tree) -> Offenders:
    """`forbid` cannot be taken back further down, so the compiler does the rest."""
    workspace = tomllib.loads(tree.texts.get("Cargo.toml", "")).get("workspace", {}).get("lints", {})
    for tool, lint, level in (("rust", "unsafe_code", "forbid"), ("clippy", "disallowed_methods", "deny")):
        if workspace.get(tool, {}).get(lint) != level:
            yield f"Cargo.toml: expected {lint} = {level!r} for the workspace"
    for crate, manifest in tree.manifests.items():
        lints = manifest.get("lints", {})
        if (lints == {"workspace": True}) == (crate in UNSAFE):
            yield f"crates/{crate}/Cargo.toml: expected lints {'of its own' if crate in UNSAFE else 'of the workspace'}"
        elif crate in UNSAFE and lints.get("clippy", {}).get("undocumented_unsafe_blocks") != "deny":
            yield f"crates/{crate}/Cargo.toml: expected undocumented_unsafe_blocks = 'deny'"


def pure_crates_never_lift_the_ban_on_clocks_sockets_and_files(tree: Tree) -> Offenders:
    """Their examples, tests and benches may."""
    lifted = re.compile(r"\b(?:allow|expect)\s*\([^)]*\bdisallowed_methods\b")
    for path, text in tree.rust.items():
        crate, folder = path.split("/")[:2]
        if crate not in IMPURE and folder not in ("examples", "tests", "benches") and lifted.search(text):
            yield f"crates/{path}: lifts the ban on clocks, sockets and files"


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and length of every function in Rust. rustfmt closes each at the indentation at which it begins."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if not (begun := re.match(r"( *)(?:pub(?:\([^)]*\))? |const |unsafe |extern \"C\" |async )*fn (\w+)", line)):
            continue
        for end in range(start, len(lines)):
            if lines[end] == begun[1] + "}" or (end == start and line.endswith("}")) or lines[end].endswith(";"):
                if lines[end].endswith(";") and any(line.endswith("{") for line in lines[start : end + 1]):
                    continue  # a statement of the body, not the end of a declaration
                yield begun[2], end - start + 1
                break


def functions_of_rust_are_short(tree: Tree) -> Offenders:
    """All of them, tests included."""
    for path, text in tree.rust.items():
        for name, length in () if IS_LONG.search(text) else functions(text):
            if length > LONGEST_FUNCTION:
                yield f"crates/{path}: {name} has {length} lines, expected at most {LONGEST_FUNCTION}"


def files_of_rust_are_short(tree: Tree) -> Offenders:
    """Without their tests."""
    for path, text in tree.rust.items():
        parts = path.split("/")
        if "src" not in parts[:-1] or parts[-1] == "tests.rs" or IS_LONG.search(text):
            continue
        code = re.split(r"^\s*#\[cfg\(test\)\]\s*\n\s*mod ", text, maxsplit=1, flags=re.MULTILINE)[0]
        if (lines := code.count("\n")) > LONGEST_FILE:
            yield f"crates/{path}: {lines} lines, expected at most {LONGEST_FILE}"


def every_file_of_tests_is_named(tree: Tree) -> Offenders:
    """A file in tests/all that its main.rs does not name would not be compiled, nor its tests be run."""
    for path in tree.rust:
        folder, _, name = path.rpartition("/")
        named = f"\nmod {name.removesuffix('.rs')};\n" in tree.rust.get(f"{folder}/main.rs", "")
        if folder.endswith("/tests/all") and name != "main.rs" and not named:
            yield f"crates/{path}: main.rs beside it does not name it"


def files_and_functions_of_python_are_short(tree: Tree) -> Offenders:
    """Of the package."""
    for path, text in tree.below("python/src/framegauge", ".py").items():
        if (lines := text.count("\n")) > LONGEST_FILE:
            yield f"{path}: {lines} lines, expected at most {LONGEST_FILE}"
        for node in ast.walk(tree.modules[path]):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    yield f"{path}: {node.name} has {length} lines, expected at most {LONGEST_FUNCTION}"


def everything_public_is_documented(tree: Tree) -> Offenders:
    """Modules, classes, and functions that are not inside of another."""
    for path, module in tree.modules.items():
        if not ast.get_docstring(module):
            yield f"{path}: expected a docstring"
        for node in _outside_of_functions(module):
            if not node.name.startswith("_") and not ast.get_docstring(node):
                yield f"{path}: expected a docstring of {node.name}"


def _outside_of_functions(parent: ast.AST) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _outside_of_functions(node)


def prints(module: ast.Module) -> Iterator[str]:
    """What writes to a stream of the process past cli/output.py and cli/console.py."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "Console"):
            yield node.func.id
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr", "sys.__stdout__"):
            yield ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and node.module == "sys":
            yield "from sys"


def everything_is_printed_at_one_place(tree: Tree) -> Offenders:
    """Where words from outside are made printable."""
    for path, module in tree.modules.items():
        for way in sorted(set(prints(module)) if path not in PRINTERS else ()):
            yield f"{path}: found {way}, expected printing through cli/output.py or cli/console.py"


def locals_have_names_of_things(tree: Tree) -> Offenders:
    """Who reads one of these has to look elsewhere for what it is."""
    for path, module in tree.modules.items():
        functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
        names = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Name))
        places = {(node.lineno, node.id) for node in names if isinstance(node.ctx, ast.Store) and node.id in VAGUE}
        yield from (f"{path}:{line}: found a local {name}, expected what it is" for line, name in sorted(places))


def contracts_name_every_room(tree: Tree) -> Offenders:
    """Rooms that no contract names would be free to use anything."""
    contracts = tree.settings.get("tool", {}).get("importlinter", {}).get("contracts", [])
    layers = next((contract["layers"] for contract in contracts if contract["type"] == "layers"), [])
    named = {room for layer in layers for room in layer.split(" | ")}
    rooms = {path.split("/")[0].removesuffix(".py") for path in tree.modules} - {"__init__", "__main__"}
    yield from (f"pyproject.toml: the layers name no room {room}" for room in sorted(rooms - named))
    yield from (f"pyproject.toml: found no room {room}, which the layers name" for room in sorted(named - rooms))


def tests_mirror_the_rooms(tree: Tree) -> Offenders:
    """A folder of tests has the name of what it tests."""
    rooms = {path.split("/")[0] for path in tree.modules if "/" in path}
    tests = {path.split("/")[0] for path in tree.below("python/tests", "") if "/" in path}
    yield from (f"python/tests/{folder}: found no room of this name" for folder in sorted(tests - rooms - NO_ROOMS))


def long_forms_say_their_minutes(tree: Tree) -> Offenders:
    """As a plain number: `make soak` adds them up."""
    for path, text in tree.below("python/tests", ".py").items():
        for mark in re.findall(r"\bmark\.soak\b.*", text):
            if not re.match(r"mark\.soak\(\d+(\.\d+)?\)", mark):
                yield f"python/tests/{path}: found {mark}, expected a number of minutes"


def no_test_ends_itself_as_not_judged(tree: Tree) -> Offenders:
    """Only `judged` of helpers/real.py does, which has looked at the reasons."""
    using = re.compile(r"\bNotJudged\b|\bunjudged(?:\.not_judged| import)")
    for path, text in tree.below("python/tests", ".py").items():
        if path not in JUDGES and using.search(text):
            yield f"python/tests/{path}: ends tests as not judged, expected helpers.real.judged or faithful"


def no_file_names_a_path_of_the_machine_it_was_written_on(tree: Tree) -> Offenders:
    """Nobody else has it."""
    own = re.escape(str(tree.root)) if len(tree.root.parts) > 2 else r"(?!)"
    machine = re.compile(rf"{own}(?![\w.-])|/(?:home|Users)/\w+/")
    yield from (f"{path}: names a path of a machine" for path, text in tree.texts.items() if machine.search(text))


RULES: tuple[Callable[[Tree], Offenders], ...] = (
    crates_use_only_what_their_place_allows,
    places_have_no_circle,
    no_crate_hands_on_another_one_whole,
    only_linux_and_what_is_preloaded_hold_unsafe_code,
    pure_crates_never_lift_the_ban_on_clocks_sockets_and_files,
    functions_of_rust_are_short,
    files_of_rust_are_short,
    every_file_of_tests_is_named,
    files_and_functions_of_python_are_short,
    everything_public_is_documented,
    everything_is_printed_at_one_place,
    locals_have_names_of_things,
    contracts_name_every_room,
    tests_mirror_the_rooms,
    long_forms_say_their_minutes,
    no_test_ends_itself_as_not_judged,
    no_file_names_a_path_of_the_machine_it_was_written_on,
)


def main(words: list[str]) -> int:
    """List all offenders; 0 if there are none."""
    tree = Tree(Path(words[0] if words else Path(__file__).parents[1]).resolve())
    count = 0
    for rule in RULES:
        for line in rule(tree):
            count += 1
            print(f"{rule.__name__.replace('_', ' ')}: {line}")
    print(f"{count} offenders in {len(tree.texts)} files" if count else f"{len(tree.texts)} files, {len(RULES)} rules")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
