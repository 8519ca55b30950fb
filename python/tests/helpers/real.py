"""What the tests on the real rack share."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.support import PATIENCE_SECONDS
from helpers.unjudged import HELD_UP, E, not_judged, reasons

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.cli import commands
from framegauge.errors import AgentMissing
from framegauge.experiment.runner import Runner
from framegauge.results.journal import Journal, Run
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.base import Conditions, Json
from framegauge.testbeds.rack import RackTestbed

RATE = 200_000_000  # low enough for a busy machine; the full rate is in bench/
UP: Mapping[str, Any] = {
    "testbed": "fabric",
    "hosts": [{"name": "h1", "mtu": 1500}, {"name": "h2", "mtu": 1500}],
    "link": {"bits_per_second": RATE, "rtt_seconds": 0.0002, "buffer_bytes": 524288, "port_mtu": 9216},
    "nic": {
        **dict.fromkeys(("tso", "lro", "gro", "checksum"), False),
        "moderation_seconds": 0.00005,
        "aggregate_bytes": 36864,
    },
    "shaper": {"factor": 0.999, "burst_bytes": 70000},
    "congestion_control": "cubic",
    "family": 4,
    "sysctls": {},
}

BASE: Mapping[str, Any] = {
    "question": "Does the rack tell the truth?",
    "control": False,
    "budget": "5 min",
    "margins": {"goodput": "1 %"},
    "retries": 1,  # of a run; `faithful` makes a study that lost a level once again
    "meters": {"idle": "0.05 s"},  # a quarter of the usual; what hosts cost is in test_costs.py
}


class Unsteady(RackTestbed):
    """A rack whose runs begin at random moments: with one a second, all of them or none would meet what another program
    does once a second."""

    def up(self, conditions: Conditions) -> Json:
        time.sleep(random.random())
        return super().up(conditions)


def study(
    kind: str = "rack",
    rate: str = "200 Mb/s",
    family: int = 4,
    stream: Mapping[str, Any] | None = None,
    factors: Mapping[str, Any] | None = None,
    blocks: int = 3,
    **rest: Any,
) -> Study:
    """A small study on the real rack; `factors` and the rest replace or add to what is there. One block is enough where
    every run is looked at by itself, though a study file must ask for two."""
    mtu = {"levels": [1500, 9000], "baseline": 1500}
    asked = {
        **BASE,
        "testbed": {"kind": kind, "family": family, "link": {"rate": rate}},
        "factors": {"mtu": mtu, "rtt": "0.2 ms" if kind == "rack" else "0 ms", **(factors or {})},
        "workloads": [{"stream": stream or {"size": "25 MB", "repeat": "0 s"}}],
        **rest,
    }
    whole = study_file.parse(yaml.safe_dump({**asked, "blocks": max(2, blocks)}, sort_keys=False), "study.yaml")
    return whole.model_copy(update={"blocks": blocks})


def alone(asked: Study, **levels: Any) -> Study:
    """One run of a study, at one level of each of these factors, which a study file cannot ask for."""
    words = {name: {"levels": [level], "baseline": level} for name, level in levels.items()}
    factors = {name: getattr(type(asked.factors).model_validate(words), name) for name in words}
    update = {"blocks": 1, "retries": 0, "control": False, "factors": asked.factors.model_copy(update=factors)}
    return asked.model_copy(update=update)


def run(agent: Agent, asked: Study, folder: Path, bed: RackTestbed | None = None) -> list[Run]:
    """Every run of a study, the excluded ones too; the agent stays for the next."""
    bed = bed or (commands.VethTestbed(agent) if asked.testbed.kind == "veth" else RackTestbed(agent))
    plan = {"question": asked.question, "scope": "emulated", "treatment": asked.treatment, "margins": asked.margin()}
    with Journal.create(folder, study_file.dump(asked), plan) as journal:
        Runner(asked, bed, journal).run()
        return list(journal.runs)


def proven(agent: Agent, asked: Study, folder: Path, bed: RackTestbed | None = None) -> list[Run]:
    """Every run of a study, each made once: what counts and proves is true also of those that a busy machine held up.
    Fails if one was excluded for another reason."""
    runs = run(agent, asked.model_copy(update={"retries": 0}), folder, bed)
    reasons(runs)
    return runs


def record(folder: Path, each: Run) -> Json:
    """The record of a run in a results folder."""
    found: Json = json.loads((folder / "runs" / str(each.number) / "record.json").read_text())
    return found


def but_for_loads(runs: Sequence[Run]) -> list[Run]:
    """The runs, without what says that a load was not met where the machine held the run up, which is why."""
    return [
        replace(each, excluded=[line for line in each.excluded if not (held_up(each) and line.startswith("load: "))])
        for each in runs
    ]


def because_held_up(what: str) -> str:
    """A reason to exclude what has no fidelity verdict of its own, as that says that the machine held something up."""
    return f"{HELD_UP}{what}"


def held_up(each: Run) -> bool:
    """Whether one of the reasons to exclude a run is that the machine held it up."""
    return any(line.startswith(HELD_UP) for line in each.excluded)


def each_level(runs: Sequence[Run]) -> bool:
    """Whether every level has a run that is evidence."""
    return bool(runs) and {run.level for run in runs if not run.excluded} == {run.level for run in runs}


def each_cell(runs: Sequence[Run]) -> bool:
    """Whether every arm of every cell has a run that is evidence."""
    return bool(runs) and {run.key[1:] for run in runs if not run.excluded} == {run.key[1:] for run in runs}


def judged(make: Callable[[], Sequence[E]], folder: Path, enough: Callable[[Sequence[E]], bool]) -> Sequence[E]:
    """What `make` makes in `folder`, whole, if it is `enough` for a test. If it is not because the machine held runs up,
    it is made once again, after what is in the folder was moved beside it; after that the test is not judged. It fails
    at once if anything was excluded for another reason, or if it is not enough and nothing was excluded."""
    for aside in ("unfaithful", None):
        runs = make()
        why = reasons(runs)
        if enough(runs):
            return runs
        if not why:
            pytest.fail("no run was excluded, and all of them are not enough for this test")
        if aside and folder.exists():
            folder.rename(folder.with_name(f"{folder.name}-{aside}"))
            folder.mkdir()
    return not_judged("; ".join(why))


def faithful(agent: Agent, asked: Study, folder: Path, bed: RackTestbed | None = None) -> list[Run]:
    """The runs of a study that are evidence, at least one of each arm in each cell; otherwise as `judged` says."""
    return [each for each in judged(lambda: run(agent, asked, folder, bed), folder, each_cell) if not each.excluded]


def shown(
    agent: Agent, asked: Study, folder: Path, claim: Callable[[Sequence[Run]], bool], bed: RackTestbed | None = None
) -> list[Run]:
    """The runs of a study, each made once, of which a claim holds that a busy machine may make false and never true; so
    that runs that were held up show it as well. Otherwise as `judged` says."""
    once = asked.model_copy(update={"retries": 0})
    return list(judged(lambda: run(agent, once, folder, bed), folder, claim))


@dataclass(frozen=True)
class Done:
    """A command that has ended, and why it is no evidence."""

    process: subprocess.CompletedProcess[str]
    excluded: Sequence[str]


def carried(command: Callable[[], subprocess.CompletedProcess[str]], folder: Path) -> subprocess.CompletedProcess[str]:
    """A study by command, with its results in `folder`, for which this machine was not too busy. Otherwise as `judged`
    says."""

    def made() -> list[Done]:
        done = command()
        refused = [line for line in done.stderr.splitlines()[-1:] if done.returncode == 3 and "too busy: " in line]
        return [Done(done, list(map(because_held_up, refused)))]

    (done,) = judged(made, folder, lambda ended: not ended[0].excluded)
    return done.process


def evidence(runs: list[Run], metric: str = "goodput") -> dict[Any, list[float]]:
    """The metric of each level's runs that are evidence; fails if a level has none, with the reasons."""
    found: dict[Any, list[float]] = {run.level: [] for run in runs}
    for each in runs:
        if not each.excluded:
            found[each.level].append(each.metrics[metric])
    reasons = sorted({reason for each in runs for reason in each.excluded})
    assert all(found.values()), f"no faithful run at some level: {reasons}"
    return found


def spawn(host: Any, *arguments: str, precedence: str = "nice") -> int:
    """Start a program in a host; its number."""
    asked = {"argv": list(arguments), "directory": None, "precedence": precedence}
    return int(host.request("process.spawn", asked)["process"])


def output(host: Any, process: int, stream: str = "stdout") -> str:
    """What a program has printed so far."""
    asked = {"process": process, "stream": stream, "offset_bytes": 0, "length_bytes": 65536}
    return base64.b64decode(host.request("process.output", asked)["data"]).decode()


def shell(host: Any, command: str) -> None:
    """Run a shell command in a host, to its end."""
    process = spawn(host, "sh", "-c", command)
    ended = host.request("process.wait", {"process": process, "timeout_seconds": PATIENCE_SECONDS})
    assert ended["exit_code"] == 0, (command, output(host, process, "stderr"))


def _names(folder: str, prefix: str) -> set[str]:
    path = Path(folder)
    return {each.name for each in path.iterdir() if each.name.startswith(prefix)} if path.is_dir() else set()


# Whatever these tests start has it in its environment, whoever becomes its parent.
os.environ["FRAMEGAUGE_TESTS"] = str(os.getpid())
MARK = f"FRAMEGAUGE_TESTS={os.getpid()}".encode()


def is_ours(process: int | str) -> bool:
    """Whether these tests started a process, or it is an agent of this checkout. Other programs on this machine, such as
    containers, may come and go meanwhile."""
    place = Path("/proc", str(process))
    try:
        if MARK in (place / "environ").read_bytes().split(b"\0"):
            return True
        return str((place / "exe").readlink()).removesuffix(" (deleted)") == str(find_agent())
    except (OSError, AgentMissing):
        return False


def agent_processes() -> dict[int, str]:
    """The command lines of the agents that run now, by process id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                continue
            is_agent = state != "Z" and is_ours(entry.name)
            if is_agent and (words[0].endswith(b"framegauge-agent") or words[1:2] == [b"host"]):
                found[int(entry.name)] = b" ".join(words).decode(errors="replace")
    return found


def hosts_of(rack: int) -> list[int]:
    """The agents of a rack agent's hosts, also of one that is dead: its id is in the name of their cgroup."""
    return [process for process, words in agent_processes().items() if f"framegauge-{rack}-" in words]


def is_of_others(name: str) -> bool:
    """Whether a cgroup or a folder is that of a program that runs now and that these tests have not started: its owner's
    id is in the name."""
    owner = re.match(r"framegauge-(?:of-)?(\d+)-", name)
    return owner is not None and Path("/proc", owner[1]).exists() and not is_ours(owner[1])


def traces() -> dict[str, Any]:
    """Everything on this machine that a rack could leave behind."""
    networks = set()
    for process in filter(is_ours, (entry.name for entry in Path("/proc").glob("[0-9]*"))):
        for entry in Path("/proc", process, "task").glob("[0-9]*/ns/net"):
            with suppress(OSError):
                networks.add(entry.readlink().name)

    def listed(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    sysctls = ("net/ipv4/tcp_limit_output_bytes", "net/ipv4/tcp_no_metrics_save", "net/ipv4/tcp_congestion_control")
    links = json.loads(listed("ip", "-j", "link"))
    return {
        "networks": networks,
        "links": sorted(link["ifname"] for link in links),
        "qdiscs": listed("tc", "qdisc", "show"),
        "cgroups": {
            str(path)
            for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
            for path in Path(root).glob("framegauge-*")
            if not is_of_others(path.name)
        },
        "loop devices": {path.parent.parent.name for path in Path("/sys/block").glob("loop*/loop/backing_file")},
        "FUSE": {path.name for path in Path("/sys/fs/fuse/connections").glob("*")},
        "files": {
            (folder, name)
            for folder in ("/tmp", "/dev/shm", "/run")
            for name in _names(folder, "framegauge")
            if not is_of_others(name)
        },
        "sysctls": [Path("/proc/sys", name).read_text() for name in sysctls],
        "agents": set(agent_processes()),
    }


def await_end(processes: list[int], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until none of these processes runs any more."""
    deadline = time.monotonic() + patience_seconds
    for process in processes:
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            continue
        try:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"process {process} still runs after {patience_seconds} s"
        finally:
            os.close(descriptor)


@contextmanager
def leaves_nothing(settle: Callable[[], None] | None = None) -> Iterator[None]:
    """What is on this machine before is there afterwards, and nothing else. With `settle` something was killed, and what
    it has started has a while to end, in its own networks."""
    before = traces()
    yield
    until = time.monotonic()
    if settle is not None:
        settle()
        until = time.monotonic() + PATIENCE_SECONDS
    while (after := traces())["networks"] - before["networks"] and time.monotonic() < until:
        time.sleep(0.1)
    for kind, found in after.items():
        if isinstance(found, set):
            # Somebody else's racks may end meanwhile.
            assert found - before[kind] == set(), kind
        else:
            assert found == before[kind], kind


def children(process: int) -> list[int]:
    """The agents of the hosts of a rack agent."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(each) for each in text.split()]
