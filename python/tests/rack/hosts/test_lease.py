"""Changes that last while they are renewed: whatever is killed, stopped or cut off, the old settings are back in time."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError

SECONDS = 2.0
LATE_SECONDS = 10.0  # after which nobody is only late on a busy machine


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"fgl{secrets.token_hex(3)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        peer = ["type", "veth", "peer", "name", "v1"]
        subprocess.run(["ip", "-n", name, "link", "add", "v0", *peer], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@contextlib.contextmanager
def agent_in(namespace: str) -> Iterator[Agent]:
    agent = Agent.open([find_agent(), "host", "--netns", namespace])
    try:
        yield agent
    finally:
        agent.close()


def mtu(namespace: str) -> int:
    words = subprocess.run(
        ["ip", "-n", namespace, "-o", "link", "show", "v0"], check=True, capture_output=True, text=True
    ).stdout.split()
    return int(words[words.index("mtu") + 1])


def back_within(namespace: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if mtu(namespace) == 1500:
            return True
        time.sleep(0.02)
    return mtu(namespace) == 1500


def holders(agent: Agent) -> list[int]:
    """Process ids of the lease and of its guard."""
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if b"lease" in words[1:2] and int((place / "stat").read_text().rsplit(")", 1)[1].split()[1]) in (
                agent.process_id, *found,
            ):  # fmt: skip
                found.append(int(place.name))
    return found


def begin(agent: Agent, seconds: float = SECONDS) -> dict[str, object]:
    return agent.request("lease.begin", {"settings": {"mtu:v0": "9000"}, "seconds": seconds})


def test_a_lease_changes_and_puts_back(namespace: str) -> None:
    with agent_in(namespace) as agent:
        settings = {"mtu:v0": "9000", "tso:v0": "off", "sysctl:net.ipv4.tcp_ecn": "1"}
        answer = agent.request("lease.begin", {"settings": settings, "seconds": 60})
        assert {each["setting"]: each["now"] for each in answer["held"]} == settings
        assert mtu(namespace) == 9000
        assert agent.request("lease.end") == {"ended": "end", "restored": True, "failed": None}
        assert mtu(namespace) == 1500
        with pytest.raises(AgentError, match=r"lease\.begin comes first"):
            agent.request("lease.renew")


def sizes(agent: Agent) -> dict[str, int]:
    """The largest aggregates of the interface, as the kernel has them."""
    agent.request(
        "host.adopt", {"interface": "v0", "address": "10.0.0.1", "sysctls": [], "count": False, "sudo": False}
    )
    found: dict[str, int] = agent.request("host.read")["aggregates"]
    return found


def test_the_sizes_of_aggregates_are_changed_and_put_back(namespace: str) -> None:
    with agent_in(namespace) as agent:
        before = sizes(agent)
        settings = {"gso_size:v0": "180000 160000", "gro_size:v0": "65536 131072"}
        answer = agent.request("lease.begin", {"settings": settings, "seconds": 60})
        assert {each["setting"]: each["now"] for each in answer["held"]} == settings
        now = sizes(agent)
        assert [now[f"gso{key}_bytes"] for key in ("", "_ipv4")] == [180000, 160000]
        assert [now[f"gro{key}_bytes"] for key in ("", "_ipv4")] == [65536, 131072]
        agent.request("lease.end")
        assert sizes(agent) == before
        limit = before["tso_maximum_bytes"]
        asked = {"settings": {"gso_size:v0": f"{limit + 1} {limit + 1}"}, "seconds": 60}
        with pytest.raises(AgentError, match=r"nothing was changed: .*gso_size|found the aggregates"):
            agent.request("lease.begin", asked)
        assert sizes(agent) == before


@contextlib.contextmanager
def behind_a_router(namespace: str, near: str, router: str, far: str, bits: int) -> Iterator[None]:
    """A router at the other end of the link, from which a link of MTU 1400 leads to `far`."""
    other = f"{namespace}r"
    subprocess.run(["ip", "netns", "add", other], check=True)
    try:
        for words in (
            f"-n {namespace} link set v1 netns {other}",
            f"-n {other} link add d0 mtu 1400 type veth peer name d1",
            f"-n {other} link set d1 up",
            f"-n {other} link set d0 up",
            f"-n {other} link set v1 up",
            f"-n {namespace} link set v0 up",
            f"-n {other} addr add {router}/{bits} dev v1 nodad",
            f"-n {namespace} addr add {near}/{bits} dev v0 nodad",
            f"-n {other} route add {far} dev d0",
            f"-n {namespace} route add {far} via {router}",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        for name in ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"):
            subprocess.run(["ip", "netns", "exec", other, "sysctl", "-qw", name], check=True)
        # News of a link that came up, up to a second late, makes the kernel forget what it remembers of IPv4.
        time.sleep(1.2)
        # Too large for the second link: the router's answer is what the kernel remembers.
        ping = ["ping", "-c", "3", "-i", "0.2", "-W", "1", "-M", "do", "-s", "1430", far]
        subprocess.run(["ip", "netns", "exec", namespace, *ping], check=False, capture_output=True)
        yield
    finally:
        subprocess.run(["ip", "netns", "del", other], check=True)


def remembered(agent: Agent, address: str) -> object:
    agent.request("host.adopt", {"interface": "v0", "address": address, "sysctls": [], "count": False, "sudo": False})
    return agent.request("host.read")["path_mtu_exceptions"]


@pytest.mark.parametrize(
    ("near", "router", "far", "bits"),
    [("10.9.0.1", "10.9.0.2", "192.0.2.7", 24), ("fd09::1", "fd09::2", "2001:db8::7", 64)],
)
def test_path_mtus_are_forgotten_when_the_mtu_changes(
    namespace: str, near: str, router: str, far: str, bits: int
) -> None:
    with behind_a_router(namespace, near, router, far, bits), agent_in(namespace) as agent:
        assert remembered(agent, near) == [{"destination": far, "mtu": 1400}]
        if ":" in far:
            # Of IPv6 the kernel itself keeps it when the MTU is raised.
            subprocess.run(["ip", "-n", namespace, "link", "set", "v0", "mtu", "2000"], check=True)
            assert remembered(agent, near) == [{"destination": far, "mtu": 1400}]
        begin(agent, 30)
        assert remembered(agent, near) == []
        agent.request("lease.end")


def test_it_lasts_while_it_is_renewed_and_no_longer(namespace: str) -> None:
    """Renewed every second for longer than it lasts by itself; three seconds are left to a busy machine."""
    seconds = 4.0
    with agent_in(namespace) as agent:
        begin(agent, seconds)
        for _ in range(5):
            time.sleep(1)
            agent.request("lease.renew")
            assert mtu(namespace) == 9000
        assert back_within(namespace, seconds + LATE_SECONDS)
        with pytest.raises(AgentError, match="run out"):
            agent.request("lease.renew")
        begin(agent)  # and another one may follow


@pytest.mark.parametrize("victim", ["agent", "lease", "guard"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_whoever_dies_or_hangs_it_is_undone_in_time(namespace: str, victim: str, how: signal.Signals) -> None:
    with agent_in(namespace) as agent:
        begin(agent)
        lease, guard = sorted(holders(agent))
        target = {"agent": agent.process_id, "lease": lease, "guard": guard}[victim]
        os.kill(target, how)
        try:
            assert back_within(namespace, SECONDS + LATE_SECONDS)
        finally:
            if how is signal.SIGSTOP:
                os.kill(target, signal.SIGCONT)


def test_there_is_one_lease_at_a_time_whoever_asks(namespace: str) -> None:
    """A second one would take what the first has changed for the old values, and leave the host changed for ever."""
    with agent_in(namespace) as first, agent_in(namespace) as second:
        begin(first, 30)
        with pytest.raises(AgentError, match="another lease under way on this host"):
            begin(second, 30)
        os.kill(first.process_id, signal.SIGSTOP)
        try:
            with pytest.raises(AgentError, match="another lease under way on this host"):
                begin(second, 30)
        finally:
            os.kill(first.process_id, signal.SIGCONT)
        first.request("lease.end")
        assert mtu(namespace) == 1500
        begin(second, 30)
        assert mtu(namespace) == 9000
        second.request("lease.end")
    assert mtu(namespace) == 1500


def qdisc(namespace: str) -> str:
    shown = ["tc", "-n", namespace, "qdisc", "show", "dev", "v0", "root"]
    return subprocess.run(shown, check=True, capture_output=True, text=True).stdout


def test_a_queue_discipline_is_lent_too_and_what_the_kernel_had_is_back(namespace: str) -> None:
    before = qdisc(namespace)
    with agent_in(namespace) as agent:
        asked = {"settings": {"qdisc:v0": "pfifo"}, "seconds": 60}
        [held] = agent.request("lease.begin", asked)["held"]
        assert held == {"setting": "qdisc:v0", "before": "default", "now": "pfifo"}
        assert qdisc(namespace).startswith("qdisc pfifo ")
        agent.request("lease.end")
        assert qdisc(namespace) == before
        asked["seconds"] = SECONDS
        agent.request("lease.begin", asked)
        for holder in holders(agent):
            os.kill(holder, signal.SIGKILL)
            break
        until = time.monotonic() + SECONDS + LATE_SECONDS
        while qdisc(namespace) != before and time.monotonic() < until:
            time.sleep(0.02)
        assert qdisc(namespace) == before


def test_a_queue_discipline_that_somebody_has_set_is_left_alone(namespace: str) -> None:
    subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", "v0", "root", "pfifo", "limit", "7"], check=True)
    with agent_in(namespace) as agent:
        asked = {"settings": {"qdisc:v0": "bfifo"}, "seconds": 60}
        with pytest.raises(AgentError, match=r"v0 has a queue discipline that somebody has set \(pfifo\)"):
            agent.request("lease.begin", asked)
        assert "limit 7p" in qdisc(namespace)


def test_what_cannot_be_is_refused_and_nothing_stays_changed(namespace: str) -> None:
    with agent_in(namespace) as agent:
        asked = {"settings": {"mtu:v0": "9000", "sysctl:net.ipv4.tcp_ecn": "77"}, "seconds": 60}
        with pytest.raises(AgentError, match=r"nothing was changed: .*tcp_ecn"):
            agent.request("lease.begin", asked)
        assert mtu(namespace) == 1500
        for settings in (
            {"mtu:v9": "9000"},
            {"mtu:../v0": "9000"},
            {"lro:v0": "on"},
            {"qdisc:v0": "nonesuch"},
            {"mtu:v0": "many"},
        ):
            with pytest.raises(AgentError):
                agent.request("lease.begin", {"settings": settings, "seconds": 60})
        assert mtu(namespace) == 1500


SQUATTER = """\
import os, socket, sys, time
os.setuid(65534)
held = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
for each, part in zip(held, ("holder", "guard")):
    each.bind("\\0framegauge-lease-" + part)
for part in ("holder", "guard"):
    for folder in ("/run", "/run/framegauge"):
        try:
            os.open(f"{folder}/framegauge-lease-{sys.argv[1]}-{part}", os.O_CREAT | os.O_WRONLY)
        except OSError:
            pass
print("ready", flush=True)
time.sleep(60)
"""


def test_another_user_of_the_host_cannot_keep_leases_away(namespace: str) -> None:
    network = os.stat(f"/run/netns/{namespace}").st_ino
    words = ["ip", "netns", "exec", namespace, "python3", "-c", SQUATTER, str(network)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as squatter:
        try:
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == "ready\n"
            with agent_in(namespace) as agent:
                begin(agent, 30)
                assert mtu(namespace) == 9000
                agent.request("lease.end")
            assert mtu(namespace) == 1500
        finally:
            squatter.kill()


def test_its_lock_is_gone_with_it(namespace: str) -> None:
    with agent_in(namespace) as agent:
        begin(agent, 30)
        network = os.stat(f"/run/netns/{namespace}").st_ino
        assert len(list(Path("/run").glob(f"framegauge-lease-{network}-*"))) == 2
        agent.request("lease.end")
    assert not list(Path("/run").glob(f"framegauge-lease-{network}-*"))


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("sysctl:kernel.core_pattern", "|/tmp/evil %p", r'the sysctl "kernel\.core_pattern", expected one of net\.'),
        ("sysctl:kernel.printk_ratelimit", "9", "expected one of"),
        ("sysctl:net.ipv4.ip_forward", "1", "expected one of"),
        ("sysctl:net.ipv4.tcp_congestion_control", "../../x", "expected the name of a congestion control"),
        ("sysctl:net.ipv4.tcp_rmem", "|/tmp/evil", "expected whole numbers"),
        ("mtu:lo", "9000", "not the loopback"),
        ("mtu:v0", "1279", "expected 1280 to 65535 bytes"),
        ("mtu:../v0", "9000", "expected one of the host's"),
        ("qdisc:v0", "netem", 'the qdisc "netem", expected one of bfifo, '),
        ("tso:v0", "maybe", "expected on or off"),
    ],
)
def test_what_is_not_on_the_list_is_refused_with_the_list(
    namespace: str, setting: str, value: str, problem: str
) -> None:
    with agent_in(namespace) as agent, pytest.raises(AgentError, match=problem) as caught:
        agent.request("lease.begin", {"settings": {setting: value}, "seconds": 30})
    assert "\n" not in str(caught.value)


def test_nobody_but_a_lease_starts_a_guard(namespace: str) -> None:
    """It would set what it is told for good, and a rule for sudo may allow it: so no command starts one."""
    words = ["ip", "netns", "exec", namespace, find_agent(), "lease", "guard", "0.1", "mtu:v0=1400"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'framegauge-agent lease: found "guard", expected seconds\n'
    assert mtu(namespace) == 1500


def test_an_administrator_can_permit_less(namespace: str, tmp_path: Path) -> None:
    """/etc/framegauge/lease of a mount namespace of this test's own."""
    script = (
        f"mount -t tmpfs none /etc && mkdir /etc/framegauge && echo 'mtu:v0' > /etc/framegauge/lease && "
        f'exec {find_agent()} lease 5 "$@"'
    )
    words = ["ip", "netns", "exec", namespace, "unshare", "-m", "sh", "-c", script, "sh"]

    def lease(setting: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words, setting], input="end\n", capture_output=True, text=True, check=False)

    assert lease("mtu:v0=9000").returncode == 0
    refused = lease("sysctl:net.ipv4.tcp_ecn=1")
    assert refused.returncode == 1
    assert "found sysctl:net.ipv4.tcp_ecn, expected a setting that /etc/framegauge/lease permits" in refused.stderr
