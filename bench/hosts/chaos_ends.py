"""Whatever ends a study, a sweep or a lease at a random moment: nothing is left, and what was done is there.

    sudo .venv/bin/python -m bench.hosts.chaos_ends [--times 20] [--seed 1] [SCENE…]

Scenes: `study` on an emulated rack, `sweep` of a simulation, `lease` of a host's settings. At a random moment, from
before the first process of an agent to after the last run, its controller or an agent gets SIGKILL, SIGTERM, SIGHUP or
SIGINT, the disk of its results fills up, its cgroup takes no process more (pids.max), or the link of the host goes
down. Then a study or sweep is resumed, and every run is there once; those of a sweep are compared, byte for byte, with
those of one that nothing ended. What SIGKILL leaves in the folder for temporary files is gone once it was resumed. Of a
lease everything is read that it may touch. A line each; exit code 1 if something is wrong.

It looks at the whole machine (processes, namespaces, cgroups, temporary files), so nothing else of framegauge may run.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from framegauge import temporary

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/tests"))

from helpers import leased, real
from helpers.leased import Bed

STUDY = """\
question: What is left?
testbed: {{kind: {kind}, link: {{rate: 100 Mb/s}}}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}}}
workloads: [{{stream: {{size: 1 MB, repeat: 0.2 s}}}}]
blocks: 2
stop: blocks
control: false
retries: 0
margins: {{goodput: 1 %}}
"""
SWEEP = """\
question: What is left?
testbed: {kind: simulator, topology: rack, hosts: 9, link: {rate: 1 Gb/s, buffer: 64 KiB}}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{incast: {block: 1 MB, servers: 8, rounds: 40}}]
blocks: 6
stop: blocks
margins: {goodput: 5 %}
"""
SIGNALS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")
ENDS = [f"{who} {name}" for who in ("controller", "agent") for name in SIGNALS]
KINDS = {
    "study": (*ENDS, "disk full", "no pids"),
    "sweep": (*ENDS, "disk full", "no pids"),
    "lease": (*ENDS, "no pids", "link down"),
}
DISK = "8m"
ENDING_SECONDS = 120.0
FAULT_SECONDS = 2.0  # that a full disk or a full cgroup lasts, unless it ends the command before
LEASE_SECONDS = 3.0
STUDY_SECONDS = 12.0  # about as long as the study takes
LENDING_SECONDS = 2.0
POLL_SECONDS = 0.02
TRIES = 5  # to resume on a machine that is too busy for a rack
SLACK_SECONDS = 30.0  # for whoever puts things back, on a machine that does other things
PIDS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
INSIDE = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
# What stands on the interface that is lent, and goes with it.
STANDING = (
    "-6 route add fd68::/64 via fd67::3 dev eth1 mtu 4000", "route add 10.99.0.0/16 via 10.9.0.3 mtu 4000",
    "link add up0 type bridge", "link set up0 up",
)  # fmt: skip
# A controller that lends and gives back until it is ended.
LENDER = f"""\
import sys
from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.cli.interrupts import interruptible
settings = {{"mtu:eth1": "1500", "tso:eth1": "off", "sysctl:net.ipv4.tcp_ecn": "1"}}
with interruptible(), Agent.open([find_agent(), "host", "--netns", sys.argv[1]]) as agent:
    print("ready", flush=True)
    while True:
        agent.request("lease.begin", {{"settings": settings, "seconds": {LEASE_SECONDS}}})
        agent.request("lease.renew")
        agent.request("lease.end")
"""


@dataclass(frozen=True)
class Seen:
    """What came of one moment: how the command ended, and what is wrong."""

    ending: str
    wrong: tuple[str, ...]
    runs: Mapping[int, str] = field(default_factory=dict)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def pids_group() -> Iterator[Path]:
    """A cgroup that counts processes, for now without a limit."""
    parent = next(place for place in PIDS if (place / "cgroup.procs").exists())
    group = parent / f"chaos-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        yield group
    finally:
        until = time.monotonic() + ENDING_SECONDS
        while (group / "cgroup.procs").read_text() and time.monotonic() < until:
            time.sleep(0.05)
        group.rmdir()


def descendants(process: int) -> list[int]:
    """All processes that a process has started, and they, the nearest first."""
    nearest = real.children(process)
    return nearest + [pid for child in nearest for pid in descendants(child)]


def agents_of(process: int) -> list[int]:
    """The agents among them."""
    found = []
    for pid in descendants(process):
        with contextlib.suppress(OSError):
            if b"framegauge-agent" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                found.append(pid)
    return found


@contextlib.contextmanager
def broken(
    kind: str, controller: subprocess.Popen[str], group: Path, disk: Path, draw: random.Random, bed: Bed | None = None
) -> Iterator[None]:
    """What breaks, until the block is left. It is nothing where no agent runs at the moment."""
    who, _, name = kind.partition(" ")
    if kind == "disk full":
        filler = disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(bytes(1 << 16))
        yield
        filler.unlink()
    elif kind == "no pids":
        (group / "pids.max").write_text((group / "pids.current").read_text())
        yield
        (group / "pids.max").write_text("max")
    elif kind == "link down":
        assert bed is not None
        bed.ip("link set far down")
        yield
        bed.ip("link set far up")
    elif who == "controller":
        controller.send_signal(getattr(signal, name))
        yield
    else:
        agents = agents_of(controller.pid)
        with contextlib.suppress(ProcessLookupError):
            if agents:
                os.kill(draw.choice(agents), getattr(signal, name))
        yield


def started(group: Path, log: Path, *words: str) -> subprocess.Popen[str]:
    """A command of framegauge's in the cgroup; what it says is in the file."""
    with log.open("w") as file:
        command = ["sh", "-c", INSIDE, "sh", str(group), sys.executable, "-m", *words]
        return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, text=True)


def ended(controller: subprocess.Popen[str], seconds: float) -> bool:
    """Whether it ends by then."""
    try:
        controller.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def how(controller: subprocess.Popen[str]) -> str:
    """How a command ended, in a few words."""
    code = controller.returncode
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name


def spoken(log: Path) -> list[str]:
    """What is wrong with what a command said."""
    text = log.read_text(errors="replace")
    return [f"it said {word!r}: {text[-1500:]}" for word in ("Traceback", "panicked") if word in text]


def runs(folder: Path) -> dict[int, str]:
    """The finished runs of a results folder by their number, each as its line; a cut last line is none."""
    path = folder / "runs.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return {json.loads(line)["number"]: line for line in lines}


def cut(
    controller: subprocess.Popen[str], kind: str, disk: Path, group: Path, draw: random.Random, longest: float
) -> tuple[dict[int, str], list[str]]:
    """What breaks at a random moment of a command, and its end: the runs before, and what is wrong."""
    wrong = []
    try:
        # Half of the moments are anywhere, the others in one of the first runs, which may come late.
        if draw.random() < 0.5:
            ended(controller, draw.uniform(0, longest))
        else:
            count = draw.randint(1, 3)
            while len(runs(disk / "out")) < count and not ended(controller, POLL_SECONDS):
                pass
            ended(controller, draw.uniform(0, 1))
        kept = runs(disk / "out")
        with broken(kind, controller, group, disk, draw):
            ended(controller, FAULT_SECONDS)
        if controller.poll() is None:
            controller.send_signal(signal.SIGINT)
        if not ended(controller, ENDING_SECONDS):
            wrong.append(f"it still runs {ENDING_SECONDS:g} s after it was to end")
    finally:
        controller.kill()
        controller.wait()
    return kept, wrong


def interrupted_once(verb: str, words: list[str], kind: str, folder: Path, draw: random.Random, longest: float) -> Seen:
    """A command that leaves results, what breaks in it, and the same resumed, to whose end the runs are compared with
    those that were there before."""
    with small_disk(folder / "disk") as disk, pids_group() as group:
        out, log, log_after = disk / "out", folder / "log", folder / "log-after"
        before = real.traces()
        while True:
            controller = started(group, log, "framegauge", verb, *words, "--out", str(out))
            kept, wrong = cut(controller, kind, disk, group, draw, longest)
            if "too busy" not in log.read_text():
                break
        ending = how(controller)
        # Nobody can end the folders of a process that is killed, before the next start.
        wrong += spoken(log) + left(before, except_temporary=controller.returncode == -signal.SIGKILL)
        if (out / "results.json").exists():
            for _ in range(TRIES):
                resumed = started(group, log_after, "framegauge", verb, "--resume", "--out", str(out))
                if ended(resumed, 3 * ENDING_SECONDS) and "too busy" not in log_after.read_text():
                    break
            if resumed.returncode not in (0, 3):
                wrong.append(f"resumed: {how(resumed)}: {log_after.read_text()[-800:]}")
            wrong += spoken(log_after) + left(before)
        elif kept:
            wrong.append("the results are gone")
        after = runs(out)
        wrong += [f"run {number} is lost, or another" for number in kept if after.get(number) != kept[number]]
        return Seen(f"{ending}, {len(kept)} runs before, {len(after)} after", tuple(wrong), after)


def left(before: dict[str, Any], except_temporary: bool = False) -> list[str]:
    """What is on this machine that was not there before, once what was killed has had time to end."""
    until = time.monotonic() + SLACK_SECONDS
    while True:
        after = real.traces()
        if except_temporary:
            after["files"] = {file for file in after["files"] if not file[1].startswith(temporary.PREFIX)}
        more = [
            f"left: {kind} {sorted(map(str, there - before[kind])) if isinstance(there, set) else there}"
            for kind, there in after.items()
            if (there - before[kind] if isinstance(there, set) else there != before[kind])
        ]
        if not more or time.monotonic() > until:
            return more
        time.sleep(0.1)


def study(kind: str, folder: Path, draw: random.Random) -> Seen:
    """A study on a rack, or on the kernel's own links."""
    (folder / "study.yaml").write_text(STUDY.format(kind=draw.choice(("rack", "veth"))))
    return interrupted_once("study", [str(folder / "study.yaml")], kind, folder, draw, STUDY_SECONDS)


def sweep(kind: str, folder: Path, draw: random.Random) -> Seen:
    """A sweep of a simulation: once it was resumed its runs are, to the byte, those of one that nothing ended."""
    (folder / "sweep.yaml").write_text(SWEEP)
    words = [str(folder / "sweep.yaml"), "--sweep", "testbed.link.buffer=32KiB,64KiB"]
    whole, took = whole_sweep()
    seen = interrupted_once("simulate", words, kind, folder, draw, took)
    strange = [number for number in seen.runs if seen.runs[number] != whole[number]]
    return Seen(seen.ending, (*seen.wrong, *(f"run {number} is another" for number in strange)), seen.runs)


@cache
def whole_sweep() -> tuple[dict[int, str], float]:
    """The runs of a sweep that nothing ends, and how long it takes."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "sweep.yaml").write_text(SWEEP)
        command = [sys.executable, "-m", "framegauge", "simulate", f"{place}/sweep.yaml", "--out", f"{place}/out"]
        begun = time.monotonic()
        subprocess.run([*command, "--sweep", "testbed.link.buffer=32KiB,64KiB"], check=True, capture_output=True)
        return runs(Path(place) / "out"), time.monotonic() - begun


def lease(kind: str, folder: Path, draw: random.Random) -> Seen:
    """Settings of a host that are lent and given back, over and over."""
    with leased.bed() as bed, small_disk(folder / "disk") as disk, pids_group() as group:
        for words in STANDING:
            bed.ip(words)
        before, wrong, log = bed.state(), [], folder / "log"
        (folder / "lender.py").write_text(LENDER)
        words = ["sh", "-c", INSIDE, "sh", str(group), sys.executable, str(folder / "lender.py"), bed.host]
        with log.open("w") as file:
            lender = subprocess.Popen(words, stdout=file, stderr=file, text=True)
        try:
            if ended(lender, draw.uniform(0, LENDING_SECONDS)):
                wrong.append(f"it ended before anything broke: {log.read_text()[-800:]}")
            with broken(kind, lender, group, disk, draw, bed):
                ended(lender, draw.uniform(0, LEASE_SECONDS))
        finally:
            lender.kill()
            lender.wait()
        begun = time.monotonic()
        while bed.state() != before and time.monotonic() < begun + LEASE_SECONDS + SLACK_SECONDS:
            time.sleep(0.1)
        seconds = time.monotonic() - begun
        wrong += [f"not back: {line}" for line in differing(before, bed.state())]
        if "panicked" in log.read_text():
            wrong.append(log.read_text()[-800:])
        while more := bed.processes():
            if time.monotonic() > begun + LEASE_SECONDS + SLACK_SECONDS:
                wrong.append(f"left: processes {more}")
                break
            time.sleep(0.1)
        return Seen(f"{how(lender)}, back after {seconds:.1f} s", tuple(wrong))


def differing(before: str, after: str) -> list[str]:
    """Lines of a host's state that are not as before."""
    return sorted(set(before.splitlines()) ^ set(after.splitlines()))


SCENES: dict[str, Callable[[str, Path, random.Random], Seen]] = {"study": study, "sweep": sweep, "lease": lease}


def main() -> int:
    """Print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default=list(SCENES), metavar="SCENE")
    parser.add_argument("--times", type=int, default=20, help="of each scene (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    bad = 0
    for name in options.scenes:
        for number in range(options.times):
            kind = KINDS[name][number % len(KINDS[name])]
            draw = random.Random(f"{options.seed} {name} {number}")
            with tempfile.TemporaryDirectory(prefix="chaos-") as place:
                seen = SCENES[name](kind, Path(place), draw)
            bad += bool(seen.wrong)
            print(f"{name:6} {number + 1:3} {kind:19} {seen.ending}", *seen.wrong, sep="\n    WRONG ", flush=True)
    print(f"{options.times * len(options.scenes)} moments, {bad} in which something is wrong")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
