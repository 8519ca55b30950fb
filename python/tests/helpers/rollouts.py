"""Roll-outs as a user starts them, on the hosts of a lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import support
from helpers.switched import Lab

FILE = """\
hosts: {hosts}
options: {options}
interface: eth1
mtu: {mtu}
lease: {lease} s
wait: {wait} s
{more}
"""
PATIENCE_SECONDS = 90.0


def file_of(
    lab: Lab,
    folder: Path,
    *,
    mtu: int = 9000,
    lease: float = 20,
    wait: float = 0.2,
    hosts: Sequence[Any] = (),
    options: Sequence[str] = (),
    more: str = "",
) -> Path:
    """The file of a roll-out: of the lab's namespaces, or of `hosts`."""
    named = list(hosts) or [f"netns:{each}" for each in lab.hosts.values()]
    path = folder / f"to-{mtu}.yaml"
    path.write_text(
        FILE.format(
            hosts=json.dumps(named), options=json.dumps(list(options)), mtu=mtu, lease=f"{lease:g}", wait=f"{wait:g}",
            more=more,
        )
    )  # fmt: skip
    return path


def rollout(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "framegauge", "rollout", *map(str, words)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def done(*words: object) -> tuple[int, str]:
    """Exit code and output."""
    process = rollout(*words)
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    return process.returncode, said


def entries(path: Path) -> list[dict[str, Any]]:
    """What the journal of a file has by now."""
    place = path.with_suffix(".rollout") / "journal.jsonl"
    lines = place.read_text().split("\n")[:-1] if place.exists() else []
    return [json.loads(line) for line in lines]


def has(path: Path, event: str, **more: object) -> Callable[[], bool]:
    """Whether the journal has an entry."""
    return lambda: any(
        entry["event"] == event and all(entry.get(key) == value for key, value in more.items())
        for entry in entries(path)
    )


def until(what: Callable[[], bool], seconds: float = PATIENCE_SECONDS, pause: float = 0.01) -> bool:
    """Waits until it is so; whether it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(pause)
    return what()


def reached(process: subprocess.Popen[str], path: Path, event: object, **more: object) -> None:
    """Waits until the journal has an entry; fails with what the roll-out said if it ends without."""
    there = has(path, str(event), **more)
    until(lambda: there() or process.poll() is not None, support.PATIENCE_SECONDS)
    if not there():
        process.kill()
        pytest.fail(f"no {event} {more} in the journal:\n{process.communicate()[0]}")


def agents_in(lab: Lab, name: str) -> list[int]:
    """Process ids of host agents of a namespace."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"host" in words[1:2] and lab.hosts[name].encode() in words:
            found.append(int(pid))
    return found
