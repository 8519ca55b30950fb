"""GRO in hardware where no NIC has it: the interfaces' own words, over ssh and in a lease."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from helpers import sshd
from helpers.over_ssh import framegauge, study_of
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError

pytestmark = pytest.mark.needs("ssh", "sshd")


def test_a_study_is_refused_before_its_first_run_with_what_the_interface_says(there: Site, tmp_path: Path) -> None:
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    study["factors"] = {"mtu": 9000, "hw_gro": {"levels": [False, True], "baseline": False}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"treatment": "hw_gro"}))
    process = framegauge("study", tmp_path / "study.yaml", "--out", tmp_path / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    assert process.returncode == 2, said
    (line,) = (each for each in said.splitlines() if "rx-gro-hw" in each)
    assert "alpha: eth0: found rx-gro-hw: off [fixed], expected one that can be switched for hw_gro" in line
    assert not (tmp_path / "out/runs").exists() or not list((tmp_path / "out/runs").iterdir())
    assert {host.mtu() for host in there.hosts.values()} == {1500}


def test_a_veth_and_a_tap_say_that_it_is_fixed_and_take_no_lease_of_it(there: Site) -> None:
    namespace = there.hosts["alpha"].namespace
    sshd.run("ip", "-n", namespace, "tuntap", "add", "tap0", "mode", "tap")
    try:
        with Agent.open(["ip", "netns", "exec", namespace, str(find_agent()), "host"]) as agent:
            for interface in ("eth0", "tap0"):
                asked = {
                    "interface": interface,
                    "address": "10.0.0.1",
                    "sysctls": [],
                    "features": ["rx-gro-hw", "rx-x"],
                }
                agent.request("host.adopt", asked)
                reading = agent.request("host.read")
                assert reading["features"] == {"rx-gro-hw": {"on": False, "changeable": False}, "rx-x": None}
                assert reading["nics"][0]["features"] == reading["features"]
                wanted = {"settings": {f"rx-gro-hw:{interface}": "on"}, "seconds": 60}
                with pytest.raises(AgentError, match=rf"{interface} says rx-gro-hw: off \[fixed\], expected one that"):
                    agent.request("lease.begin", wanted)
            agent.request("host.adopt", {key: value for key, value in asked.items() if key != "features"})
            assert "features" not in agent.request("host.read")
    finally:
        sshd.run("ip", "-n", namespace, "link", "del", "tap0")
