"""The workload `web` on the real rack: who stalls with Nagle's algorithm, what is accounted for, and what is left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.real import because_held_up, judged, record, run, study
from helpers.support import by_length

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
        whole = [each for each in runs if each.metrics]
        parts = {(bool(each.level), each.conditions["mtu"]): accounted_for(folder, each) for each in whole}
        print(parts)
        return len(parts) == 4 and all(
            (part["p50_seconds"] > STALL_SECONDS and part["stalled"] > part["count"] / 2)
            if key == (True, 9000)
            else (part["p50_seconds"] < STALL_SECONDS and part["stalled"] < part["count"] / 4)
            for key, part in parts.items()
        )

    once = NAGLE.model_copy(update={"retries": 0})
    judged(lambda: but_for_slow_users(run(rack_agent, once, folder)), folder, as_expected)


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


def but_for_slow_users(runs: Sequence[Run]) -> list[Run]:
    """The runs, in which too few operations of users who think briefly are the machine's: its links carry twice as many."""
    few = re.compile(r"error: web: found \d+ operations in the steady time, ")
    return [
        replace(each, excluded=[because_held_up(line) if few.match(line) else line for line in each.excluded])
        for each in runs
    ]


@pytest.mark.soak(0.5)
def test_a_site_bears_as_many_users_as_its_slowest_link(rack_agent: Agent, tmp_path: Path) -> None:
    """An operation is about 25 kB, of which links of 10 Mb/s carry 50 a second. Four users who think for 0.2 s ask for 20
    a second at most. Forty-four ask for 220, so that each waits for about 0.7 s: no machine makes that shorter, and one
    that is busy may make the four wait."""
    limits = dict.fromkeys(LIMITS, "350 ms")
    rule = {"first": 4, "step": 40, "most": 84, "quantile": "75 %", "limits": limits}
    web = {
        "users": "saturate", "saturate": rule, "think": "0.2 s", "ramp_up": "0.5 s", "steady": by_length("4 s", "5 s"),
    }  # fmt: skip
    saturated = study(
        blocks=1, retries=0, testbed={**BED, "link": {"rate": "10 Mb/s"}}, margins={"saturation_users": "10 %"},
        workloads=[{"web": web}],
    )  # fmt: skip
    folder = tmp_path / "out"

    def bears_four(runs: Sequence[Run]) -> bool:
        borne: list[float | None] = []
        for each in runs:
            if not each.metrics:
                continue
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

    once = saturated.model_copy(update={"retries": 0})
    judged(lambda: but_for_slow_users(run(rack_agent, once, folder)), folder, bears_four)
