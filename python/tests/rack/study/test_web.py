"""The workload `web` on the real rack: who stalls with Nagle's algorithm, what is accounted for, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.real import await_end, children, hosts_of, leaves_nothing, record, shown, study
from helpers.support import PATIENCE_SECONDS, by_length

from framegauge.agents.pipe import Agent
from framegauge.apps.web import COMPONENTS
from framegauge.apps.web.limits import LIMITS
from framegauge.experiment.planning import searched
from framegauge.results.journal import Run
from framegauge.study.model import Study
from framegauge.testbeds.base import Json
from framegauge.workloads.web import NEEDS

STALL_SECONDS = 0.035  # Linux delays an acknowledgement by 40 ms at least
HOSTS = [f"h{number}" for number in range(1, 8)]
BED = {"kind": "rack", "topology": "rack", "hosts": 7, "link": {"rate": "200 Mb/s"}}
MARGINS = {"operations": "5 %", "response_mean": "10 %", "response_p90": "10 %"}

pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]


def asked(**rest: Any) -> Study:
    return study(blocks=1, retries=0, testbed=BED, margins=MARGINS, **rest)


STEADY_SECONDS = by_length(2, 6)
NAGLE = asked(
    treatment="nagle", factors={"mtu": [1500, 9000], "nagle": {"levels": [False, True], "baseline": False}},
    workloads=[{"web": {"users": 4, "think": "0.1 s", "ramp_up": "0.3 s", "steady": f"{STEADY_SECONDS} s", "thumbnail": "3 kB"}}],
)  # fmt: skip


@pytest.mark.soak(1)
def test_all_is_accounted_for_and_with_nagle_a_part_between_the_two_mss_stalls_at_9000_alone(
    rack_agent: Agent, tmp_path: Path
) -> None:
    """A response is written in two parts, headers and body. The body of 3 kB fills no segment of 8948 bytes, so it waits
    for the headers' acknowledgement, which the receiver delays. At 1500 its first segment is full: it follows at once,
    and two segments are acknowledged without delay. Only a machine that holds hosts up makes others as late."""
    folder = tmp_path / "out"

    def as_expected(runs: Sequence[Run]) -> bool:
        parts = {(bool(each.level), each.conditions["mtu"]): accounted_for(folder, each) for each in runs}
        print(parts)
        assert len(parts) == 4
        return all(
            (part["p50_seconds"] > STALL_SECONDS and part["stalled"] > part["count"] / 2)
            if key == (True, 9000)
            else (part["p50_seconds"] < STALL_SECONDS and part["stalled"] < part["count"] / 4)
            for key, part in parts.items()
        )

    shown(rack_agent, NAGLE, folder, as_expected)


def accounted_for(folder: Path, each: Run) -> Json:
    """What became of a run's thumbnails; its sockets are proved, and every request and operation is counted once."""
    nagle, mtu, work = bool(each.level), each.conditions["mtu"], record(folder, each)["workload"]
    # From the live sockets of every component, and their segments.
    assert {name.split()[0] for name in work["nodelay"]} == set(HOSTS)
    assert {tuple(values) for values in work["nodelay"].values()} == {(not nagle,)}
    assert {row["mss_bytes"] for row in work["live"]} == {mtu - 52}
    found = work["web"]
    counted = found["requests"]
    assert counted == {**dict.fromkeys(("sent", "answered", "received"), counted["sent"]), "failed": 0}
    assert found["begun"] == found["ended"] >= found["operations"]
    assert sum(one["count"] for one in found["by_operation"].values()) == found["operations"]
    assert each.metrics["operations"] == pytest.approx(found["operations"] / STEADY_SECONDS)
    assert each.metrics["response_mean"] == pytest.approx(found["response"]["mean_seconds"])
    assert each.metrics["response_p90"] >= found["response"]["p50_seconds"]
    assert set(found["cpu"]) == set(COMPONENTS) - {"driver"}
    assert all(0 <= one["least"] <= one["mean"] <= one["most"] <= 2.2 for one in found["cpu"].values())
    assert found["cpu"]["web-1"]["mean"] > 0
    assert {name for name, flows in found["flows"].items() if flows["connections"]} == set(COMPONENTS)
    part: Json = found["parts"]["thumbnail"]
    assert part["mean_bytes"] == 3000
    return part


@pytest.mark.soak(0.5)
def test_a_site_bears_as_many_users_as_its_slowest_link(rack_agent: Agent, tmp_path: Path) -> None:
    """An operation is about 25 kB, of which links of 10 Mb/s carry 50 a second. Four users who think for 0.2 s ask for 20
    a second at most. Forty-four ask for 220, so that each waits for about 0.7 s: no machine makes that shorter, and one
    that is busy may make the four wait."""
    limits = dict.fromkeys(LIMITS, "350 ms")
    rule = {"first": 4, "step": 40, "most": 84, "quantile": "75 %", "limits": limits}
    web = {
        "users": "saturate", "saturate": rule, "think": "0.2 s", "ramp_up": "0.5 s", "steady": by_length("2 s", "5 s"),
    }  # fmt: skip
    saturated = study(
        blocks=1, retries=0, testbed={**BED, "link": {"rate": "10 Mb/s"}}, margins={"saturation_users": "10 %"},
        workloads=[{"web": web}],
    )  # fmt: skip
    folder = tmp_path / "out"

    def bears_four(runs: Sequence[Run]) -> bool:
        borne = []
        for each in runs:
            found = record(folder, each)["workload"]["web"]
            steps = found["steps"]
            assert [step["users"] for step in steps] in ([4], [4, 44])
            assert [bool(step["beyond"]) for step in steps] == [False] * (len(steps) - 1) + [True]
            assert all(step["judged"] and step["cpu"] for step in steps)
            assert found["users"] == 4
            counted = found["requests"]
            assert counted["sent"] == counted["answered"] + counted["failed"] == counted["received"]
            # Its two steps at the least, of three.
            assert each.seconds > len(steps) * (0.5 + saturated.workloads[0].web.steady)
            borne.append(each.metrics.get("saturation_users"))
            if len(steps) == 1:
                assert "a smaller `first`" in each.readings["not_measured"]["saturation_users"]
        assert set(borne) <= {4.0, None}
        return 4.0 in borne

    shown(rack_agent, saturated, folder, bears_four)


STUDY = """\
question: Who is killed?
testbed: {kind: rack, topology: rack, hosts: 7, link: {rate: 200 Mb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - web: {users: 5, think: 0.5 s, ramp_up: 1 s, steady: 60 s}
control: false
blocks: 2
"""


def test_a_controller_that_is_killed_leaves_nothing_of_it(tmp_path: Path) -> None:
    """In the middle of a run, with all servers at work."""
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    mounts = Path("/proc/self/mountinfo").read_text()
    family: list[int] = []
    with leaves_nothing(lambda: await_end(family)):
        command = [sys.executable, "-m", "framegauge", "study", str(path), "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
            programs = until_at_work(controller)
            root = children(controller.pid)[0]
            family += [root, *programs, *hosts_of(root)]
            os.kill(controller.pid, signal.SIGKILL)
            controller.communicate(timeout=PATIENCE_SECONDS)
    assert Path("/proc/self/mountinfo").read_text() == mounts


def until_at_work(controller: subprocess.Popen[bytes]) -> list[int]:
    """The programs of the site, once its users have come."""
    until = time.monotonic() + PATIENCE_SECONDS
    while controller.poll() is None and time.monotonic() < until:
        found = dict(below(controller.pid))
        names = " ".join(found.values())
        if all(each in names for each in ("web.driver", "web.site", "nginx", "memcached", "postgres", "ganesha.nfsd")):
            return [process for process, words in found.items() if "framegauge-agent" not in words]
        time.sleep(0.05)
    controller.kill()
    raise AssertionError(controller.communicate()[1].decode())


def below(process: int) -> Iterator[tuple[int, str]]:
    """Everything that a process has started, with its words."""
    for each in children(process):
        try:
            yield each, Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield from below(each)
