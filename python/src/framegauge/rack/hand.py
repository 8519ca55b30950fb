"""A rack for hand use: build one and keep it, become a program in one of its hosts, take it down. Never prints.

What is heavy (study files, testbeds) is imported only by what builds a rack; the rest must start quickly.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent, Requests, privileged, read_spool
from framegauge.errors import AgentError, AgentFailure, FramegaugeError, InputError, StudyError
from framegauge.networks import settings as rack_settings
from framegauge.rack import keeper, state as kept
from framegauge.rack.client import KeptAgent
from framegauge.rack.state import Process, Taken

if TYPE_CHECKING:
    from framegauge.labs.file import LabFile
    from framegauge.study.model import Study

__all__ = ["become", "capture", "change", "down", "exec_command", "looks", "members", "show", "up", "up_lab"]

PROGRESS_SECONDS = 2.0
READING_SECONDS = 2.0  # for a host to say its MTU; it takes a thousandth
KEEPER_SECONDS = 10.0  # for an interpreter to start; it takes some hundredths
INVALID_PARAMS, SYSTEM_ERROR = -32602, -32004  # pipe/README.md
DOWN_SECONDS = 60.0  # a rack goes in tenths; beyond this its agent hangs

Json = dict[str, Any]
Say = Callable[[str], None]

HOW = "framegauge rack up FILE (or --preset demo)"


def up(study: Study, name: str, say: Say) -> Json:
    """Build the rack of a study under its baseline and leave it up; the state that was written."""
    from framegauge.experiment.planning import baseline
    from framegauge.testbeds.rack import RackTestbed
    from framegauge.testbeds.veth import VethTestbed

    if study.testbed.kind == "fake":
        raise StudyError(
            [f'{name}: testbed.kind: found "fake", expected rack or veth: nothing runs in an invented host']
        )
    conditions = baseline(study)

    def build(agent: Agent) -> Json:
        bed = VethTestbed(agent) if study.testbed.kind == "veth" else RackTestbed(agent)
        built = bed.up(conditions)
        hosts = [
            {
                **{key: host[key] for key in ("name", "interface", "address", "mac", "pid", "thread", "nics")},
                "mtu": built["ceilings"][host["name"]]["mtu"],
            }
            for host in built["hosts"]
        ]
        rest = {"routers": _running(built["routers"]), "conditions": conditions.as_json(), "names": built["names"]}
        return _described(agent, hosts, **rest)

    return _kept({"testbed": study.testbed.kind, "study": name}, build, say)


def up_lab(lab: LabFile, name: str, say: Say) -> Json:
    """Build the network of a lab and leave it up; the state that was written. Its `hosts` are all of its nodes."""
    from framegauge.testbeds.lab import LabTestbed

    def build(agent: Agent) -> Json:
        built = LabTestbed(agent).up(lab.network)
        return _described(agent, built["nodes"], about=lab.about, names=built["names"])

    return _kept({"testbed": "lab", "study": name}, build, say)


def _kept(what: Json, build: Callable[[Agent], Json], say: Say) -> Json:
    """Build something with a rack agent, and leave it up with a keeper; the state that was written."""
    path = kept.state_path()
    if found := kept.current(path, say):
        raise _taken(found)
    begun = time.monotonic()
    claimed = kept.claim(path, what)
    try:
        with claimed as write, _telling(say, "building the rack"), _agent(say) as agent:
            found = build(agent)
            with kept.listen(path) as listening, _keeper(path, agent, listening.fileno()) as (process, commit):
                agent.hand_over()
                found["build_seconds"] = round(time.monotonic() - begun, 3)
                write({**found, "keeper": process.as_json()})
                commit()
    except Taken:
        # Somebody was quicker.
        raise _taken(kept.current(path, say) or {"state": "building", "keeper": {"pid": "?"}}) from None
    state = kept.read(path)
    if state is None:
        raise FramegaugeError("the rack was taken down as soon as it was up")
    return state


def exec_command(host: str, command: Sequence[str], say: Say) -> list[str]:
    """What to `become` so that `command` runs in a host; InputError without such a host, or without a rack."""
    state = _one_that_is_up("exec", say)
    hosts = {each["name"]: each for each in members(state)}
    if host not in hosts:
        raise InputError(f'rack exec: found no host "{host}", expected one of {", ".join(hosts)}')
    agent = Process.from_json(hosts[host])
    if not agent.runs():
        raise InputError(
            f"rack exec: found that {host} has gone (process {agent.pid}): `framegauge rack down`, then up"
        )
    # Root's command is root's, whoever once called sudo; anybody else's goes back to them.
    root = os.geteuid() == 0
    who = ["--keep-user"] if root else ["--groups", ",".join(map(str, os.getgroups()))]
    where = ["--pid", str(agent.pid), "--start-ticks", str(agent.start_ticks)]
    return privileged([find_agent(), "exec", *where, *who, "--", *command], lambda _: None)


def members(state: Mapping[str, Any]) -> list[Json]:
    """Its hosts, and the routers that racks of older versions do not have."""
    return [*state["hosts"], *state.get("routers", ())]


def become(command: Sequence[str]) -> NoReturn:
    """Replace this process: terminal, folder, environment and process id stay, so the command gets every signal."""
    # Python ignores these two, and what is ignored stays so in the command.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(command[0], list(command))


def show(say: Say) -> Json | None:
    """The state of the rack that is up, with `running` and the MTU by now for each host and router; None: there is
    none."""
    path = kept.state_path()
    state = kept.current(path, say)
    if state is not None and state["state"] == "up":
        for each in members(state):
            each["running"] = Process.from_json(each).runs()
        if state["testbed"] != "lab":
            # Whoever cannot be asked keeps the MTU that was set when the rack was built.
            with contextlib.suppress(AgentFailure), KeptAgent(path) as agent:
                for host in members(state):
                    asked = {"host": host["name"], "method": "host.read", "params": {}}
                    host["mtu"] = agent.request("relay", asked, timeout_seconds=READING_SECONDS)["mtu"]
    return state


def looks(
    say: Say, interval_seconds: float, pause: Callable[[float], None] = time.sleep
) -> Iterator[tuple[Json, Json]]:
    """Each look at the ports of the rack (`rack.ports`) with the one before, an interval apart, for ever."""
    with _asking("watch", say) as (_, agent):
        before, due = agent.request("rack.ports"), time.monotonic()
        while True:
            due = max(due + interval_seconds, time.monotonic())
            pause(due - time.monotonic())
            after = agent.request("rack.ports")
            yield before, after
            before = after


def change(asked: Json, say: Say) -> Json:
    """Change the rack while it runs by what `rack_settings.params` made: the names that were `changed`, and `when`."""
    with _asking("set", say) as (state, agent):
        hosts = [host["name"] for host in members(state)]
        if "host" in asked and asked["host"] not in hosts:
            raise InputError(rack_settings.unknown_host(asked["host"], hosts))
        try:
            found = agent.request("rack.set", asked)
        except AgentError as error:
            if error.code not in (INVALID_PARAMS, SYSTEM_ERROR):
                raise
            # Only now: a look ends the time of which the others' next one tells the peak.
            ports = [port["port"] for port in agent.request("rack.ports")["ports"]] if "from" in asked else []
            unknown = rack_settings.unknown_port(asked, ports) if ports else None
            raise InputError(unknown or error.message) from None
    ago = time.monotonic() - found["time_seconds"]  # the agent's is the same clock of the same machine
    return {"changed": found["changed"], "when": datetime.now(UTC) - timedelta(seconds=ago)}


def capture(port: str, seconds: float, say: Say, pause: Callable[[float], None] = time.sleep) -> tuple[Json, bytes]:
    """Capture a port of the rack for so long, or until Ctrl-C: its `packets`, those `left_out`, and the counts of the
    `port`; and the capture itself, as pcapng. InputError if there is no such port."""
    with _asking("capture", say) as (_, agent):
        try:
            agent.request("measure.begin", {"watch": [port], "capture": True})
        except AgentError as error:
            if error.code != INVALID_PARAMS:
                raise
            ports = [each["port"] for each in agent.request("rack.ports")["ports"]]
            raise InputError(rack_settings.unknown("capture", "port", port, ports)) from None
        with contextlib.suppress(KeyboardInterrupt), _telling(say, f"capturing {port}"):
            pause(seconds)
        fabric = agent.request("measure.end")["fabric"]
        data = read_spool(cast(Requests, agent), fabric["capture"])  # it asks, and begins nothing
        for name in ("drops", "events"):
            agent.request("spool.drop", {"spool": fabric[name]})
    counted = next(each for each in fabric["ports"] if each["port"] == port)
    return {"packets": fabric["capture_packets"], "left_out": fabric["capture_left_out"], "port": counted}, data


@contextlib.contextmanager
def _asking(verb: str, say: Say) -> Iterator[tuple[Json, KeptAgent]]:
    """The state of the rack that is up on the fabric, and its agent; InputError without one."""
    state = _one_that_is_up(verb, say)
    if state["testbed"] != "rack":
        kind = "a lab" if state["testbed"] == "lab" else f"a rack of kind {state['testbed']}"
        raise InputError(f"rack {verb}: found {kind}, expected a rack on the fabric (kind rack): no other has ports")
    with KeptAgent(kept.state_path()) as agent:
        yield state, agent


def _one_that_is_up(verb: str, say: Say) -> Json:
    """The state of the rack that is up; InputError if there is none, or none yet."""
    path = kept.state_path()
    state = kept.current(path, say)
    if state is None:
        raise InputError(f"rack {verb}: found no rack{_others(path)}, expected one that is up: {HOW}")
    if state["state"] != "up":
        raise InputError(f"rack {verb}: found a rack that is being built, expected one that is up: try again soon")
    return state


def down(say: Say) -> float | None:
    """Take the rack down, with all that runs in its hosts: the seconds it took, None if none was up."""
    path = kept.state_path()
    state = kept.current(path, say)
    if state is None:
        return None
    begun, holder = time.monotonic(), Process.from_json(state["keeper"])
    descriptor = holder.open()
    if descriptor is not None:
        with _telling(say, "taking the rack down"):
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            ended, _, _ = select.select([descriptor], [], [], DOWN_SECONDS)
        os.close(descriptor)
        if not ended:
            agent = state["agent"]["pid"] if state["state"] == "up" else "?"
            raise FramegaugeError(f"the rack's agent, process {agent}, has not ended within {DOWN_SECONDS:g} s")
    kept.forget(path, holder)  # nothing to do unless it was killed at this very moment
    return time.monotonic() - begun


def sharing() -> str | None:
    """One line if a rack of this user is up that shares the CPUs with a study; None if not."""
    with contextlib.suppress(FramegaugeError):
        state = kept.read(kept.state_path())
        if state is not None and Process.from_json(state["keeper"]).runs():
            return "a rack for hand use is up and shares the CPUs with this study; `framegauge rack down` ends it"
    return None


def _others(path: Path) -> str:
    """That the rack may be root's: who built it through sudo has to use it so."""
    return (
        " of yours (root has one: sudo framegauge rack …)" if path != kept.FOR_ROOT and kept.FOR_ROOT.exists() else ""
    )


def _taken(state: Mapping[str, Any]) -> Taken:
    what = f"of {len(state['hosts'])} hosts is up" if state["state"] == "up" else "is being built"
    pid = state["keeper"]["pid"]
    return Taken(
        f"rack up: found that a rack {what} (kept by process {pid}), expected none: `framegauge rack down` first"
    )


@contextlib.contextmanager
def _agent(say: Say) -> Iterator[Agent]:
    """A rack agent that stays when all goes well."""
    agent = Agent.open(privileged([find_agent(), "rack"], say))
    try:
        yield agent
    except BaseException:
        agent.close()
        raise


@contextlib.contextmanager
def _keeper(path: Path, agent: Agent, listening: int) -> Iterator[tuple[Process, Callable[[], None]]]:
    """A process that holds the agent's pipe and is asked at `listening`; it lets go unless it is committed.

    Killed if anything fails here.
    """
    import socket

    ours, theirs = socket.socketpair()
    passed = (*agent.descriptors(), theirs.fileno(), listening)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, str(path), *map(str, passed)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=passed,
        start_new_session=True,
    )
    theirs.close()
    try:
        ours.settimeout(KEEPER_SECONDS)
        if ours.recv(1) != b"r":
            raise FramegaugeError(f"the rack's keeper did not start ({sys.executable})")
        yield Process.of(process.pid), lambda: ours.sendall(b"k")
    except BaseException:
        # It only holds descriptors; the agent is then closed by whoever opened it.
        process.kill()
        process.wait()
        raise
    finally:
        ours.close()


def _described(agent: Agent, hosts: Sequence[Json], **rest: object) -> Json:
    """What the state says of a rack that is up."""
    return {
        "state": "up",
        "agent": Process.of(agent.about["pid"]).as_json(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "hosts": _running(hosts),
        **rest,
    }


def _running(members: Sequence[Json]) -> list[Json]:
    """The same, with when the process of each began."""
    return [{**each, **Process.of(each["pid"]).as_json()} for each in members]


@contextlib.contextmanager
def _telling(say: Say, what: str) -> Iterator[None]:
    """Say every two seconds that it still goes on."""
    ended, begun = threading.Event(), time.monotonic()

    def tell() -> None:
        while not ended.wait(PROGRESS_SECONDS):
            say(f"{what}: {time.monotonic() - begun:.0f} s so far")

    teller = threading.Thread(target=tell, name="teller", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
