"""A real DHCP server on a switch of a lab, and real clients in its hosts: their renewals set an MTU again (option 26)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.rollouts import until
from helpers.sshd import run
from helpers.switched import Lab

SERVER_ADDRESS, SERVER_DEVICE = "10.77.0.250", "s0"
LEASE_SECONDS = 3600  # udhcpc renews after half of it by itself: no test is so long
RENEW_SECONDS = 60
PATIENCE_SECONDS = 20.0
AGAIN_SECONDS = 2.0
# What Debian's script of udhcpc does with a lease, without its routes and names; and a note of it.
SCRIPT = """\
#!/bin/sh
case $1 in bound | renew) busybox ifconfig "$interface" ${mtu:+mtu "$mtu"} "$ip" netmask "$subnet" ;; esac
echo "$1" >>"$0.ran"
"""


@dataclass(frozen=True)
class Server:
    """dnsmasq, which gives each host the address that it has in the lab, or another one."""

    lab: Lab
    folder: Path
    process: subprocess.Popen[bytes]

    def give(self, addresses: Mapping[str, str]) -> None:
        """Which addresses hosts get from now on: a client that has another one is refused its renewal."""
        macs = {name: self.lab.inside(name, "cat", "/sys/class/net/eth1/address").strip() for name in self.lab.hosts}
        (self.folder / "hosts").write_text("".join(f"{macs[name]},{each}\n" for name, each in addresses.items()))
        self._reload()

    def tell(self, option: str) -> None:
        """The option that clients are told from now on, as a line of dnsmasq's configuration has it."""
        (self.folder / "options").write_text(f"{option.removeprefix('dhcp-option=')}\n")
        self._reload()

    def _reload(self) -> None:
        before = self.reads()
        self.process.send_signal(signal.SIGHUP)
        assert until(lambda: self.reads() > before, PATIENCE_SECONDS)

    def reads(self) -> int:
        """How often it has read both files: this one is the last."""
        log = self.folder / "log"
        return log.read_text().count(f" read {self.folder}/options") if log.exists() else 0

    def given(self) -> int:
        """How many leases it has given or renewed."""
        return (self.folder / "log").read_text().count("DHCPACK(")


@contextlib.contextmanager
def server(lab: Lab, folder: Path, mtu: int = 1500, renew_seconds: int = RENEW_SECONDS) -> Iterator[Server]:
    """Runs it; clients renew their leases after `renew_seconds` (option 58)."""
    folder.mkdir()
    # Else the other switch, in the same namespace, would answer for the address of this one.
    run("ip", "netns", "exec", lab.switch, "sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=1")
    run("ip", "-n", lab.switch, "addr", "add", f"{SERVER_ADDRESS}/24", "dev", SERVER_DEVICE)
    (folder / "options").write_text(f"option:mtu,{mtu}\n")
    (folder / "hosts").touch()
    words = [
        "dnsmasq", "--conf-file=/dev/null", "--keep-in-foreground", "--user=root", "--port=0", "--bind-interfaces",
        f"--interface={SERVER_DEVICE}", f"--dhcp-range=10.77.0.0,static,{LEASE_SECONDS}", "--no-ping", "--log-dhcp",
        "--dhcp-authoritative", "--dhcp-ignore-names", "--dhcp-option=option:router",
        f"--dhcp-option=option:T1,{renew_seconds}", f"--dhcp-hostsfile={folder}/hosts",
        f"--dhcp-optsfile={folder}/options", f"--log-facility={folder}/log", f"--dhcp-leasefile={folder}/leases",
        f"--pid-file={folder}/pid",
    ]  # fmt: skip
    process = subprocess.Popen(["ip", "netns", "exec", lab.switch, *words])
    try:
        found = Server(lab, folder, process)
        assert until(lambda: found.reads() > 0, PATIENCE_SECONDS)
        found.give({name: lab.address(name) for name in lab.hosts})
        yield found
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class Udhcpc:
    """A udhcpc that runs. `notes`: a line for each run of its script that has ended."""

    process: subprocess.Popen[bytes]
    notes: Path

    def ran(self) -> int:
        """How often its script has set what a lease says."""
        words = self.notes.read_text().split() if self.notes.exists() else []
        return words.count("bound") + words.count("renew")

    def renewed(self) -> bool:
        """Has it renew its lease; whether it has, and its script has set what the server said."""
        before = self.ran()
        for _ in range(int(PATIENCE_SECONDS / AGAIN_SECONDS)):
            self.process.send_signal(signal.SIGUSR1)
            if until(lambda: self.ran() > before, AGAIN_SECONDS):
                return True
        return False


@contextlib.contextmanager
def udhcpc(server: Server, name: str) -> Iterator[Udhcpc]:
    """A client in a host that has a lease, and has renewed it once."""
    script = server.folder / f"udhcpc-{name}"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    words = ["busybox", "udhcpc", "-f", "-i", "eth1", "-s", str(script), "-O", "mtu"]
    with script.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            ["ip", "netns", "exec", server.lab.hosts[name], *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    found = Udhcpc(process, script.with_suffix(".ran"))
    try:
        assert until(lambda: found.ran() > 0, PATIENCE_SECONDS)
        assert found.renewed()
        yield found
    finally:
        process.kill()
        process.wait()


@dataclass
class Dhclient:
    """dhclient in a host, as its init starts it: in the host's mount namespace, which is that of a process there."""

    namespace_of: int
    folder: Path
    pid_file: Path

    @property
    def pid(self) -> int:
        return int(self.pid_file.read_text())

    def start(self) -> None:
        """Until it has a lease; then it goes to the background."""
        words = ["dhclient", "-4", "-pf", str(self.pid_file), "-lf", "/var/lib/dhcp/dhclient.eth1.leases", "eth1"]
        subprocess.run([*self._inside(), *words], check=True, capture_output=True, timeout=PATIENCE_SECONDS)

    def stop(self) -> None:
        """It ends, and gives nothing back, as when its host is switched off."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists(), PATIENCE_SECONDS)

    def _inside(self) -> list[str]:
        return ["nsenter", f"--target={self.namespace_of}", "--mount", "--net"]


@contextlib.contextmanager
def dhclient(process: int, folder: Path) -> Iterator[Dhclient]:
    """One that runs, with leases of its own; `process`: of the host."""
    leases = folder / "leases"
    leases.mkdir(parents=True)
    found = Dhclient(process, folder, folder / "dhclient.pid")
    mount = ["mount", "--bind", str(leases), "/var/lib/dhcp"]
    subprocess.run(["nsenter", f"--target={process}", "--mount", *mount], check=True)
    found.start()
    try:
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            found.stop()
