"""Tests of what users install. Outside CI, what cannot run is listed with its reason; with CI=true it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from helpers.support import ROOT, NotRun
from packaging.requirements import Requirement

from framegauge.agents.binary import find_agent
from framegauge.errors import AgentMissing

not_run = NotRun()
WITHOUT_CARGO = "/usr/sbin:/usr/bin:/sbin:/bin"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    not_run.tell(terminalreporter)


def stop(reason: str) -> None:
    not_run.count(reason)
    not_run.stop(reason)


@pytest.fixture(scope="session")
def static_agent() -> str:
    try:
        agent = find_agent()
    except AgentMissing as error:
        stop(str(error))
    found = subprocess.run(["ldd", agent], capture_output=True, text=True, check=False, env={"LC_ALL": "C"})
    if not any(words in found.stdout + found.stderr for words in ("statically linked", "not a dynamic executable")):
        stop(f"needs a static agent, found {agent}: make agent")
    return agent


@pytest.fixture(scope="session")
def wheel(static_agent: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make wheel` makes, after the agent and the pages."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "scripts/man.py"], cwd=ROOT, capture_output=True, check=True)
    words = ["scripts/wheel", os.uname().machine, static_agent, sys.executable, str(folder)]
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if "No matching distribution found for setuptools" in made.stderr:
        stop("needs a package index for setuptools, to build a wheel")
    assert made.returncode == 0, made.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new environment with the wheel, and with what the wheel says it depends on, from this environment."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet", "--no-deps"]
    # A PYTHONPATH would show pip the checkout, and it would find nothing left to install.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, str(wheel)], capture_output=True, check=True, env=environment)
    (packages,) = folder.glob("lib/python*/site-packages")
    (about,) = metadata.distributions(path=[str(packages)])
    for source in sources(about):
        target = packages / source.name
        if not target.exists():
            target.symlink_to(source)
    yield folder
    shutil.rmtree(folder)


def sources(about: metadata.Distribution) -> set[Path]:
    """The files and folders in site-packages of all that a distribution needs, at any depth."""
    found: set[Path] = set()
    waiting, seen = [about], set()
    while waiting:
        for text in waiting.pop().requires or []:
            need = Requirement(text)
            if need.name in seen or (need.marker is not None and not need.marker.evaluate({"extra": ""})):
                continue
            seen.add(need.name)
            each = metadata.distribution(need.name)
            waiting.append(each)
            tops = {path.parts[0] for path in each.files or [] if path.parts[0] != ".."}
            found |= {Path(str(each.locate_file(top))) for top in tops if top != "__pycache__"}
    return found


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0:
        stop("needs root (namespaces and TAP): run `sudo -E make test`")


@pytest.fixture
def environment(installed: Path, tmp_path: Path) -> dict[str, str]:
    """A user's, with neither cargo nor this clone."""
    return {"PATH": f"{installed}/bin:{WITHOUT_CARGO}", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
