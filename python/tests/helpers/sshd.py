"""Hosts with a real sshd each: network namespaces on a bridge, keys and a configuration of their own."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from helpers.support import PATIENCE_SECONDS

SSHD = "/usr/sbin/sshd"
CONFIG = """\
Port 22
ListenAddress {address}
HostKey {folder}/host_key
PidFile {folder}/sshd.pid
AuthorizedKeysFile {keys}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
StrictModes no
AllowTcpForwarding yes
MaxStartups {startups}
MaxSessions 200
"""
PREFIX, IN_A_ROW = 20, 250  # of 16 rows of addresses
# What the start of an agent may use on a host that has little else: no Python among it.
LITTLE = ("sh", "uname", "mkdir", "mktemp", "chmod", "rm", "rmdir", "head", "wc", "mv", "cat", "ls", "id", "sha256sum")
# Of /etc, what programs of a host that has its own need of it.
ETC = ("passwd", "group", "shadow", "nsswitch.conf", "ld.so.cache", "hosts")
GUEST, GUEST_ID = "framegauge-guest", 54321


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class SshHost:
    """One host: its name in the configuration of ssh, its namespace, its address and its folder."""

    name: str
    namespace: str
    address: str
    folder: Path
    process: int

    def mtu(self) -> int:
        words = run("ip", "-n", self.namespace, "-o", "link", "show", "eth0").split()
        return int(words[words.index("mtu") + 1])

    def processes(self) -> list[int]:
        """All that run there: the server, and those of who logged in."""
        return _processes(self.namespace)


@dataclass(frozen=True)
class Site:
    """All of them; `options` are what ssh is to be given, `namespace` the controller's."""

    hosts: Mapping[str, SshHost]
    options: tuple[str, ...]
    folder: Path
    bridge: str


@contextlib.contextmanager
def site(
    folder: Path,
    names: list[str],
    mtu: int = 9000,
    sudoers: str | None = None,
    small_disk: bool = False,
    programs: Path | None = None,
    startups: str = "200",
    etc: Mapping[str, Path] = MappingProxyType({}),
    family: int = 4,
) -> Iterator[Site]:
    """Up to 1,000 hosts on one bridge, reached from this namespace, which has an address on it; everything goes after.

    With `sudoers` one logs in as a guest who has these rules of sudo; both are known inside these hosts only. With
    `small_disk` the cache folders are 100 MB. `programs` is the only folder of programs of those who log in. `startups`:
    how many may be logging in before some are turned away (sshd_config(5), MaxStartups). `etc`: folders that hosts have
    for /etc, by their names. `family` 6: hosts have IPv6 addresses alone.
    """
    tag, second, third = _free()
    bridge = f"fgs{tag}"
    (folder / "known_hosts").touch()
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
    hosts: dict[str, SshHost] = {}
    Path("/run/sshd").mkdir(exist_ok=True)
    with contextlib.ExitStack() as undo:
        run("ip", "link", "add", bridge, "mtu", str(mtu), "type", "bridge")
        undo.callback(run, "ip", "link", "del", bridge)
        network = f"fd88:{tag}::" if family == 6 else ""
        own = f"{network}fe/64" if family == 6 else f"10.{second}.{third}.254/{PREFIX}"
        run("ip", "addr", "add", own, "dev", bridge, *(["nodad"] if family == 6 else []))
        run("ip", "link", "set", bridge, "up")
        for number, name in enumerate(names, 1):
            if small_disk:
                cache = folder / name / "cache"
                cache.mkdir(parents=True)
                run("mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(cache))
                undo.callback(run, "umount", "-l", str(cache))
            address = (
                # As ssh writes it, which looks for it in known_hosts.
                ipaddress.ip_address(f"{network}{number:x}").compressed
                if network
                else f"10.{second}.{third + number // IN_A_ROW}.{number % IN_A_ROW + 1}"
            )
            config = CONFIG.format(address=address, folder=folder / name, keys=folder / "key.pub", startups=startups)
            hosts[name] = _host(folder, name, f"fgs{tag}-{number}", address, bridge, config, sudoers, programs, undo,
                                etc.get(name))  # fmt: skip
        lines = [f"Host {host.name}\n  HostName {host.address}\n" for host in hosts.values()]
        (folder / "config").write_text(
            "".join(lines)
            + f"Host *\n  User {'root' if sudoers is None else GUEST}\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n"
            + f"  UserKnownHostsFile {folder}/known_hosts\n  StrictHostKeyChecking yes\n"
        )
        yield Site(hosts, ("-F", str(folder / "config")), folder, bridge)


def _free() -> tuple[str, int, int]:
    """A tag, and the second and third byte of a network of addresses, that nobody here uses."""
    while True:
        tag = secrets.token_hex(2)
        second, third = 88 + int(tag[0], 16) % 8, 16 * int(tag[1], 16)
        if f" 10.{second}.{third}.254/" not in run("ip", "-o", "-4", "address"):
            return tag, second, third


def _host(
    folder: Path,
    name: str,
    namespace: str,
    address: str,
    bridge: str,
    config: str,
    sudoers: str | None,
    programs: Path | None,
    undo: contextlib.ExitStack,
    etc: Path | None = None,
) -> SshHost:
    place = folder / name
    place.mkdir(exist_ok=True)
    run("ip", "netns", "add", namespace)
    undo.callback(run, "ip", "netns", "del", namespace)
    port = f"{namespace}p"[:15]
    run("ip", "link", "add", port, "mtu", "9000", "type", "veth", "peer", "name", "eth0", "netns", namespace)
    # By itself: a connection that was cut off keeps its namespace, and so the link, until TCP gives up.
    undo.callback(subprocess.run, ["ip", "link", "del", port], check=False, capture_output=True)
    run("ip", "link", "set", port, "master", bridge, "up")
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    words = [f"{address}/64", "dev", "eth0", "nodad"] if ":" in address else [f"{address}/{PREFIX}", "dev", "eth0"]
    run("ip", "-n", namespace, "addr", "add", *words)
    run("ip", "-n", namespace, "link", "set", "eth0", "up")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / "host_key"))
    public = (place / "host_key.pub").read_text().split()
    with (folder / "known_hosts").open("a") as known:
        known.write(f"{address} {public[0]} {public[1]}\n")
    cache = (place / "home" / ".cache") if sudoers is not None else place / "cache"
    environment = f"XDG_CACHE_HOME={cache}" + (f" PATH={programs}" if programs is not None else "")
    (place / "sshd_config").write_text(f"{config}SetEnv {environment}\n")
    before = f"mount --bind {shlex.quote(str(etc))} /etc\n" if etc is not None else ""
    before += guest(place, sudoers) if sudoers is not None else ""
    inside = f"{before}exec {SSHD} -D -e -f {shlex.quote(str(place / 'sshd_config'))}"
    sshd = subprocess.Popen(
        ["ip", "netns", "exec", namespace, "sh", "-ec", inside],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(place / "sshd.log").open("wb"),
    )  # fmt: skip
    undo.callback(_end, sshd, namespace)
    for _ in range(200):
        if (place / "sshd.pid").exists():
            break
        time.sleep(0.02)
    return SshHost(name, namespace, address, place, sshd.pid)


def guest(place: Path, sudoers: str) -> str:
    """Files that are to stand in for this machine's within one mount namespace, and the commands that put them there."""
    (place / "home").mkdir()
    os.chown(place / "home", GUEST_ID, GUEST_ID)
    lines = {
        "passwd": f"{GUEST}:x:{GUEST_ID}:{GUEST_ID}::{place / 'home'}:/bin/sh\n",
        "group": f"{GUEST}:x:{GUEST_ID}:\n",
        "shadow": f"{GUEST}:*:20000:0:99999:7:::\n",
    }
    commands = ""
    for name, line in lines.items():
        (place / name).write_text(Path("/etc", name).read_text() + line)
        commands += f"mount --bind {shlex.quote(str(place / name))} /etc/{name}\n"
    rules = place / "sudoers"
    rules.write_text(f"Defaults !pam_session, !pam_setcred\n{sudoers}\n")
    rules.chmod(0o440)
    return commands + f"mount --bind {shlex.quote(str(rules))} /etc/sudoers\n"


def own_etc(folder: Path) -> Path:
    """A folder that can be a host's /etc, in which nobody owns an interface."""
    folder.mkdir(parents=True)
    for name in ETC:
        if Path("/etc", name).exists():
            (folder / name).write_bytes(Path("/etc", name).read_bytes())
    return folder


def little(folder: Path) -> Path:
    """A folder with hardly any programs, to be all that a host has."""
    folder.mkdir()
    for name in LITTLE:
        found = shutil.which(name)
        assert found is not None, name
        (folder / name).symlink_to(found)
    return folder


def _end(process: subprocess.Popen[bytes], namespace: str) -> None:
    """The server and what it left: a session whose network is cut never hears of its end."""
    process.terminate()
    process.wait(PATIENCE_SECONDS)
    for pid in _processes(namespace):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes(namespace: str) -> list[int]:
    return [int(pid) for pid in run("ip", "netns", "pids", namespace).split()]


def lacking() -> str | None:
    """What this machine lacks for it."""
    if shutil.which("ssh") is None or not os.access(SSHD, os.X_OK):
        return "apt-get install openssh-server openssh-client"
    return None
