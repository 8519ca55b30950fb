"""Checks on real hosts: requests held to the pipe's schema, namespaces made by hand, the command itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
from helpers.support import PATIENCE_SECONDS, PIPE_SCHEMA as PIPE, ROOT

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.check import plan as check_plan
from framegauge.labs import file as lab_file
from framegauge.testbeds.lab import LabTestbed

Json = dict[str, Any]


def ask_all(members: Any, method: str, *rest: Any) -> dict[str, Json]:
    """As a check does, and every answer is what the pipe's schema says."""
    answers = check_plan.ask_all(members, method, *rest)
    result = validator(method)
    for answer in answers.values():
        result.validate(answer)
    return answers


@cache
def validator(method: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{method}.result", "$defs": PIPE["$defs"]})


@contextlib.contextmanager
def namespaces(mtu: int) -> Iterator[tuple[str, str]]:
    """Two named namespaces, joined by a veth pair; gone afterwards."""
    names = f"fgtest-a-{os.getpid()}", f"fgtest-b-{os.getpid()}"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "fgtest0", "netns", names[0], "type", "veth", "peer", "name", "fgtest0", "netns", names[1])
        for number, name in enumerate(names, 1):
            ip("-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "fgtest0")
            ip("-n", name, "link", "set", "fgtest0", "mtu", "9000" if number == 1 else str(mtu), "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def run(*words: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "framegauge", "check", *words],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, user=user,
    )  # fmt: skip


@contextlib.contextmanager
def lab(name: str) -> Iterator[LabTestbed]:
    """An example, or a network as text."""
    with Agent.open([find_agent(), "rack"]) as agent:
        bed = LabTestbed(agent)
        bed.up(lab_file.load(ROOT / f"examples/faults/{name}.yaml" if "\n" not in name else name).network)
        yield bed
        bed.down()
