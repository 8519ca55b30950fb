"""A rate that no machine carries is refused in one line, before anything is built; one that it carries is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.real import UP, leaves_nothing
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import Refused
from framegauge.testbeds.rack import Relay

FASTEST = 100 * 10**12  # bits per second; 64 KiB in 5 ns
# The most that a study may ask of a rack: 64 KiB in 1.3 us, which is more than programs hand over anywhere.
STUDY = """\
testbed: {kind: rack, link: {rate: RATE}, links: [LINKS]}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 1 MB}}]
blocks: 2
"""


def test_a_rate_beyond_the_machine_is_missing_speed_and_one_within_it_is_not() -> None:
    with leaves_nothing(), Agent.open([find_agent(), "rack"]) as agent:
        for rate in (10**9, 10**10):
            assert agent.request("requirements", {"testbed": "fabric", "bits_per_second": rate})["missing"] == []
        [found] = agent.request("requirements", {"testbed": "fabric", "bits_per_second": FASTEST})["missing"]
        assert found["name"] == "speed"
        assert found["found"].endswith(
            "that this machine hands over, with the largest aggregates, for a link of 100 Tb/s"
        )
        # The kernel's own link has no fabric that would have to carry it.
        assert agent.request("requirements", {"testbed": "kernel", "bits_per_second": FASTEST})["missing"] == []


def test_a_rack_of_such_links_is_refused_and_one_whose_links_nothing_can_fill_is_built() -> None:
    with leaves_nothing(), Agent.open([find_agent(), "rack"]) as agent:
        link = {**UP["link"], "bits_per_second": FASTEST}
        with pytest.raises(Refused, match=r"rate of h1>switch: requested 100 Tb/s, the limit here is about .* Gb/s"):
            agent.request("rack.up", {**UP, "link": link})
        own = {"from": "h1", "to": "switch", "bits_per_second": FASTEST}
        with pytest.raises(Refused, match="a link of 100 Tb/s: this machine hands over at most about"):
            agent.request("rack.up", {**UP, "shaper": None, "links": [own]})
        # Two hosts of 200 Mb/s send 400 Mb/s, whatever the port to one of them could do.
        agent.request("rack.up", {**UP, "links": [{**own, "from": "switch", "to": "h1"}]})
        agent.request("rack.down")


def test_a_rack_that_is_up_is_not_set_to_such_a_rate() -> None:
    with leaves_nothing(), Agent.open([find_agent(), "rack"]) as agent:
        agent.request("rack.up", UP)
        host = Relay(agent, "h1")
        before = host.request("host.read")["nics"][0]["qdisc"]
        with pytest.raises(Refused, match=r"rate of h1>switch: requested 100 Tb/s, the limit here is about .* Gb/s"):
            agent.request("rack.set", {"from": "h1", "to": "switch", "bits_per_second": FASTEST})
        assert host.request("host.read")["nics"][0]["qdisc"] == before
        agent.request("rack.set", {"from": "h1", "to": "switch", "bits_per_second": 10**9})
        assert host.request("host.read")["nics"][0]["qdisc"]["bits_per_second"] > before["bits_per_second"]
        agent.request("rack.down")


@pytest.mark.parametrize(
    ("rate", "links", "line"),
    [
        ("400 Gb/s", "", "framegauge: missing speed (needed for links as fast as asked): found at most about "),
        (
            "1 Gb/s", "{from: h1, to: switch, rate: 400 Gb/s}, {from: switch, to: h2, rate: 400 Gb/s}",
            "framegauge: rate of h1>switch: requested 400 Gb/s, ",
        ),
    ],
    ids=["of all links", "of one link"],
)  # fmt: skip
def test_a_study_says_so_in_one_line_and_leaves_nothing(rate: str, links: str, line: str, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    factors = "mtu: [1500, 9000], shaping: off" if links else "mtu: [1500, 9000]"
    text = STUDY.replace("RATE", rate).replace("LINKS", links).replace("mtu: [1500, 9000]", factors)
    study.write_text(text)
    command = [sys.executable, "-m", "framegauge", "study", str(study), "--out", str(tmp_path / "out")]
    with leaves_nothing():
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert process.returncode == 2, process.stderr
    assert process.stderr.splitlines()[-1].startswith(line), process.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["study.yaml"]
