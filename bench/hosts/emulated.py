"""The emulated machine of roll-outs: ten hosts with sshds of their own, two switches and a router, on Debian's kernel.

Its lab is described in bench/hosts/machine/lab. Hosts are reached by ssh through ports of this machine's loopback.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MACHINE = Path(__file__).resolve().parent / "machine"
NAMES = tuple(f"h{number}" for number in range(1, 11))
BOOT_SECONDS = 300.0
STEP_SECONDS, LOGIN_SECONDS, LOGINS = 60.0, 60, 5
CONFIG = """\
Host {name}
  HostName 127.0.0.1
  Port {port}
"""
COMMON = """\
Host *
  User root
  HostKeyAlias emulated
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
  ControlMaster auto
  ControlPath {folder}/c-%n
  ControlPersist 600
"""


@dataclass(frozen=True)
class Emulated:
    """The running machine. `agent`: the agent's binary for it; `options`: for ssh; `log`: what it prints."""

    folder: Path
    agent: Path
    log: Path

    @property
    def options(self) -> tuple[str, ...]:
        """What precedes a host on ssh's command line."""
        return ("-F", str(self.folder / "config"))

    def run(self, *words: str, check: bool = True, given: str = "") -> str:
        """The output of a command outside of all hosts, with `given` as its input; CalledProcessError if it fails."""
        command = ["ssh", *self.options, "site", *words]
        done = subprocess.run(command, check=check, input=given, capture_output=True, text=True, timeout=STEP_SECONDS)
        return done.stdout

    def ip(self, namespace: str, *words: str) -> str:
        """`ip` in a namespace."""
        return self.run("ip", "-n", namespace, *words)

    def mtus(self, name: str) -> dict[str, int]:
        """The MTU of every interface of a host."""
        listed: list[dict[str, Any]] = json.loads(self.ip(name, "-j", "link", "show"))
        return {each["ifname"]: int(each["mtu"]) for each in listed}

    def route_mtus(self, name: str, interface: str) -> dict[str, int]:
        """What every route through an interface asks for, 0 for nothing, by destination."""
        found = {}
        for family in ("-4", "-6"):
            for route in json.loads(self.ip(name, "-j", family, "route", "show", "dev", interface) or "[]"):
                found[route["dst"]] = int((route.get("metrics") or [{}])[0].get("mtu", 0))
        return found


def build() -> Path:
    """Makes it (machine/build); its folder."""
    built = subprocess.run([MACHINE / "build"], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        raise SystemExit(built.returncode)  # it has said why
    return Path(built.stdout.splitlines()[-1])


@contextlib.contextmanager
def emulated(machine: Path, folder: Path) -> Iterator[Emulated]:
    """Boots it from a folder of machine/build, with keys in `folder`, and powers it off; RuntimeError if it does not
    get ready."""
    _keys(folder)
    port = _free(len(NAMES) + 1)
    lines = [CONFIG.format(name=name, port=port + number) for number, name in enumerate(("site", *NAMES))]
    (folder / "config").write_text("".join(lines) + COMMON.format(folder=folder))
    there = Emulated(folder, machine / "root/bin/framegauge-agent", folder / "log")
    with there.log.open("wb") as log:
        process = subprocess.Popen(
            [MACHINE / "run", machine, folder / "keys.cpio", str(port)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        _wait(process, there.log)
        # One by one: many at once would take longer than ssh waits. Later ones share these connections.
        for name in ("site", *NAMES):
            _log_in(there, name)
        yield there
    finally:
        for name in ("site", *NAMES):
            if (folder / f"c-{name}").exists():
                subprocess.run(["ssh", *there.options, "-O", "exit", name], check=False, capture_output=True)
        process.terminate()
        process.wait()


def _log_in(there: Emulated, name: str) -> None:
    """Several times, if it must be: the machine may still be slow from its start."""
    words = ["ssh", *there.options, "-o", f"ConnectTimeout={LOGIN_SECONDS}", name, "true"]
    for left in reversed(range(LOGINS)):
        # Not by a pipe: what keeps the connection would hold it.
        with (there.folder / "login").open("w+") as said:
            if subprocess.run(words, stdin=subprocess.DEVNULL, stderr=said, check=False).returncode == 0:
                return
            said.seek(0)
            why = said.read().strip()
        if left:
            time.sleep(2.0)
    raise RuntimeError(f"{name}: {why}")


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + BOOT_SECONDS
    while "machine: ready" not in (said := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the emulated machine is not ready:\n{said[-2000:]}")
        time.sleep(0.2)


def _keys(folder: Path) -> None:
    """Keys of the hosts and of who logs in, and the archive that brings them into the machine."""
    inside = folder / "inside/etc/ssh"
    inside.mkdir(parents=True)
    for path in (folder / "key", inside / "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    shutil.copy(folder / "key.pub", inside / "authorized_keys")
    kind, key, *_ = (inside / "host_key.pub").read_text().split()
    (folder / "known_hosts").write_text(f"emulated {kind} {key}\n")
    root = folder / "inside"
    names = "\n".join(str(path.relative_to(root)) for path in [root, *sorted(root.rglob("*"))])
    archive = subprocess.run(
        ["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], input=names.encode(), cwd=root, check=True,
        stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    (folder / "keys.cpio").write_bytes(archive)


def _free(count: int) -> int:
    """The first of so many ports in a row that are free on the loopback."""
    for low in range(20_000, 32_000, count):
        with contextlib.ExitStack() as undo:
            try:
                for port in range(low, low + count):
                    one = undo.enter_context(socket.socket())
                    one.bind(("127.0.0.1", port))
            except OSError:
                continue
        return low
    raise RuntimeError(f"found no {count} free ports in a row, expected some from 20000 on")
