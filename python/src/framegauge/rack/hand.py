"""A rack for use by hand: building and keeping it, running programs in its hosts, taking it down. It never prints.

Large modules (study files, testbeds) are imported only to build a rack; everything else must start quickly.
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
from framegauge.agents.pipe import Agent, Requests
from framegauge.agents.privilege import privileged
from framegauge.agents.spools import read_spool
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
READING_SECONDS = 2.0  # for a host to report its MTU; it usually takes about a millisecond
KEEPER_SECONDS = 10.0  # for an interpreter to start; it usually takes some hundredths of a second
INVALID_PARAMS, SYSTEM_ERROR = -32602, -32004  # pipe/README.md
DOWN_SECONDS = 60.0  # to take a rack down; it usually takes some tenths of a second

Json = dict[str, Any]
Say = Callable[[str], None]

HOW = "framegauge rack up FILE (or --preset demo)"


def up(study: Study, name: str, say: Say) -> Json:
    """Builds the rack of a study under its baseline conditions and leaves it up; returns the state that was written."""
    from framegauge.experiment.planning import baseline
    from framegauge.testbeds.rack import RackTestbed
    from framegauge.testbeds.veth import VethTestbed

    able, kind = study.testbed.capabilities, study.testbed.kind
    if able.is_invented or able.is_virtual:
        hosts = "simulated" if able.is_virtual else "invented"
        raise StudyError(
            [f'{name}: testbed.kind: found "{kind}", expected rack or veth: programs cannot run in {hosts} hosts']
        )
    conditions = baseline(study)

    def build(agent: Agent) -> Json:
        bed = VethTestbed(agent) if study.testbed.kind == "veth" else RackTestbed(agent)
        result = bed.up(conditions)
        hosts = [
            {
                **{key: host[key] for key in ("name", "interface", "address", "mac", "pid", "thread")},
                "nics": [
                    {**nic, "mtu": conditions.mtus(host["name"], number)[0]}
                    for number, nic in enumerate(host["nics"], 1)
                ],
                "mtu": result["ceilings"][host["name"]]["mtu"],
            }
            for host in result["hosts"]
        ]
        details = {"routers": _running(result["routers"]), "conditions": conditions.as_json(), "names": result["names"]}
        return _described(agent, hosts, **details)

    return _kept({"testbed": study.testbed.kind, "study": name}, build, say)


def up_lab(lab: LabFile, name: str, say: Say) -> Json:
    """Builds the network of a lab and leaves it up; returns the state that was written, whose `hosts` are all nodes."""
    from framegauge.testbeds.lab import LabTestbed

    def build(agent: Agent) -> Json:
        result = LabTestbed(agent).up(lab.network)
        return _described(agent, result["nodes"], about=lab.about, names=result["names"])

    return _kept({"testbed": "lab", "study": name}, build, say)


def _kept(subject: Json, build: Callable[[Agent], Json], say: Say) -> Json:
    """Builds something with a rack agent and leaves it up with a keeper; returns the state that was written."""
    path = kept.state_path()
    if rack_state := kept.current(path, say):
        raise _taken(rack_state)
    begin = time.monotonic()
    claimed = kept.claim(path, subject)
    try:
        with claimed as write, _telling(say, "building the rack"), _agent(say) as agent:
            rack_state = build(agent)
            with kept.listen(path) as listening, _keeper(path, agent, listening.fileno()) as (process, commit):
                agent.hand_over()
                rack_state["build_seconds"] = round(time.monotonic() - begin, 3)
                write({**rack_state, "keeper": process.as_json()})
                commit()
    except Taken:
        # Another process has built a rack in the meantime.
        raise _taken(kept.current(path, say) or {"state": "building", "keeper": {"pid": "?"}}) from None
    state = kept.read(path)
    if state is None:
        raise FramegaugeError("the rack was taken down right after it was built")
    return state


def exec_command(host: str, command: Sequence[str], say: Say) -> list[str]:
    """The command to `become` so that `command` runs in a host; InputError without that host, or without a rack."""
    target = _place("rack exec", host, _one_that_is_up("rack exec", say))
    # For root, the command runs as root, even under sudo; for any other user it runs as that user.
    root = os.geteuid() == 0
    user_words = ["--keep-user"] if root else ["--groups", ",".join(map(str, os.getgroups()))]
    return privileged([find_agent(), "exec", *target, *user_words, "--", *command], lambda _: None)


def host_names(verb: str, say: Say) -> list[str]:
    """The hosts and routers of the rack that is up; InputError without one."""
    return [member["name"] for member in members(_one_that_is_up(verb, say))]


def agent_command(host: str, verb: str, say: Say) -> list[str]:
    """The command that starts an agent of its own, as root, in a host of the rack that is up."""
    target, agent = _place(verb, host, _one_that_is_up(verb, say)), find_agent()
    return privileged([agent, "exec", *target, "--keep-user", "--", agent, "host"], say)


def _place(verb: str, host: str, state: Json) -> list[str]:
    """The words that name a host to `framegauge-agent exec`; InputError unless it is there."""
    hosts = {member["name"]: member for member in members(state)}
    if host not in hosts:
        raise InputError(f'{verb}: found no host "{host}", expected one of {", ".join(hosts)}')
    agent = Process.from_json(hosts[host])
    if not agent.runs():
        raise InputError(
            f"{verb}: {host} no longer runs (process {agent.pid}): run `framegauge rack down`, then `framegauge "
            "rack up`"
        )
    return ["--pid", str(agent.pid), "--start-ticks", str(agent.start_ticks)]


def members(state: Mapping[str, Any]) -> list[Json]:
    """The hosts and routers of a rack; racks of older versions have no routers."""
    return [*state["hosts"], *state.get("routers", ())]


def become(command: Sequence[str]) -> NoReturn:
    """Replaces this process: terminal, folder, environment and process id stay, so the command gets every signal."""
    # Python ignores these two signals, and the command would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(command[0], list(command))


def show(say: Say) -> Json | None:
    """The state of the rack that is up, with `running` and the current MTU of each host and router, and of their NICs;
    None without a rack."""
    path = kept.state_path()
    state = kept.current(path, say)
    if state is not None and state["state"] == "up":
        for member in members(state):
            member["running"] = Process.from_json(member).runs()
        if state["testbed"] != "lab":
            # Without an answer, the state keeps the MTU with which the rack was built.
            with contextlib.suppress(AgentFailure), KeptAgent(path) as agent:
                for host in members(state):
                    params = {"host": host["name"], "method": "host.read", "params": {}}
                    reading = agent.request("relay", params, timeout_seconds=READING_SECONDS)
                    host["mtu"] = reading["mtu"]
                    for nic, nic_reading in zip(host.get("nics", ()), reading.get("nics", ()), strict=False):
                        nic["mtu"] = nic_reading["mtu"]
    return state


def looks(
    say: Say, interval_seconds: float, pause: Callable[[float], None] = time.sleep
) -> Iterator[tuple[Json, Json]]:
    """Each look at the ports of the rack (`rack.ports`) with the previous one, an interval apart, endlessly."""
    with _asking("watch", say) as (_, agent):
        before, due = agent.request("rack.ports"), time.monotonic()
        while True:
            now = time.monotonic()
            due = max(due + interval_seconds, now)
            pause(due - now)
            after = agent.request("rack.ports")
            yield before, after
            before = after


def change(asked: Json, say: Say) -> Json:
    """Changes the rack while it runs, by params from `networks.settings`: the names that were `changed`, and `when`."""
    with _asking("set", say) as (state, agent):
        hosts = [host["name"] for host in members(state)]
        ends = [nic["end"] for host in state["hosts"] for nic in host.get("nics", ()) if "end" in nic]
        if "host" in asked and asked["host"] not in (*hosts, *ends):
            raise InputError(rack_settings.unknown_host(asked["host"], hosts))
        try:
            answer = agent.request("rack.set", asked)
        except AgentError as error:
            if error.code not in (INVALID_PARAMS, SYSTEM_ERROR):
                raise
            # Only after a failure, because each look restarts the interval for which the next one reports the peak.
            ports = [port["port"] for port in agent.request("rack.ports")["ports"]] if "from" in asked else []
            problem = rack_settings.unknown_port(asked, ports) if ports else None
            raise InputError(problem or error.message) from None
    age = time.monotonic() - answer["time_seconds"]  # the agent uses the same clock of the same machine
    return {"changed": answer["changed"], "when": datetime.now(UTC) - timedelta(seconds=age)}


def capture(port: str, seconds: float, say: Say, pause: Callable[[float], None] = time.sleep) -> tuple[Json, bytes]:
    """Captures a port of the rack, for `seconds` or until Ctrl-C. Returns the number of `packets`, of those `left_out`,
    and the counts of the `port`; and the capture as pcapng. InputError if there is no such port."""
    with _asking("capture", say) as (_, agent):
        try:
            agent.request("measure.begin", {"watch": [port], "capture": True})
        except AgentError as error:
            if error.code != INVALID_PARAMS:
                raise
            ports = [entry["port"] for entry in agent.request("rack.ports")["ports"]]
            raise InputError(rack_settings.unknown("capture", "port", port, ports)) from None
        with contextlib.suppress(KeyboardInterrupt), _telling(say, f"capturing {port}"):
            pause(seconds)
        fabric = agent.request("measure.end")["fabric"]
        data = read_spool(cast(Requests, agent), fabric["capture"])  # only uses `request`
        for name in ("drops", "events"):
            agent.request("spool.drop", {"spool": fabric[name]})
    counts = next(entry for entry in fabric["ports"] if entry["port"] == port)
    return {"packets": fabric["capture_packets"], "left_out": fabric["capture_left_out"], "port": counts}, data


@contextlib.contextmanager
def _asking(verb: str, say: Say) -> Iterator[tuple[Json, KeptAgent]]:
    """The state of the rack that is up on the fabric, and its agent; InputError without one."""
    state = _one_that_is_up(f"rack {verb}", say)
    if state["testbed"] != "rack":
        kind = "a lab" if state["testbed"] == "lab" else f"a rack of kind {state['testbed']}"
        raise InputError(f"rack {verb}: found {kind}, expected a rack on the fabric (kind rack): others have no ports")
    with KeptAgent(kept.state_path()) as agent:
        yield state, agent


def _one_that_is_up(verb: str, say: Say) -> Json:
    """The state of the rack that is up; InputError if there is none, or it is still being built."""
    path = kept.state_path()
    state = kept.current(path, say)
    if state is None:
        raise InputError(f"{verb}: found no rack{_others(path)}, expected one that is up: {HOW}")
    if state["state"] != "up":
        raise InputError(f"{verb}: the rack is still being built, expected one that is up: try again soon")
    return state


def down(say: Say) -> float | None:
    """Takes the rack down, with all programs in its hosts; returns the seconds that took, None if none was up."""
    path = kept.state_path()
    state = kept.current(path, say)
    if state is None:
        return None
    begin, holder = time.monotonic(), Process.from_json(state["keeper"])
    descriptor = holder.open()
    if descriptor is not None:
        with _telling(say, "taking the rack down"):
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            ready, _, _ = select.select([descriptor], [], [], DOWN_SECONDS)
        os.close(descriptor)
        if not ready:
            agent = state["agent"]["pid"] if state["state"] == "up" else "?"
            raise FramegaugeError(f"the rack's agent, process {agent}, has not ended within {DOWN_SECONDS:g} s")
    kept.forget(path, holder)  # only has an effect if the keeper was killed at this moment
    return time.monotonic() - begin


def sharing() -> str | None:
    """One line if a rack of this user is up and shares the CPUs with a study; otherwise None."""
    with contextlib.suppress(FramegaugeError):
        state = kept.read(kept.state_path())
        if state is not None and Process.from_json(state["keeper"]).runs():
            return "a rack for hand use is up and shares the CPUs with this study; `framegauge rack down` removes it"
    return None


def _others(path: Path) -> str:
    """A hint that root has a rack: one that was built through sudo must be used through sudo."""
    return (
        " of yours (root has one: sudo framegauge rack …)" if path != kept.FOR_ROOT and kept.FOR_ROOT.exists() else ""
    )


def _taken(state: Mapping[str, Any]) -> Taken:
    condition = "is being built"
    if state["state"] == "up":
        count = len(state["hosts"])
        condition = f"of {count} host{'' if count == 1 else 's'} is up"
    pid = state["keeper"]["pid"]
    return Taken(
        f"rack up: a rack {condition} already (kept by process {pid}), expected none: run `framegauge rack down` first"
    )


@contextlib.contextmanager
def _agent(say: Say) -> Iterator[Agent]:
    """A rack agent that keeps running unless the block fails."""
    agent = Agent.open(privileged([find_agent(), "rack"], say))
    try:
        yield agent
    except BaseException:
        agent.close()
        raise


@contextlib.contextmanager
def _keeper(path: Path, agent: Agent, listening: int) -> Iterator[tuple[Process, Callable[[], None]]]:
    """A keeper process that holds the agent's pipe and serves `listening`; it takes the rack down unless it is
    committed.

    It is killed if anything fails here.
    """
    import socket

    own_end, keeper_end = socket.socketpair()
    descriptors = (*agent.descriptors(), keeper_end.fileno(), listening)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, str(path), *map(str, descriptors)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
        start_new_session=True,
    )
    keeper_end.close()
    try:
        own_end.settimeout(KEEPER_SECONDS)
        if own_end.recv(1) != b"r":
            raise FramegaugeError(f"the rack's keeper did not start ({sys.executable})")
        yield Process.of(process.pid), lambda: own_end.sendall(b"k")
    except BaseException:
        # The keeper only holds descriptors; the agent is closed by the code that opened it.
        process.kill()
        process.wait()
        raise
    finally:
        own_end.close()


def _described(agent: Agent, hosts: Sequence[Json], **rest: object) -> Json:
    """The state of a rack that is up."""
    return {
        "state": "up",
        "agent": Process.of(agent.about["pid"]).as_json(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "hosts": _running(hosts),
        **rest,
    }


def _running(members: Sequence[Json]) -> list[Json]:
    """The members, each with the start time of its process."""
    return [{**member, **Process.of(member["pid"]).as_json()} for member in members]


@contextlib.contextmanager
def _telling(say: Say, work: str) -> Iterator[None]:
    """Reports every two seconds that something is still going on."""
    stop, begin = threading.Event(), time.monotonic()

    def tell() -> None:
        while not stop.wait(PROGRESS_SECONDS):
            say(f"{work}: {time.monotonic() - begin:.0f} s so far")

    thread = threading.Thread(target=tell, name="teller", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
