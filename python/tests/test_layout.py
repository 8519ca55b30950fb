"""The direction and the budgets of design.md section 3."""

import ast
import re

import pytest
from support import ROOT

PACKAGE = ROOT / "python/src/framegauge"
SOURCES = sorted(PACKAGE.rglob("*.py"))
BOTTOM = {"errors", "quantities", "margins", ""}
NETWORK = {"topologies", "disciplines"}
SHAPE = {
    "study_types", "study_workloads", "study_sizes", "study_margins", "study_testbed", "study_queue", "study_network",
    "study_network_rules", "study_topology", "study_changes", *NETWORK,
}  # fmt: skip
STUDY = {"study", "study_file", "blocks"} | SHAPE
# What each module or package may use, besides itself.
MAY_USE = {
    "": set(),
    "errors": set(),
    "quantities": {"errors"},
    "margins": set(),
    "arguments": set(),
    "study_types": BOTTOM,
    "study_sizes": BOTTOM | {"study_types"},
    "study_workloads": BOTTOM | {"study_types", "study_sizes"},
    "study_margins": BOTTOM | {"study_types"},
    "machines": BOTTOM | {"study_types"},
    "topologies": set(),
    "disciplines": {"quantities"},
    "study_queue": BOTTOM | {"study_types", "disciplines"},
    "study_network": BOTTOM | {"study_types", "study_queue", "disciplines"},
    "study_topology": BOTTOM | {"study_types", "topologies"},
    "study_testbed": BOTTOM | {"study_types", "study_network", "study_topology", "machines"},
    "study_network_rules": BOTTOM | {"study_types", "study_topology", "study_testbed"} | NETWORK,
    "study_changes": BOTTOM | {"study_types", "study_queue", "study_testbed"} | NETWORK,
    "study": BOTTOM | SHAPE,
    "yaml_file": BOTTOM | {"study_types"},
    "study_file": BOTTOM | {"study", "yaml_file", "inventory", "machines"} | SHAPE,
    "lab": BOTTOM | {"study_types"},
    "lab_plan": BOTTOM | {"lab"},
    "lab_commands": BOTTOM | {"lab", "lab_plan"},
    "lab_file": BOTTOM | {"lab", "lab_plan", "yaml_file", "study_types"},
    "blocks": BOTTOM | {"study"},
    "statistics": BOTTOM,
    "claim": {"errors"},
    "results": BOTTOM | {"claim"},
    "agent": BOTTOM,
    "ssh": BOTTOM | {"agent"},
    "inventory": BOTTOM | {"yaml_file", "machines"},
    "testbeds": BOTTOM | {"agent", "ssh", "machines", "standing", "lab", "lab_plan", "lab_commands"} | NETWORK,
    "workloads": BOTTOM | {"testbeds.base"},
    "proof_nic": BOTTOM | {"testbeds.base"},
    "proof_network": BOTTOM | {"testbeds.base", "proof_nic"} | NETWORK,
    "proof_changes": BOTTOM | {"testbeds.base", "rack_settings"},
    "proof": BOTTOM | {"testbeds.base", "proof_nic", "proof_network", "proof_changes"},
    "fidelity": BOTTOM | {"testbeds.base", "rack_settings"},
    "conservation": BOTTOM | {"testbeds.base", "proof_nic"},
    "costs": BOTTOM | {"testbeds.base"},
    "queueing": BOTTOM,
    "steady": BOTTOM,
    "standing": set(),
    "pathmtu": BOTTOM,
    "planning": BOTTOM | STUDY | {"rack_settings", "testbeds.base", "workloads"},
    "runner": BOTTOM
    | STUDY
    | {
        "agent",
        "planning",
        "testbeds.base",
        "workloads.base",
        "results",
        "proof",
        "fidelity",
        "conservation",
        "costs",
        "queueing",
        "steady",
    },
    "imports": BOTTOM,
    "report": BOTTOM
    | {"results", "standing", "statistics", "pathmtu", "plots", "imports.samples", "disciplines", "rack_settings"},
    "windows": {"errors"},
    "sources": BOTTOM | {"windows", "imports", "results", "report.summary", "statistics"},
    "plots": BOTTOM,
    "documents": BOTTOM | {"results", "report", "plots"},
    "progress": BOTTOM | {"runner"},
    "forecast": BOTTOM | STUDY | {"planning", "statistics", "report.words"},
    "commands": {"*"},
    "cli_plan": {"*"},
    "keeper": set(),
    "kept": {"errors", "keeper"},
    "kept_agent": {"errors", "agent", "keeper", "kept"},
    "port_rates": BOTTOM,
    "rack_settings": BOTTOM | {"topologies"},
    "screen": set(),
    "hand": BOTTOM
    | STUDY
    | {"lab_file", "agent", "keeper", "kept", "kept_agent", "planning", "rack_settings", "testbeds"},
    "cli_rack": {
        "arguments",
        "quantities",
        "errors",
        "study_file",
        "lab_file",
        "hand",
        "port_rates",
        "rack_settings",
        "screen",
    },
    "wire": BOTTOM | {"agent"},
    "cli_wire": {"quantities", "errors", "wire"},
    "check_addresses": set(),
    "check_plan": BOTTOM | {"check_addresses", "pathmtu", "testbeds.base"},
    "announce": BOTTOM | {"machines", "study", "testbeds.leases"},
    "hosts": BOTTOM | {"check_plan", "machines", "ssh", "testbeds"},
    "cli_hosts": {"errors", "hosts", "inventory"},
    "reach": BOTTOM | {"check", "check_plan", "testbeds.base"},
    "check_pairs": {"check_plan", "pathmtu", "testbeds.base"},
    "check_echo": BOTTOM | {"check_addresses", "check_plan", "check_pairs", "pathmtu", "testbeds.base"},
    "check": {"check_echo", "check_pairs", "check_plan", "pathmtu", "testbeds.base"},
    "check_hosts": BOTTOM | {"agent", "ssh", "machines", "check_plan", "hand", "lab_file", "study_file", "testbeds"},
    "check_metrics": BOTTOM,
    "cli_check": {"*"},
    "cli_compare": BOTTOM | {"report", "sources", "statistics.judge"},
    "cli": {"*"},
}
LONGEST_FILE, LONGEST_FUNCTION = 400, 60


def module(path):
    name = str(path.relative_to(PACKAGE).with_suffix("")).replace("/", ".")
    return name.removesuffix("__init__").rstrip(".")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_direction(path):
    own = module(path).split(".")[0]
    allowed = MAY_USE[own]
    for name in imports(path):
        if not name.startswith("framegauge"):
            continue
        used = name.removeprefix("framegauge").lstrip(".")
        if used.split(".")[0] == own or "*" in allowed or used.startswith("__version__"):
            continue
        assert any(used == each or used.startswith(f"{each}.") for each in allowed if each), f"{own} may not use {used}"


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


def test_only_the_cli_prints():
    for path in SOURCES:
        calls = [
            node for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]  # fmt: skip
        assert not calls or module(path) in (
            "cli", "cli_check", "cli_compare", "cli_hosts", "cli_plan", "cli_rack", "cli_wire",
        )  # fmt: skip


RUST = sorted(path for path in (ROOT / "crates").rglob("src/**/*.rs") if "target" not in path.parts)


@pytest.mark.parametrize("path", RUST, ids=lambda path: str(path.relative_to(ROOT)))
def test_rust_budgets(path):
    text = path.read_text()
    if path.name == "tests.rs" or re.search(r"^//!.*longer than", text, re.IGNORECASE | re.MULTILINE):
        return
    code = re.split(r"^\s*#\[cfg\(test\)\]\s*\n\s*mod ", text, maxsplit=1, flags=re.MULTILINE)[0]
    assert code.count("\n") <= LONGEST_FILE
