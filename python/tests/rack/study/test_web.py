"""The workload `web` on the real rack: who stalls with Nagle's algorithm, what is accounted for, and what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.real import await_end, children, hosts_of, leaves_nothing, run, study
from helpers.support import by_length

from framegauge.agents.pipe import Agent
from framegauge.apps.web import COMPONENTS
from framegauge.apps.web.limits import LIMITS
from framegauge.experiment.planning import searched
from framegauge.results.journal import Run
from framegauge.workloads.web import NEEDS

STALL_SECONDS = 0.035  # Linux delays an acknowledgement by 40 ms at least
HOSTS = [f"h{number}" for number in range(1, 8)]
BED = {"kind": "rack", "topology": "rack", "hosts": 7, "link": {"rate": "200 Mb/s"}}
MARGINS = {"operations": "5 %", "response_mean": "10 %", "response_p90": "10 %"}

pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]


def records(agent: Agent, folder: Path, **rest: Any) -> list[tuple[Run, dict[str, Any]]]:
    """Runs with their records. Only fidelity may have excluded one: a busy machine makes answers late, and none wrong."""
    runs = run(agent, study(blocks=1, retries=0, testbed=BED, margins=MARGINS, **rest), folder)
    assert {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")} == set()
    return [(each, json.loads((folder / "runs" / str(each.number) / "record.json").read_text())) for each in runs]


@pytest.mark.soak(1)
def test_with_nagle_a_part_between_the_two_mss_stalls_at_9000_and_not_at_1500(
    rack_agent: Agent, tmp_path: Path
) -> None:
    """A response is written in two parts, headers and body. The body of 3 kB fills no segment of 8948 bytes, so it waits
    for the headers' acknowledgement, which the receiver delays. At 1500 its first segment is full: it follows at once,
    and two segments are acknowledged without delay.

    A busy machine makes answers later and none earlier, so of several runs the least counts.
    """
    medians: dict[tuple[bool, int], list[float]] = defaultdict(list)
    stalled: dict[tuple[bool, int], list[float]] = defaultdict(list)
    for attempt in range(by_length(3, 6)):
        found = records(
            rack_agent, tmp_path / str(attempt), treatment="nagle",
            factors={"mtu": [1500, 9000], "nagle": {"levels": [False, True], "baseline": False}},
            workloads=[{"web": {"users": 4, "think": "0.1 s", "ramp_up": "0.3 s", "steady": "2 s", "thumbnail": "3 kB"}}],
        )  # fmt: skip
        for each, record in found:
            nagle, work = bool(each.level), record["workload"]
            # From the live sockets of every component, and their segments.
            assert {name.split()[0] for name in work["nodelay"]} == set(HOSTS)
            assert {tuple(values) for values in work["nodelay"].values()} == {(not nagle,)}
            mtu = each.conditions["mtu"]
            assert {row["mss_bytes"] for row in work["live"]} == {mtu - 52}
            part = work["web"]["parts"]["thumbnail"]
            assert part["mean_bytes"] == 3000
            medians[nagle, mtu].append(part["p50_seconds"])
            stalled[nagle, mtu].append(part["stalled"] / part["count"])
        stalls = {key: min(values) > STALL_SECONDS for key, values in medians.items()}
        if stalls == {(False, 1500): False, (False, 9000): False, (True, 1500): False, (True, 9000): True}:
            break
    assert stalls == {(False, 1500): False, (False, 9000): False, (True, 1500): False, (True, 9000): True}, medians
    assert min(stalled[True, 9000]) > 0.5 > 2 * max(min(stalled[False, mtu]) for mtu in (1500, 9000)), stalled


@pytest.mark.soak(0.5)
def test_everything_is_accounted_for_and_frames_do_not_matter_below_saturation(
    rack_agent: Agent, tmp_path: Path
) -> None:
    rates: dict[int, float] = {}
    for attempt in range(by_length(2, 4)):
        web = {"users": 6, "think": "0.3 s", "ramp_up": "0.5 s", "steady": "4 s"}
        for each, record in records(rack_agent, tmp_path / str(attempt), workloads=[{"web": web}]):
            found = record["workload"]["web"]
            counted = found["requests"]
            assert counted == {**dict.fromkeys(("sent", "answered", "received"), counted["sent"]), "failed": 0}
            assert found["begun"] == found["ended"] >= found["operations"]
            assert sum(one["count"] for one in found["by_operation"].values()) == found["operations"]
            assert each.metrics["operations"] == pytest.approx(found["operations"] / 4)
            assert each.metrics["response_mean"] == pytest.approx(found["response"]["mean_seconds"])
            assert each.metrics["response_p90"] >= found["response"]["p50_seconds"]
            assert set(found["cpu"]) == set(COMPONENTS) - {"driver"}
            assert all(0 <= one["least"] <= one["mean"] <= one["most"] <= 2.2 for one in found["cpu"].values())
            assert found["cpu"]["web-1"]["mean"] > 0
            assert {name for name, flows in found["flows"].items() if flows["connections"]} == set(COMPONENTS)
            rates[each.level] = max(rates.get(each.level, 0.0), each.metrics["operations"])
        if min(rates.values()) > 0.85 * max(rates.values()):
            break
    assert min(rates.values()) > 0.85 * max(rates.values()), rates


@pytest.mark.soak(0.5)
def test_a_site_bears_as_many_users_as_its_slowest_link(rack_agent: Agent, tmp_path: Path) -> None:
    """An operation is about 25 kB, of which links of 10 Mb/s carry 50 a second. Four users who think for 0.2 s ask for 20
    a second at most. Forty-four ask for 220, so that each waits for about 0.7 s.

    A busy machine makes answers later and none earlier: of several runs, one must bear the four, and none the others.
    """
    limits = dict.fromkeys(LIMITS, "350 ms")
    rule = {"first": 4, "step": 40, "most": 84, "quantile": "75 %", "limits": limits}
    web = {
        "users": "saturate", "saturate": rule, "think": "0.2 s", "ramp_up": "0.5 s", "steady": by_length("2 s", "5 s"),
    }  # fmt: skip
    bed = {**BED, "link": {"rate": "10 Mb/s"}}
    borne: list[float] = []
    for attempt in range(by_length(3, 6)):
        asked = study(
            blocks=1, retries=0, testbed=bed, margins={"saturation_users": "10 %"}, workloads=[{"web": web}]
        )  # fmt: skip
        folder = tmp_path / str(attempt)
        runs = run(rack_agent, asked, folder)
        for each in runs:
            found = json.loads((folder / "runs" / str(each.number) / "record.json").read_text())["workload"]["web"]
            steps = found["steps"]
            assert [step["users"] for step in steps] in ([4], [4, 44])
            assert [bool(step["beyond"]) for step in steps] == [False] * (len(steps) - 1) + [True]
            assert all(step["judged"] and step["cpu"] for step in steps)
            assert found["users"] == 4
            counted = found["requests"]
            assert counted["sent"] == counted["answered"] + counted["failed"] == counted["received"]
            # Its two steps at the least, of three.
            assert each.seconds > len(steps) * (0.5 + asked.workloads[0].web.steady)
            borne += [each.metrics["saturation_users"]] if "saturation_users" in each.metrics else []
            if len(steps) == 1:
                assert "a smaller `first`" in each.readings["not_measured"]["saturation_users"]
        if borne:
            break
    assert set(borne) == {4.0}


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
            controller.communicate(timeout=60)
    assert Path("/proc/self/mountinfo").read_text() == mounts


def until_at_work(controller: subprocess.Popen[bytes]) -> list[int]:
    """The programs of the site, once its users have come."""
    until = time.monotonic() + 60
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
