"""Every crate and package has a licence that is allowed and comes from its registry, and the list of them is current."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest
from helpers.support import ROOT

SCRIPT = ROOT / "scripts/dependencies.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("dependencies", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    # Dataclasses look their module up by its name.
    module = sys.modules["dependencies"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.needs("cargo")
def test_what_this_depends_on_is_allowed_and_listed() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("expression", "is_allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("", False),
        ("MIT OR GPL-3.0-only", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only AND MIT", False),
        ("GPL-3.0-only AND MIT OR MIT", True),
        ("MIT OR MIT AND GPL-3.0-only", True),
        ("(MIT OR GPL-3.0-only) AND ISC", True),
        ("(MIT OR ISC) AND GPL-3.0-only", False),
        ("ISC WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
        ("MIT ISC", False),
        ("(MIT", False),
        ("MIT)", False),
    ],
)
def test_an_expression_is_allowed_if_it_can_be_met(script: ModuleType, expression: str, is_allowed: bool) -> None:
    assert script.accepts(["MIT", "ISC", "ISC WITH LLVM-exception"], expression) is is_allowed


def test_an_exception_holds_for_its_package_alone(script: ModuleType) -> None:
    rules = {"licenses": {"allow": ["MIT"], "exceptions": [{"name": "a", "allow": ["MPL-2.0"]}]}}
    both = [script.Dependency(name, "1.0", "MPL-2.0", "tests") for name in "ab"]
    assert list(script.wrong_licences(both, rules)) == [
        "b 1.0: found the licence 'MPL-2.0', expected one that deny.toml allows"
    ]


def test_a_crate_that_is_there_twice_needs_a_reason(script: ModuleType) -> None:
    twice = [script.Dependency("syn", version, "MIT", "tests") for version in ("2.0.119", "3.0.9")]

    def found(*skips: dict[str, str]) -> list[str]:
        return list(script.repeated(twice, {"bans": {"skip": list(skips)}}))

    skip = {"name": "syn", "version": "2", "reason": "others have not moved on"}
    assert found() == ["syn: found 2.0.119 and 3.0.9, expected one version, or a skip in deny.toml with its reason"]
    assert found(skip) == []
    assert found(skip | {"reason": ""}) == ["deny.toml: skip of syn: found no reason"]
    assert found(skip, skip | {"version": "20"}) == ["deny.toml: skip of syn 20: found no such crate"]


def test_crates_come_from_the_registry_and_are_fuzzed_in_the_same_version(script: ModuleType) -> None:
    good = {"name": "libc", "version": "0.2.1", "source": script.REGISTRY, "checksum": "00"}
    own = {"name": "framegauge-linux", "version": "0.1.0"}

    def found(*, agent: dict[str, str] = good, fuzz: dict[str, str] = good) -> list[str]:
        return list(script.wrong_locks({"Cargo.lock": {"package": [own, agent]}, "fuzz": {"package": [fuzz]}}))

    assert found() == []
    assert found(fuzz=good | {"name": "libfuzzer-sys", "version": "9.0.0"}) == []
    assert found(fuzz=good | {"version": "0.2.2"}) == ["fuzz: libc: found 0.2.2, expected 0.2.1, as in Cargo.lock"]
    source = {"source": "git+https://example.org/libc"}
    for wrong in (good | source, {**good, "checksum": ""}, {"name": "libc", "version": "0.2.1"}):
        assert [line.partition(": found")[0] for line in found(agent=wrong)] == ["Cargo.lock: libc 0.2.1"]


def test_a_release_of_somebody_else_does_not_make_the_list_stale(script: ModuleType) -> None:
    def page(crate: str, package: str, bounds: str = ">=1") -> list[str]:
        rust = [script.Dependency("a-crate", "1.0.0", crate, "agent")]
        python = [script.Dependency("a-package", bounds, package, "tests")]
        return script.lines_that_last(script.document(rust, python))

    assert page("MIT", "MIT") == page("MIT", "MIT AND ISC")
    assert page("MIT", "MIT") != page("ISC", "MIT")
    assert page("MIT", "MIT") != page("MIT", "MIT", ">=2")
