"""Studies of one's own hosts, one of which is in other hands after the first run: each run says so in one line, the
other host is put back, and the results can be read (helpers/evil_study.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import evil
from helpers.evil_study import ABSURD, ALL, ENDLESS, LINES, Done, perform
from helpers.own_hosts import Network
from helpers.support import by_length

from framegauge.cli import commands, documents
from framegauge.testbeds.leases import Change, Leases

pytestmark = pytest.mark.soak(8)
MEGABYTES = 100  # more than a good study takes: lines of 16 MiB, with what is made of them
EVERYWHERE = (
    "check.facts", "check.routes", "check.serve", "check.run", "check.close", "host.adopt", "host.read",
    "host.counters", "frames.wire", "sockets.read", "lease.begin", "lease.end", "held.begin", "held.end", "cpu.begin",
    "cpu.end",
)  # fmt: skip
# By method, the workload and the host that is in other hands.
CASES = [
    *((method, "stream", "h2") for method in EVERYWHERE),
    *((method, "stream", "h2") for method in ("stream.serve", "stream.close")),
    *((method, "stream", "h1") for method in ("stream.run", "spool.read", "spool.drop")),
    *((method, "rr", "h2") for method in ("rr.serve", "rr.close")),
    ("rr.run", "rr", "h1"),
    ("rr.close", "incast", "h1"),
    *((method, "incast", "h2") for method in ("incast.run", "spool.read")),
    ("stream.close", "mixed", "h2"),
    *((method, "mixed", "h1") for method in ("stream.run", "rr.run", "spool.read")),
    *((f"host.{name}", "command", "h2") for name in ("folder", "files", "list", "fetch", "clear")),
    ("host.list", "command", "h1"),
    *((f"process.{name}", "command", "h2") for name in ("spawn", "wait", "ready", "kill")),
    *((f"process.{name}", "command", "h1") for name in ("wait", "output")),
    *((f"sockets.{name}", "command", host) for name in ("watch", "watched") for host in ("h1", "h2")),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, for results; in the end nobody renews a lease."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        yield Path(place) / "out"
    assert not [thread for thread in threading.enumerate() if thread.name == "leases"]


def in_order(done: Done, host: str) -> None:
    """What holds whatever the host does: the other is put back, and what is said are printable lines."""
    network = done.network
    assert not network.unbounded
    (other,) = {"h1", "h2"} - {host}
    assert network.mtu[other] == 1500
    assert {how for _, name, how in network.ended if name == other} <= {"end"}
    for line in [*done.said, *(line for run in done.runs for line in run.excluded)]:
        assert line.isprintable(), line
        assert len(line) < 1500, line
    if done.error is not None:
        lines = str(done.error).splitlines()
        assert len(lines) <= 20
        assert all(line.isprintable() and len(line) < 1500 for line in lines), lines


def readable(done: Done) -> dict[str, Any]:
    """The summary that `report` makes of the folder."""
    found, _ = commands.report(done.folder, documents.Wanted())
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "workload", "host"), CASES)
def test_a_run_with_spoilt_answers_is_one_line_of_its_host(method: str, workload: str, host: str, folder: Path) -> None:
    place = CASES.index((method, workload, host))
    names = [name for number, name in enumerate(ALL) if name in ABSURD or number % 12 == place % 12 or by_length(0, 1)]
    if method == "lease.begin":  # an error there ends a study: the host's user may not change it
        names = [name for name in names if not name.startswith("error with escapes")]
    done = perform(folder, workload, host, method, [ALL[name] for name in names])
    complete(done, host, method)
    for name, run in zip(names, done.runs[1:], strict=False):
        if name in LINES and run.number in done.spoilt and method not in ("check.close", "lease.end", "sockets.read"):
            (line,) = run.excluded
            assert line.startswith("error: "), (name, line)
            assert host in line, (name, line)


def complete(done: Done, host: str, method: str) -> None:
    """Every run is there, the first one counts, and the results can be read."""
    assert method in done.network.asked
    in_order(done, host)
    assert done.error is None, done.error
    assert done.outcome is not None
    assert len(done.runs) == done.outcome.planned
    assert done.runs[0].excluded == []
    assert all(len(run.excluded) <= 21 for run in done.runs)
    assert json.dumps(readable(done), allow_nan=False)
    assert (done.folder / "report.html").stat().st_size < 20_000_000
    saved = {path.relative_to(done.folder).parts[-1] for path in done.folder.rglob("*")}
    assert not {name for name in saved if "passwd" in name}


@pytest.mark.thorough
@pytest.mark.parametrize("method", ENDLESS)
def test_what_has_no_end_or_leads_elsewhere_is_given_up(method: str, folder: Path) -> None:
    ways = ENDLESS[method]
    host, workload = "h1", "rr" if method == "spool.read" else "command"
    done = perform(folder, workload, host, method, list(ways.values()))
    complete(done, host, method)
    found = {name: run.excluded for name, run in zip(ways, done.runs[1:], strict=False)}
    harmless = {
        "host.list": ("size", "the same"),
        "host.fetch": ("bytes", "nothing"),
        "spool.read": ("without columns",),
    }.get(method, ())
    for name, excluded in found.items():
        assert len(excluded) == (0 if name in harmless else 1), (name, excluded)


# Error answers of the right shape, after which it may be right not to go on.
ENDINGS: dict[str, dict[str, Any]] = {
    "refused": {"code": -32003, "message": "x", "data": {"what": evil.ESCAPES, "asked": 1, "limit": [evil.ESCAPES]}},
    "lacking": {
        "code": -32002,
        "message": "x",
        "data": {
            "missing": 1000
            * [{"name": "tap", "needed_for": evil.ESCAPES, "found": evil.ESCAPES, "remedy": evil.ESCAPES}]
        },
    },
    "unknown": {"code": -32601, "message": "x", "data": {"method": evil.ESCAPES}},
    "denied": {"code": -32004, "message": "x", "data": {"operation": "x", "errno": 1, "error": evil.ESCAPES}},
}


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "workload", "host"), CASES)
def test_an_error_answer_ends_a_run_or_the_study_in_order(method: str, workload: str, host: str, folder: Path) -> None:
    place = CASES.index((method, workload, host))
    for number, (name, error) in enumerate(ENDINGS.items()):
        if number % 4 != place % 4 and by_length(True, False):
            continue
        done = perform(
            folder / name, workload, host, method, [lambda answer, error=error: evil._error(answer, error)] * 2
        )
        assert method in done.network.asked
        in_order(done, host)
        assert done.error is None or done.error.exit_code in (1, 2)
        assert done.runs[0].excluded == []
        assert json.dumps(readable(done), allow_nan=False)


@pytest.mark.parametrize("name", ENDINGS)
def test_a_host_that_refuses_to_renew_takes_no_lease_from_another(name: str) -> None:
    renewed, asked = threading.Event(), [0]

    def spoil(method: str, _run: int, answer: evil.Message) -> bytes | None:
        if method in ("lease.renew", "lease.end"):
            asked[0] += 1
            return evil._error(answer, ENDINGS[name])
        return None

    network = Network(("h1", "h2"), "h1", spoil)
    network.begin()
    agents = {host: network.open(host) for host in network.names}
    leases = Leases(0.01)
    renewals = [0]
    answer = agents["h2"]._answer

    def counted(method: str, params: dict[str, Any]) -> dict[str, Any]:
        renewals[0] += method == "lease.renew"
        if renewals[0] == 3:
            renewed.set()
        return answer(method, params)

    agents["h2"]._answer = counted
    leases.begin([Change(host, agent, {"mtu:eth0": "9000"}, sudo=False) for host, agent in agents.items()])
    leases.keep()
    assert renewed.wait(20)
    (line,) = leases.end()
    assert list(leases.lost) == ["h1"]
    assert line.startswith("h1: not confirmed; ")
    assert line.isprintable()
    assert network.ended[-1][1:] == ("h2", "end")


def test_what_was_not_put_back_is_in_the_results(folder: Path) -> None:
    def left(answer: evil.Message) -> bytes:
        row = {
            "what": "the MTU of m0",
            "found": "1500",
            "expected": "9000",
            "commands": ["ip link set dev m0 mtu 9000"],
        }
        return evil._told(answer, result={"ended": "end", "restored": False, "failed": "the MTU", "differs": [row]})

    done = perform(folder, "stream", "h1", "lease.end", [left, left])
    line = "h1: not as it was: the MTU of m0: found 1500, expected 9000; to mend it: ip link set dev m0 mtu 9000"
    touched = [run for run in done.runs if run.readings.get("not_restored")]
    assert touched
    assert all(run.readings["not_restored"] == [line] and not run.excluded for run in touched)
    assert line in done.said
    assert f"not everything was put back after run {touched[0].number}: {line}" in readable(done)["caveats"]


# Runs a good study, then what takes most memory, and says how much more that took at most while runs were made.
MEASURED = """
import resource, sys, tempfile
from pathlib import Path
from unittest.mock import patch
sys.path.insert(0, sys.argv[1])
from framegauge.cli import commands
from helpers import evil_study

taken = []
def written(journal):
    taken.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    raise evil_study.FramegaugeError("enough")

with tempfile.TemporaryDirectory() as folder, patch.object(commands, "write_tables", written):
    for number, (workload, host, method, names) in enumerate(eval(sys.argv[2])):
        ways = [(evil_study.ALL | evil_study.ENDLESS.get(method, {}))[name] for name in names]
        evil_study.perform(Path(folder) / str(number), workload, host, method, ways)
print(taken[-1] - taken[0])
"""
LARGE = ("many", "deep", "big line", "rows", "long")
HEAVY = [
    ("stream", "h2", "host.read", ()),
    ("stream", "h2", "host.read", LARGE),
    ("stream", "h2", "host.counters", LARGE),
    ("command", "h1", "sockets.watched", LARGE),
    ("command", "h1", "process.output", ("pieces", "numbers")),
    ("command", "h1", "host.fetch", ("pieces",)),
    ("command", "h1", "host.list", ("many", "listed")),
    ("rr", "h1", "spool.read", ("size", "misled")),
]


@pytest.mark.thorough
def test_the_controller_stays_small() -> None:
    words = [sys.executable, "-c", MEASURED, str(Path(__file__).parents[1]), repr(HEAVY)]
    done = subprocess.run(words, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert int(done.stdout) < MEGABYTES
