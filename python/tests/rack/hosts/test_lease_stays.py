"""Changes that stand on each other, and may stay: whatever is killed, each is put back whole, or is there for good."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.rollouts import until
from helpers.switched import Lab, lab

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError

SECONDS = 3.0
HOLD = {"routes4:eth1": "1500", "routes6:eth1": "1500!"}
BACK_SECONDS = 20.0  # on a machine that is busy


@pytest.fixture
def there() -> Iterator[Lab]:
    with lab(["a", "b"]) as found:
        yield found


@contextlib.contextmanager
def agent_in(there: Lab, name: str = "a") -> Iterator[Agent]:
    agent = Agent.open([find_agent(), "host", "--netns", there.hosts[name]])
    try:
        yield agent
    finally:
        agent.close()


def raised(agent: Agent, seconds: float = 60.0, stays: bool = True) -> None:
    """Routes held, the interface raised, routes released: six settings."""
    agent.request("lease.begin", {"settings": HOLD, "seconds": seconds, "stays": stays})
    agent.request("lease.set", {"settings": {"mtu:eth1": "9000"}})
    agent.request("lease.set", {"settings": {"routes6:eth1": "1500"}})
    agent.request("lease.set", {"settings": {"routes4:eth1": "0", "routes6:eth1": "0"}})


def holders(agent: Agent) -> list[int]:
    """Process ids of the lease and of its guard."""
    found = [agent.process_id]
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        with contextlib.suppress(OSError, IndexError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            if words[1] in (b"lease", b"change") and parent in found:
                found.append(pid)
    return found[1:]


def test_changes_stand_on_each_other_and_go_back_one_by_one(there: Lab) -> None:
    with agent_in(there) as agent:
        raised(agent)
        assert (there.mtu("a"), there.route_mtus("a")) == (9000, {0})
        assert agent.request("lease.back", {"changes": 4}) == {"restored": True, "failed": None, "left": 4}
        assert (there.mtu("a"), there.route_mtus("a")) == (9000, {0, 1500})  # fe80::/64 is not held
        assert agent.request("lease.back", {"changes": 2})["left"] == 2
        assert (there.mtu("a"), there.route_mtus("a")) == (1500, {0, 1500})
        agent.request("lease.end")
        assert there.is_old()


def test_what_is_kept_outlasts_the_lease_and_the_rest_goes_back(there: Lab) -> None:
    with agent_in(there) as agent:
        raised(agent)
        assert agent.request("lease.keep", {"changes": 4}) == {"kept": 4, "left": 2}
        agent.request("lease.end")
        assert (there.mtu("a"), there.route_mtus("a")) == (9000, {0, 1500})
    there.set_mtu("a", 1500)
    with agent_in(there) as agent:
        agent.request(
            "lease.begin", {"settings": {"routes4:eth1": "0", "routes6:eth1": "0"}, "seconds": 60, "stays": True}
        )
        agent.request("lease.keep", {"changes": 2})
    assert there.is_old()


def test_a_lease_of_the_ordinary_kind_keeps_nothing(there: Lab) -> None:
    with agent_in(there) as agent:
        raised(agent, stays=False)
        with pytest.raises(AgentError, match="expected framegauge-agent change"):
            agent.request("lease.keep", {"changes": 6})
        with pytest.raises(AgentError, match="expected framegauge-agent change"):
            agent.request("lease.reopen", {"addresses": ["10.77.0.2"]})
    assert there.is_old()


@pytest.mark.parametrize(("victim", "kept"), [("lease", 0), ("agent", 4), ("lease", 4), ("guard", 4)])
def test_whoever_is_killed_what_was_kept_is_there_and_the_rest_is_back(there: Lab, victim: str, kept: int) -> None:
    expected = (1500, {0}) if not kept else (9000, {0, 1500})
    with agent_in(there) as agent:
        raised(agent, SECONDS)
        if kept:
            agent.request("lease.keep", {"changes": kept})
        lease, guard = holders(agent)
        os.kill({"agent": agent.process_id, "lease": lease, "guard": guard}[victim], signal.SIGKILL)
        assert until(lambda: (there.mtu("a"), there.route_mtus("a")) == expected, BACK_SECONDS)


def test_a_group_that_fails_leaves_the_ones_before_as_they_are(there: Lab) -> None:
    with agent_in(there) as agent:
        agent.request("lease.begin", {"settings": HOLD, "seconds": 60, "stays": True})
        with pytest.raises(AgentError):
            agent.request("lease.set", {"settings": {"mtu:eth1": "65535", "mtu:nonesuch": "9000"}})
        with pytest.raises(AgentError, match="expected 0, or 576 to 65535 bytes"):
            agent.request("lease.set", {"settings": {"routes4:eth1": "100"}})
        assert (there.mtu("a"), there.route_mtus("a")) == (1500, {0, 1500})
        agent.request("lease.renew")
        agent.request("lease.end")
    assert there.is_old()


def test_routes_are_read_with_what_a_lease_would_put_back(there: Lab) -> None:
    there.ip("a", "route", "add", "192.0.2.0/24", "via", there.address("b"), "mtu", "lock", "1400")
    with agent_in(there) as agent:
        found = agent.request("host.routes", {"interface": "eth1"})
        assert found["settings"] == {
            "mtu:eth1": "1500", "mtu6:eth1": "1500", "routes4:eth1": "0 192.0.2.0/24=1400!", "routes6:eth1": "0",
        }  # fmt: skip
        rows = {each["route"]: (each["connected"], each["mtu"], each["locked"]) for each in found["routes"]}
        assert rows["10.77.0.0/24"] == (True, 0, False)
        assert rows["192.0.2.0/24"] == (False, 1400, True)
        agent.request("lease.begin", {"settings": HOLD, "seconds": 60})
        agent.request("lease.end")
        assert agent.request("host.routes", {"interface": "eth1"}) == found
