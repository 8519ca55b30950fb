"""Budgets of files and functions, docstrings, and who may print. Who may use whom: import-linter, in pyproject.toml."""

import ast
import re
import tomllib

import pytest
from helpers.support import ROOT

PACKAGE = ROOT / "python/src/framegauge"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 400, 60


def module(path):
    name = str(path.relative_to(PACKAGE).with_suffix("")).replace("/", ".")
    return name.removesuffix("__init__").rstrip(".")


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_python_budgets(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, node.name


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_everything_public_is_documented(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "module"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            nested = any(
                node in ast.walk(other) and node is not other
                for other in ast.walk(tree)
                if isinstance(other, ast.FunctionDef)
            )
            assert nested or ast.get_docstring(node), node.name


PRINTERS = {
    "cli.output",
    "cli.console",
    "testbeds.fake.agent",
    "apps.web.driver",
    "apps.iscsi.client",
    "apps.nfs.client",
}


def prints(tree):
    """What writes to a stream of the process past cli/output.py and cli/console.py."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "Console"):
            yield node.func.id
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr", "sys.__stdout__"):
            yield ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and node.module == "sys":
            yield "from sys"


def test_everything_is_printed_at_one_place():
    """Where words from outside are made printable; argparse prints what arguments.py gives to it."""
    found = {module(path): set(prints(ast.parse(path.read_text()))) for path in SOURCES}
    assert {name for name, ways in found.items() if ways} <= PRINTERS


def test_the_contracts_name_every_room():
    """Rooms that no contract names would be free to use anything."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    named = {room for layer in layers for room in layer.split(" | ")}
    assert named == {module(path).split(".")[0] for path in SOURCES} - {"", "__main__"}


def test_tests_mirror_the_rooms():
    """Real hosts are tested in rack/, so the tests of the room rack, which need none, are in hand/."""
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__", "presets"}
    tests = {path.name for path in (ROOT / "python/tests").iterdir() if path.is_dir()} - {"__pycache__"}
    assert tests - rooms == {"browser", "documents", "hand", "helpers", "install", "recorded"}


RUST = sorted(path for path in (ROOT / "crates").rglob("src/**/*.rs") if "target" not in path.parts)


@pytest.mark.parametrize("path", RUST, ids=lambda path: str(path.relative_to(ROOT)))
def test_rust_budgets(path):
    text = path.read_text()
    if path.name == "tests.rs" or re.search(r"^//!.*longer than", text, re.IGNORECASE | re.MULTILINE):
        return
    code = re.split(r"^\s*#\[cfg\(test\)\]\s*\n\s*mod ", text, maxsplit=1, flags=re.MULTILINE)[0]
    assert code.count("\n") <= LONGEST_FILE


def test_how_many_minutes_a_long_form_takes_is_a_plain_number():
    """As `make soak` reads it, which adds them up."""
    marks = [
        mark
        for path in (ROOT / "python/tests").rglob("*.py")
        for mark in re.findall(r"\bmark\.soak\b.*", path.read_text())
    ]
    assert len(marks) > 10
    assert [mark for mark in marks if not re.match(r"mark\.soak\(\d+(\.\d+)?\)", mark)] == []
