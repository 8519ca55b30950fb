"""Tests that need the real agent and root. Outside CI, what cannot run is listed with its reason; with CI=true it fails."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.support import NotRun

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import FramegaugeError

pytest.register_assert_rewrite("helpers.real", "helpers.networks", "helpers.over_ssh")

HERE = Path(__file__).parent
not_run = NotRun()


def reason_not_to_run() -> str | None:
    """Why the rack cannot be built here; None if it can."""
    if os.geteuid() != 0:
        return "needs root (namespaces and TAP): run `sudo -E make test`"
    try:
        with Agent.open([find_agent(), "rack"]) as agent:
            missing = agent.request("requirements", {"testbed": "fabric", "bits_per_second": 200_000_000})["missing"]
    except FramegaugeError as error:
        return str(error).splitlines()[0]
    return "; ".join(f"missing {item['name']}: {item['remedy']}" for item in missing) or None


reason_not_to_run_once = functools.cache(reason_not_to_run)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mine = [item for item in items if HERE in item.path.parents]
    reason = reason_not_to_run_once() if mine else None
    for item in mine:
        item.add_marker("rack")
        if reason is not None:
            not_run.count(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if HERE in item.path.parents and (reason := reason_not_to_run_once()):
        not_run.stop(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    not_run.tell(terminalreporter)


@pytest.fixture(scope="session")
def rack_agent() -> Iterator[Agent]:
    """A real rack agent for the session."""
    with Agent.open([find_agent(), "rack"]) as agent:
        yield agent
