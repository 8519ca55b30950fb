"""The user who has the rule for leases of sudo's, as an attacker: what is lent goes back, whatever this user does to it.

As under `systemd-run --user --scope`, the user has a cgroup that is its own, and begins the lease in it. Where sudo runs
without a terminal of its own (`!use_pty`, `!pam_session`, `!pam_setcred`) there is no process of it between the two.
"""

from __future__ import annotations

import contextlib
import os
import pty
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import sshd
from helpers.rollouts import until
from helpers.sshd import GUEST, GUEST_ID, run
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent

MOUNTS = Path("/proc/self/mountinfo")
SYS_NICE, SYS_RESOURCE = 23, 24  # capabilities(7), which root of a container may lack


def is_capable(number: int) -> bool:
    """Whether this process, and so whatever sudo makes root, has a right."""
    effective = Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0]
    return bool(int(effective, 16) >> number & 1)


def mounted(kind: str, option: str = "") -> Path | None:
    """Where a hierarchy of cgroups is mounted."""
    for line in MOUNTS.read_text().splitlines():
        place, _, rest = line.partition(" - ")
        if rest.split()[0] == kind and (not option or option in rest.split()[2].split(",")):
            return Path(place.split()[4])
    return None


# What a user may do to a group that is its own, and takes back.
ENDS = {
    "kill": ("cgroup2", "", "cgroup.kill", "1", None),
    "freeze": ("cgroup2", "", "cgroup.freeze", "1", "0"),
    "freezer": ("cgroup", "freezer", "freezer.state", "FROZEN", "THAWED"),
}


@dataclass(frozen=True)
class Host:
    """A network with `v0`, the agent of an administrator in it, and the user's files."""

    namespace: str
    agent: Path
    before: str

    def mtu(self) -> int:
        words = run("ip", "-n", self.namespace, "-o", "link", "show", "v0").split()
        return int(words[words.index("mtu") + 1])

    def words(self, command: str, group: Path | None = None) -> list[str]:
        """The user's command line, in a group of cgroups."""
        user = f"exec setpriv --reuid {GUEST_ID} --regid {GUEST_ID} --clear-groups sh -c {shlex.quote(command)}"
        inside = f"exec ip netns exec {self.namespace} sh -ec {shlex.quote(self.before + user)}"
        join = f"echo $$ > {shlex.quote(str(group / 'cgroup.procs'))}\n" if group is not None else ""
        return ["sh", "-ec", join + inside]

    def lease(self, *settings: str, seconds: float = 60, before: str = "") -> str:
        return f"{before}exec sudo -n {self.agent} lease {seconds} {' '.join(settings)}"

    def processes(self) -> list[int]:
        """The holder of a lease and its guard, in this order."""
        found = {}
        for pid in map(int, run("ip", "netns", "pids", self.namespace).split()):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") == str(self.agent):
                    found[pid] = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return sorted(found, key=lambda pid: found[pid] in found)


@pytest.fixture
def host(roomy: Path, request: pytest.FixtureRequest) -> Iterator[Host]:
    """With a list of the administrator: `v0` may have any MTU of IPv6."""
    name = f"fgu{secrets.token_hex(3)}"
    place = roomy / name
    etc = sshd.own_etc(place / "etc")
    agent = place / "framegauge-agent"
    shutil.copy(find_agent(), agent)
    shutil.copytree("/etc/pam.d", etc / "pam.d")
    (etc / "sudoers").touch()
    (etc / "framegauge").mkdir()
    (etc / "framegauge" / "lease").write_text("mtu:v0\n")
    rules = f"Defaults {getattr(request, 'param', '!use_pty')}\n{GUEST} ALL=(root) NOPASSWD: {agent} lease *"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        yield Host(name, agent, f"mount --bind {shlex.quote(str(etc))} /etc\n{sshd.guest(place, rules)}")
    finally:
        run("ip", "netns", "del", name)


@contextlib.contextmanager
def own_group(kind: str, option: str) -> Iterator[Path]:
    """A group of cgroups that systemd, or this test in its place, has given to the user."""
    root = mounted(kind, option)
    assert root is not None
    group = root / f"framegauge-test-{secrets.token_hex(3)}"
    group.mkdir()
    try:
        for each in (group, *group.iterdir()):
            os.chown(each, GUEST_ID, GUEST_ID)
        yield group
    finally:
        assert until(lambda: not (group / "cgroup.procs").read_text(), PATIENCE_SECONDS)
        group.rmdir()


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=[] if mounted(*row[:2]) else [pytest.mark.needs(way, remedy=f"mount a {row[0]} tree")])
        for way, row in ENDS.items()
    ],
)
@pytest.mark.parametrize("host", ["!use_pty", "use_pty"], indirect=True)
def test_in_a_cgroup_of_its_own_the_user_ends_or_stops_no_lease(host: Host, way: str) -> None:
    kind, option, file, end, back = ENDS[way]
    with own_group(kind, option) as group:
        # What is stopped ends nothing, so the time does.
        words = host.words(host.lease("mtu:v0=9000", seconds=60 if back is None else 6), group)
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
            assert user.stdout is not None
            assert '"now":"9000"' in user.stdout.readline()
            holder, guard = host.processes()
            assert str(group.name) in Path(f"/proc/{holder}/cgroup").read_text()
            assert str(group.name) not in Path(f"/proc/{guard}/cgroup").read_text()
            subprocess.run(
                ["setpriv", "--reuid", str(GUEST_ID), "--regid", str(GUEST_ID), "--clear-groups", "tee", group / file],
                input=end, text=True, stdout=subprocess.DEVNULL, check=True,
            )  # fmt: skip
            assert until(lambda: host.mtu() == 1500, PATIENCE_SECONDS)
            if back is not None:
                (group / file).write_text(back)
            # What was stopped does not go on to change anything.
            user.wait(PATIENCE_SECONDS)
        assert until(lambda: not host.processes(), PATIENCE_SECONDS)
        assert host.mtu() == 1500


def test_the_guard_has_nothing_of_its_caller(host: Host) -> None:
    marks = "echo 1000 > /proc/self/oom_score_adj; cd /tmp; "
    words = ["nice", "-n", "19", "taskset", "1", *host.words(host.lease("mtu:v0=9000", seconds=60, before=marks))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert '"now":"9000"' in user.stdout.readline()
        holder, guard = host.processes()
        fields = Path(f"/proc/{guard}/stat").read_text().rsplit(")", 1)[1].split()
        assert fields[3:5] == [str(guard), "0"]  # session and terminal
        assert os.readlink(f"/proc/{guard}/cwd") == "/"
        # Nothing of the holder's: neither its lock nor whatever the user reads and writes.
        links = {os.readlink(each) for each in Path(f"/proc/{guard}/fd").iterdir()}
        assert not links & {os.readlink(f"/proc/{holder}/fd/{number}") for number in (0, 1, 2)}
        assert not [each for each in links if each.endswith("-holder")]
        if is_capable(SYS_NICE):
            assert int(fields[16]) <= 0
            assert os.sched_getaffinity(guard) == os.sched_getaffinity(1)
        if is_capable(SYS_RESOURCE):
            assert Path(f"/proc/{guard}/oom_score_adj").read_text() == "-1000\n"
        user.communicate("end\n", PATIENCE_SECONDS)
    assert host.mtu() == 1500


def test_limits_that_end_a_process_are_lifted_or_there_is_no_lease(host: Host) -> None:
    words = host.words(host.lease("mtu:v0=9000", seconds=60, before="ulimit -t 1; ulimit -v 2000000; "))
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None
        assert user.stderr is not None
        if not is_capable(SYS_RESOURCE):
            assert "lift the caller's limits" in user.stderr.read()
        else:
            assert '"now":"9000"' in user.stdout.readline()
            rows = Path(f"/proc/{host.processes()[1]}/limits").read_text().splitlines()
            limits = {row[:25].strip(): row[26:].split()[0] for row in rows}
            assert [limits[f"Max {each}"] for each in ("cpu time", "address space")] == ["unlimited"] * 2
        user.communicate("end\n", PATIENCE_SECONDS)
    assert host.mtu() == 1500


def test_the_terminal_of_the_user_stops_no_lease(host: Host) -> None:
    """Ctrl-Z: what waits in the foreground is stopped, and the lease is over in time all the same."""
    leader, terminal = pty.openpty()
    words = ["setsid", "--ctty", "--wait", *host.words(host.lease("mtu:v0=9000", seconds=6))]
    with subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal):
        assert until(lambda: host.mtu() == 9000, PATIENCE_SECONDS)
        os.write(leader, b"\x1a")
        assert until(lambda: host.mtu() == 1500, PATIENCE_SECONDS)
        os.close(terminal)
        os.close(leader)
        for pid in host.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 18)
    assert host.mtu() == 1500


@pytest.mark.parametrize("descriptor", ["", "3<&0"])
def test_no_parent_and_no_descriptor_makes_the_user_a_lease(host: Host, descriptor: str) -> None:
    command = f"exec sudo -n {host.agent} lease guard 0.1 mtu:v0=1400 {descriptor}"
    done = subprocess.run(host.words(command), input="more []\n", capture_output=True, text=True, check=False)
    assert (done.returncode, host.mtu()) == (2, 1500)


@pytest.mark.parametrize(
    "setting", ["tso:v0=off", "mtu:v1=9000", "mtu:v0=1279", "mtu:v0=67", "sysctl:net.ipv4.tcp_ecn=1"]
)
def test_what_the_administrator_does_not_list_is_refused(host: Host, setting: str) -> None:
    done = subprocess.run(host.words(host.lease(setting)), input="end\n", capture_output=True, text=True, check=False)
    assert (done.returncode in (1, 2), done.stdout, host.mtu()) == (True, "", 1500)


def test_the_list_of_the_administrator_counts_for_further_changes(host: Host) -> None:
    said = 'set ["mtu:v0=1000"]\nset ["tso:v0=off"]\nset ["mtu:v0=1400"]\nend\n'
    words = host.words(host.lease("mtu:v0=9000", seconds=60))
    done = subprocess.run(words, input=said, capture_output=True, text=True, check=True)
    for line, part in zip(
        done.stdout.splitlines(),
        (
            '"now":"9000"', "expected 1280 to 65535 bytes", "that /etc/framegauge/lease permits", '"now":"1400"',
            '"restored":true',
        ),
        strict=True,
    ):  # fmt: skip
        assert part in line
    assert host.mtu() == 1500
