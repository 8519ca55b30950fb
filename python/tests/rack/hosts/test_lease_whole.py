"""What a change of an MTU takes along comes back with it, and `restored` says so only when it was read again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from helpers.leased import KINDS, Bed, agent_in, bed, is_made
from helpers.rollouts import until
from helpers.sshd import run
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError

RESTORED = {"ended": "end", "restored": True, "failed": None}


@pytest.fixture
def there() -> Iterator[Bed]:
    with bed() as made:
        yield made


def lent(there: Bed, mtu: int = 1500) -> None:
    """A lease of the interface's MTU, begun and ended: everything is as before."""
    before = there.state()
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": str(mtu)}, "seconds": 60})
        assert there.state() != before
        assert agent.request("lease.end") == RESTORED
    assert there.state() == before


ROUTES = [
    "route add 10.99.0.0/16 via 10.9.0.3 mtu 4000",
    "route add 10.98.0.0/16 via 10.9.0.3 mtu lock 3000",
    "-6 route add fd68::/64 via fd67::3 dev eth1 mtu 4000",
    "-6 route add fd68:1::/64 via fd67::3 dev eth1 mtu 1500",
    "-6 route add fd68:2::/64 via fd67::3 dev eth1 table 100 metric 7 mtu 8999",
    "-6 route add fd68:3::/64 via fd67::3 dev eth1 mtu lock 5000",
    "-6 route add fd68:4::/64 via fd67::3 dev eth1 mtu 9000",
    "-6 route add fd68:5::/64 via fd67::3 dev eth1 initcwnd 20 hoplimit 9 mtu 6000",
    "-6 route add fd68:6::/64 mtu 4100 nexthop via fd67::3 dev eth1 weight 2 nexthop via fd67::4 dev eth1",
    "-6 route add default via fd67::9 dev eth1 mtu 4200",
]  # fmt: skip


@pytest.mark.parametrize("mtu", [1500, 1280, 8000])
def test_routes_with_an_mtu_of_their_own_come_back_with_it(there: Bed, mtu: int) -> None:
    for words in ROUTES:
        there.ip(words)
    lent(there, mtu)
    for number in ("68", "68:1", "68:5"):
        assert " mtu " in there.ip(f"-6 route show fd{number}::/64")


def test_a_route_that_other_interfaces_have_alike_is_told_from_theirs(there: Bed) -> None:
    for interface in ("eth1", "far"):
        there.ip(f"-6 route del fe80::/64 dev {interface}")
    there.ip("-6 route add fe80::/64 dev far metric 256 mtu 6000")
    there.ip("-6 route append fe80::/64 dev eth1 metric 256 mtu 5000")
    lent(there)


def test_each_next_hop_of_a_route_has_its_mtu_again(there: Bed) -> None:
    """IPv6 has an MTU for each, and a listing shows the first one's."""
    there.ip("link add eth2 mtu 9000 type veth peer name far2 mtu 9000")
    for words in (
        "link set far2 up", "link set eth2 up", "addr add fd62::1/64 dev eth2 nodad",
        "-6 route add fdaa::/64 mtu 4000 nexthop via fd62::3 dev eth2 nexthop via fd67::3 dev eth1",
        "nexthop add id 7 via fd67::5 dev eth1", "nexthop add id 8 via fd62::5 dev eth2", "nexthop add id 9 group 8/7",
        "-6 route add fdab::/64 nhid 7 mtu 4100", "-6 route add fdac::/64 nhid 9 mtu 4200",
    ):  # fmt: skip
        there.ip(words)
    lent(there)
    for interface in ("eth1", "eth2"):
        assert " mtu 4000 " in there.ip(f"-6 route get fdaa::7 oif {interface}")


@pytest.mark.needs("ethtool")
@pytest.mark.parametrize(
    "setting", ["tso:eth1=off", "gso:eth1=off", "tx:eth1=off", "gro:eth1=on", "gso_size:eth1=30000 30000"]
)
def test_offloads_that_follow_another_one_come_back(there: Bed, setting: str) -> None:
    there.ip("link add link eth1 name mv0 mtu 9000 type macvlan mode bridge")
    shown = [["ip", "netns", "exec", there.host, "ethtool", "-k", each] for each in ("eth1", "mv0", "far")]

    def state() -> list[str]:
        return [there.state(), *(subprocess.check_output(words, text=True) for words in shown)]

    before = state()
    with agent_in(there.host) as agent:
        name, _, value = setting.partition("=")
        agent.request("lease.begin", {"settings": {name: value}, "seconds": 60})
        assert state() != before
        assert agent.request("lease.end") == RESTORED
    assert state() == before


@pytest.mark.needs("ethtool")
def test_what_a_bridge_has_of_its_ports_is_not_the_leases(there: Bed) -> None:
    for words in (
        "link add br0 type bridge", "link set eth1 master br0", "link set br0 up",
        "link add port0 mtu 9000 gso_max_size 30000 type veth peer name port1",
    ):  # fmt: skip
        there.ip(words)
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": 60})
        run("ip", "netns", "exec", there.host, "ethtool", "-K", "port0", "tx", "off", "gro", "off")
        there.ip("link set port0 master br0")
        assert agent.request("lease.end") == RESTORED
    assert there.mtu("br0") == 9000


def test_the_mtu_that_ipv6_has_for_an_interface_comes_back(there: Bed) -> None:
    there.sysctl("net.ipv6.conf.eth1.mtu=3000")
    there.ip("-6 route add fd68::/64 via fd67::3 dev eth1 mtu 3000")
    lent(there)
    lent(there, 2000)


# Those that this kernel has: no package brings the others.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if is_made(kind)])
def test_what_stands_on_an_interface_comes_back(there: Bed, kind: str) -> None:
    there.ip(f"link add {KINDS[kind]}")
    if kind in ("bridge", "bond"):
        there.ip("link set eth1 down")
        there.ip("link set eth1 master up0")
        there.ip("link set eth1 up")
    else:
        there.ip("link set up0 mtu 8900")
    there.ip("link set up0 up")
    if kind != "macvtap":
        there.ip("link add link up0 name top0 type macvlan mode bridge") if kind != "macvlan" else None
    there.ip("addr add fd70::1/64 dev up0 nodad")
    there.ip("-6 route add fd71::/64 via fd70::3 dev up0 mtu 1800")
    lent(there)


def test_the_ports_of_a_bridge_that_is_lent_keep_what_each_has(there: Bed) -> None:
    there.ip("link add pair0 mtu 9000 type veth peer name pair1")
    there.ip("link add br0 type bridge")
    for port in ("eth1", "pair0"):
        there.ip(f"link set {port} master br0")
    there.ip("link set pair0 mtu 4000")
    before = there.state()
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:br0": "1400"}, "seconds": 60})
        assert agent.request("lease.end") == RESTORED
    assert there.state() == before


@pytest.mark.parametrize("mtu", [1500, 8000])
def test_what_stands_on_it_in_a_container_comes_back(there: Bed, mtu: int) -> None:
    for number in (0, 1):
        there.ip(f"link add link eth1 name mv{number} mtu 9000 type macvlan mode bridge")
    there.ip(f"link set mv1 netns {there.container}")
    for words in (
        "link set mv1 up", "addr add fd69::2/64 dev mv1 nodad", "-6 route add fd6a::/64 via fd69::9 dev mv1 mtu 8500",
        "link add link mv1 name deep mtu 8800 type macvlan mode bridge",
    ):  # fmt: skip
        there.ip(words, there.container)
    lent(there, mtu)


def test_a_container_that_ends_takes_its_interface_with_it(there: Bed) -> None:
    there.ip("link add link eth1 name mv0 mtu 9000 type macvlan mode bridge")
    there.ip(f"link set mv0 netns {there.container}")
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": 60})
        subprocess.run(["ip", "netns", "del", there.container], check=True)
        assert agent.request("lease.end") == RESTORED
    assert there.mtu() == 9000


def test_of_an_interface_that_is_gone_no_command_is_said(there: Bed) -> None:
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": 60})
        there.ip("link del eth1")
        end = agent.request("lease.end")
    assert end["restored"] is False
    [differs] = end["differs"]
    assert (differs["what"], differs["expected"], differs["commands"]) == ("the MTU of eth1", "9000", [])


def test_the_other_end_of_a_veth_is_left_to_whoever_has_it(there: Bed) -> None:
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": 60})
        there.ip("link set far mtu 2000")
        assert agent.request("lease.end") == RESTORED
    assert (there.mtu(), there.mtu("far")) == (9000, 2000)


def test_several_changes_take_along_what_the_first_one_found(there: Bed) -> None:
    there.ip("link add link eth1 name mv0 mtu 9000 type macvlan mode bridge")
    there.ip("-6 route add fd68::/64 via fd67::3 dev eth1 mtu 4000")
    before = there.state()
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "3000"}, "seconds": 60})
        agent.request("lease.set", {"settings": {"mtu:eth1": "1500", "tso:eth1": "off"}})
        assert agent.request("lease.back", {"changes": 1}) == {"restored": True, "failed": None, "left": 1}
        assert (there.mtu(), there.mtu("mv0")) == (3000, 3000)
        assert agent.request("lease.end") == RESTORED
    assert there.state() == before


def processes(agent: Agent) -> tuple[int, int]:
    """The holder of a lease, and its guard."""

    def child(of: int) -> int:
        return int(subprocess.run(["pgrep", "-P", str(of)], capture_output=True, text=True, check=True).stdout)

    holder = child(agent.process_id)
    return holder, child(holder)


@pytest.mark.parametrize("victim", ["agent", "holder", "guard"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP])
def test_whoever_ends_all_of_it_comes_back(there: Bed, victim: str, how: signal.Signals) -> None:
    there.ip("link add link eth1 name mv0 mtu 9000 type macvlan mode bridge")
    there.ip("-6 route add fd68::/64 via fd67::3 dev eth1 mtu 4000")
    before = there.state()
    with agent_in(there.host) as agent:
        # Who is stopped ends nothing, so the time does.
        seconds = 5 if how is signal.SIGSTOP else 60
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": seconds})
        holder, guard = processes(agent)
        target = {"agent": agent.process_id, "holder": holder, "guard": guard}[victim]
        os.kill(target, how)
        try:
            assert until(lambda: there.state() == before, PATIENCE_SECONDS)
        finally:
            if how is signal.SIGSTOP and os.path.exists(f"/proc/{target}"):
                os.kill(target, signal.SIGCONT)


def test_what_cannot_be_put_back_is_named_with_what_mends_it(there: Bed) -> None:
    there.ip("-6 route add fd68::/64 via fd67::3 dev eth1 mtu 4000")
    before = there.state()
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": 60})
        # Somebody takes away the address, without which the route cannot be made again.
        there.ip("addr del fd67::1/64 dev eth1")
        end = agent.request("lease.end")
    [differs] = end["differs"]
    assert (end["restored"], end["failed"]) == (
        False,
        f"{differs['what']}: found {differs['found']}, expected {differs['expected']}",
    )
    assert differs["expected"] == "fd68::/64 via fd67::3 dev eth1 metric 1024 mtu 4000"
    there.ip("addr add fd67::1/64 dev eth1 nodad")
    for command in differs["commands"]:
        subprocess.run(["ip", "netns", "exec", there.host, "sh", "-c", command], check=True)
    assert there.state() == before


@pytest.mark.needs("dmesg")
def test_what_cannot_be_put_back_is_in_the_log_where_nobody_is_left_to_hear_it(there: Bed) -> None:
    network = f"fd68:{os.getpid():x}::/64"
    there.ip(f"-6 route add {network} via fd67::3 dev eth1 mtu 4000")
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": 60})
        there.ip("addr del fd67::1/64 dev eth1")
        os.kill(processes(agent)[0], signal.SIGKILL)
        line = f"framegauge-agent lease: eth1: a route: found {network} via fd67::3 dev eth1 metric 1024 mtu 9000, expected"
        assert until(lambda: line in run("dmesg"), PATIENCE_SECONDS)


def test_a_lease_that_has_ended_by_itself_says_what_is_not_as_it_was(there: Bed) -> None:
    there.ip("-6 route add fd68::/64 via fd67::3 dev eth1 mtu 4000")
    with agent_in(there.host) as agent:
        agent.request("lease.begin", {"settings": {"mtu:eth1": "1500"}, "seconds": 60})
        there.ip("addr del fd67::1/64 dev eth1")
        os.kill(processes(agent)[0], signal.SIGTERM)
        assert until(lambda: there.mtu() == 9000, PATIENCE_SECONDS)
        with pytest.raises(AgentError, match=r"run out, and not everything is as it was: .* \(mend: ip -6 route"):
            agent.request("lease.renew")


PERMIT = "mount -t tmpfs none /etc; mkdir /etc/framegauge; echo 'mtu:eth1 below-1280' > /etc/framegauge/lease; "


def small_words(there: Bed, mtu: int, permit: str = PERMIT) -> list[str]:
    """A lease of an MTU that no IPv6 has, with the word for it."""
    script = f"{permit}exec {find_agent()} lease 60 mtu:eth1={mtu}"
    return ["ip", "netns", "exec", there.host, "unshare", "-m", "sh", "-c", script]


def small(there: Bed, mtu: int, permit: str = PERMIT) -> subprocess.CompletedProcess[str]:
    words = small_words(there, mtu, permit)
    return subprocess.run(words, input="end\n", capture_output=True, text=True, check=False)


def test_ipv6_that_a_small_mtu_takes_away_comes_back(there: Bed) -> None:
    for words in [
        *ROUTES, "-6 neigh add fd67::77 lladdr 02:00:00:00:00:01 dev eth1 nud permanent",
        "-6 neigh add proxy fd67::88 dev eth1", "addr add fd6b::1/64 dev eth1 nodad noprefixroute",
        "addr add fd6c::1 peer fd6c::2/128 dev eth1 nodad", "link add link eth1 name mv0 mtu 9000 type macvlan mode bridge",
        "link set mv0 addrgenmode none", "link set mv0 up", "addr add fd6d::1/64 dev mv0 nodad",
    ]:  # fmt: skip
        there.ip(words)
    for setting in ("accept_ra=2", "forwarding=1", "hop_limit=70", "accept_redirects=0"):
        there.sysctl(f"net.ipv6.conf.eth1.{setting}")
    there.sysctl("net.ipv6.neigh.eth1.gc_stale_time=77")
    before = there.state()
    for mtu in (1279, 68):
        done = small(there, mtu)
        assert '"restored":true' in done.stdout, done
        assert there.state() == before


def test_ipv6_comes_back_also_when_its_mtu_is_back_already(there: Bed) -> None:
    """As when the holder is killed in the middle of putting everything back."""
    for words in ROUTES:
        there.ip(words)
    before = there.state()
    words = small_words(there, 1000)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert '"now":"1000"' in holder.stdout.readline()
        there.ip("link set eth1 mtu 9000")
        assert "fd67::1" not in there.state()
        holder.kill()
    assert until(lambda: there.state() == before, PATIENCE_SECONDS)


def test_a_small_mtu_takes_the_word_for_it(there: Bed) -> None:
    for permit in ("", PERMIT.replace(" below-1280", "")):
        refused = small(there, 1279, permit)
        assert refused.returncode == 1
        assert 'found the MTU "1279", expected 1280 to 65535 bytes, or the line mtu:eth1 below-1280' in refused.stderr
    assert small(there, 67).returncode != 0
    assert there.mtu() == 9000


def test_what_the_dead_have_left_is_swept_by_the_next(there: Bed) -> None:
    inode = os.stat(f"/run/netns/{there.container}").st_ino
    with agent_in(there.container) as agent:
        there.ip("link add v0 type veth peer name v1", there.container)
        agent.request("lease.begin", {"settings": {"mtu:v0": "9000"}, "seconds": 60})
        for target in reversed(processes(agent)):
            os.kill(target, signal.SIGKILL)
    left = [f"/run/framegauge-lease-{inode}-{part}" for part in ("holder", "guard")]
    assert all(os.path.exists(each) for each in left)
    lent(there)
    assert not any(os.path.exists(each) for each in left)
