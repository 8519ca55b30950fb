"""Agents on other hosts, over the user's own ssh: its configuration, keys, jump hosts and shared connections.

One connection carries everything. A few lines of POSIX shell on the far side look for the agent, by the hash of its
content, where root installs it and then in a cache folder; if it is missing, or the folder cannot be used or is not
safe, the agent's binary follows on the same connection. The host
needs nothing else: no Python, no root, no open port. Forwarding is off, and there are no interactive questions: a host
whose key has changed, or that requires a password, fails with ssh's own error.
"""

from __future__ import annotations

import hashlib
import os
import platform
import selectors
import shlex
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentLost, AgentMissing, AgentTimeout, InputError, MissingRequirement
from framegauge.printable import printable

__all__ = ["Binary", "Remote", "command", "host_words", "open_agent", "places"]

START_SECONDS = 20.0  # until the agent's greeting; an MTU black hole would block ssh's key exchange for ever
COPY_SECONDS = 120.0
# After a network failure the far side may never notice that the connection is gone: an agent that receives nothing for
# this long ends, unless told to stay.
PATIENCE_SECONDS = 900
NUDGE_SECONDS = 60.0
MOST_NOTES = 2  # that the script below prints
OPTIONS = (
    "BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "ConnectTimeout=10",
    "ServerAliveInterval=5", "ServerAliveCountMax=3",
)  # fmt: skip
# The output of `uname -m`, and the first part of Rust's target names.
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
# Prints "ready PATH", or "needs SYSTEM MACHINE" and then reads the agent's binary, which it puts into the first folder
# that can hold and run a program; before either, lines "note TEXT" for the user. A temporary folder is removed when the
# agent has ended. An agent that root has installed is used in place. Any other is run only if its content is the one
# that was asked for, and if only this user and root can write to it and to every folder above: paths are resolved, so
# that no link can be turned elsewhere in between. A folder such as /tmp is sticky: what others have there stays theirs.
# A sum takes long where many hosts share a CPU. So the line that `ls` prints of the summed file (with its inode, size
# and time of change, which nobody can set) is kept beside it; while it stays the same, one `ls` of all is enough.
SCRIPT = r"""
umask 077
hash=$1; size=$2; shift 2
name=agent-$hash
digest() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum; else openssl dgst -sha256 -r; fi 2>/dev/null <"$1"
}
same() {
  case $(digest "$1") in "$hash"*) ;; *) return 1 ;; esac
}
mine() {
  line=$(ls -ldn "$1" 2>/dev/null)
  case $line in [d-]????-??-*|d????????[tT]*) ;; *) return 1 ;; esac
  set -- $line
  [ "$3" = "$me" ] || [ "$3" = 0 ]
}
safe() {
  at=$1
  while mine "$at"; do
    [ "$at" != / ] || return 0
    at=${at%/*}; at=${at:-/}
  done
  return 1
}
real() {
  case $1 in /*) (cd -P "$1" 2>/dev/null && pwd -P) ;; esac
}
told() {
  set -f; set -- $1; set +f; line=$*
}
roomy() {
  set -f; set -- $(df -kP "$1" 2>/dev/null); set +f
  case ${11:-} in ''|*[!0-9]*) return 0 ;; esac
  [ "${11}" -gt $((size / 1024)) ]
}
look() {
  at=$cache/$name.sum; set -- "$1" /proc/$$
  while set -- "$@" "$at"; do
    [ "$at" != / ] || break
    at=${at%/*}; at=${at:-/}
  done
  left=$#; lines=$(ls -dlnic --full-time "$@" 2>/dev/null)
}
known() {
  [ -f "$cache/$name.sum" ] && IFS= read -r summed <"$cache/$name.sum" && look "$1" || return 1
  found=; owners=; me=
  while read -r inode mode links owner rest; do
    case $mode in [d-]????-??-*|d????????[tT]*) ;; *) return 1 ;; esac
    case $rest in *" /proc/$$") me=$owner ;; *) owners="$owners $owner" ;; esac
    told "$inode $mode $links $owner $rest"; [ "$line" != "$summed" ] || found=yes
    left=$((left - 1))
  done <<EOF
$lines
EOF
  for owner in $owners; do [ "$owner" = "$me" ] || [ "$owner" = 0 ] || return 1; done
  [ -n "$me" ] && [ -n "$found" ] && [ "$left" = 0 ]
}
checked() {
  told "$(ls -dlnic --full-time "$1" 2>/dev/null)"
  same "$1" || return 1
  [ -z "$cache" ] || [ -z "$line" ] || { printf '%s\n' "$line" >"$cache/$name.$$" &&
    mv -f "$cache/$name.$$" "$cache/$name.sum"; } 2>/dev/null || rm -f "$cache/$name.$$"
}
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/framegauge
[ -d "$cache" ] || mkdir -p "$cache" 2>/dev/null
cache=$(real "$cache")
for kept in /usr/local/bin/framegauge-agent /usr/bin/framegauge-agent "$cache/$name"; do
  if [ -n "$cache" ] && [ -x "$kept" ] && known "$kept"; then echo "ready $kept"; exec "$kept" "$@"; fi
  case $kept in /usr/*) [ ! -x "$kept" ] || break ;; esac
done
me=$(id -u); unsafe=
if [ -n "$cache" ] && ! safe "$cache"; then unsafe=$at; cache=; fi
for kept in /usr/local/bin/framegauge-agent /usr/bin/framegauge-agent; do
  if [ -x "$kept" ] && checked "$kept"; then echo "ready $kept"; exec "$kept" "$@"; fi
done
if [ -n "$unsafe" ]; then
  echo "note others can write to $unsafe, so no agent is kept below it (chmod go-w, or chown, mends that)"
fi
case $(digest /dev/null) in
  e3b0c442*) ;;
  *) [ -z "$cache" ] || echo "note no sha256sum and no openssl there, so no agent is kept"; cache= ;;
esac
kept=$cache/$name
if [ -n "$cache" ] && mine "$kept" && [ -x "$kept" ] && checked "$kept" && "$kept" --version >/dev/null 2>&1; then
  echo "ready $kept"; exec "$kept" "$@"
fi
trap '' HUP PIPE
echo "needs $(uname -s) $(uname -m)"
for place in "$cache" "${XDG_RUNTIME_DIR:-}" /dev/shm "${TMPDIR:-/tmp}" /var/tmp; do
  own=; folder=$(real "$place")
  [ -n "$folder" ] || continue
  if [ "$folder" != "$cache" ]; then
    folder=$(mktemp -d "$folder/framegauge.XXXXXX" 2>/dev/null) || continue
    own=$folder
  fi
  file=$folder/$name.$$
  if safe "$folder" && roomy "$folder" &&
    printf '#!/bin/sh\nexit 0\n' 2>/dev/null >"$file" && chmod 700 "$file" && "$file" 2>/dev/null
  then break; fi
  rm -f "$file" 2>/dev/null; [ -z "$own" ] || rmdir "$own" 2>/dev/null
  folder=
done
if [ -z "$folder" ]; then echo "nowhere"; exit 1; fi
echo "send $folder"
if ! head -c "$size" >"$file" || [ "$(wc -c <"$file")" -ne "$size" ]; then
  rm -f "$file"; [ -z "$own" ] || rmdir "$own"; echo "short"; exit 1
fi
chmod 700 "$file" && mv -f "$file" "$folder/$name"
[ -n "$own" ] || checked "$folder/$name"
echo "ready $folder/$name"
if [ -z "$own" ]; then trap - HUP PIPE; exec "$folder/$name" "$@"; fi
"$folder/$name" "$@"
code=$?
rm -rf "$own"
exit $code
"""


@dataclass(frozen=True)
class Binary:
    """The agent's binary for one type of machine."""

    path: Path
    digest: str
    size: int


@dataclass(frozen=True)
class Remote:
    """A host: its name, its destination for ssh, and the options that precede it on ssh's command line.

    `agent`: the agent's binary for its type of machine; None: this machine's. `ports`: those that it opens, LOW-HIGH;
    None: the kernel's choice.
    """

    name: str
    destination: str
    options: Sequence[str] = ()
    agent: str | None = None
    ports: str | None = None


def host_words(remote: Remote) -> list[str]:
    """The arguments of an agent that measures on that host."""
    ports = [] if remote.ports is None else ["--ports", remote.ports]
    return ["host", "--patience", str(PATIENCE_SECONDS), *ports]


@lru_cache(maxsize=4)
def _read(path: Path, _changed: float) -> Binary:
    data = path.read_bytes()
    return Binary(path, hashlib.sha256(data).hexdigest()[:32], len(data))


def _file(path: Path) -> Binary:
    try:
        return _read(path, path.stat().st_mtime)
    except OSError as error:
        raise AgentMissing(f"{path}: found no readable file ({error.strerror}), expected an agent") from None


def places(agent: str) -> str:
    """Where an agent is looked for on a host, in words; `agent` is its binary here."""
    digest = _file(Path(agent)).digest
    return (
        f"/usr/local/bin/framegauge-agent or /usr/bin/framegauge-agent if its SHA-256 sum begins with {digest}, "
        f"else ~/.cache/framegauge/agent-{digest}"
    )


def _encoded(script: str) -> str:
    """The script in one line, for `printf %b`: the user's shell may not accept quoted line ends (csh)."""
    return script.replace("\\", "\\\\").replace("\n", "\\n").replace("!", "\\0041")


def command(remote: Remote, words: Sequence[str], binary: Binary) -> list[str]:
    """The command that starts the agent on that host: `words` are the agent's arguments."""
    ssh = shutil.which("ssh")
    if ssh is None:
        # This machine's fault, not the host's: no other host of the command can be reached either.
        needed = {"name": "ssh", "needed_for": f"host {remote.name}", "found": "no such program"}
        raise MissingRequirement([{**needed, "remedy": "apt-get install openssh-client"}])
    if remote.destination.startswith("-") or not remote.destination.strip():
        raise InputError(f"{remote.name}: found {remote.destination!r}, expected the name of a host for ssh")
    shell = ["/bin/sh", "-c", 'eval "$(printf %b "$0")"', _encoded(SCRIPT), binary.digest, str(binary.size), *words]
    options = [word for option in OPTIONS for word in ("-o", option)]
    return [ssh, "-T", *remote.options, *options, "--", remote.destination, f"exec {shlex.join(shell)}"]


def open_agent(
    remote: Remote,
    words: Sequence[str],
    say: Callable[[str], None],
    start_seconds: float = START_SECONDS,
    ending: threading.Event | None = None,
) -> Agent:
    """A greeted agent on that host; AgentMissing or AgentLost, with the host's name, if that fails.

    The attempt is given up once `ending` is set.
    """
    binary = _file(Path(remote.agent or find_agent()))
    path = ""

    def meet(stdin: IO[bytes], stdout: IO[bytes]) -> None:
        nonlocal path
        lines = _Lines(stdout, ending)
        line = lines.next(start_seconds)
        for _ in range(MOST_NOTES):
            if not line.startswith("note "):
                break
            say(f"{remote.name}: {printable(line.removeprefix('note '))}")
            line = lines.next(start_seconds)
        if line.startswith("needs "):
            system, _, machine = line.removeprefix("needs ").partition(" ")
            if system != "Linux":
                raise AgentMissing(f"found {system}, expected Linux")
            if remote.agent is None and MACHINES.get(machine) != MACHINES.get(platform.machine()):
                raise AgentMissing(
                    f"found a machine of type {machine}, expected {platform.machine()} like this one: set `agent` of "
                    "the host in the inventory to an agent that was built for it"
                )
            line = lines.next(start_seconds)
            if line == "nowhere":
                raise AgentMissing("found no folder that can hold and run a program, expected ~/.cache, or /tmp")
            if not line.startswith("send "):
                raise AgentLost(f"found {line[:80]!r}, expected a folder for the agent")
            place = printable(line.removeprefix("send "))
            say(f"{remote.name}: copying the agent ({binary.size / 1e6:.1f} MB) to {place}")
            _send(stdin, binary.path.read_bytes(), COPY_SECONDS, ending)
            line = lines.next(COPY_SECONDS)
        if line == "short":
            raise AgentMissing("the agent could not be copied: is the disk full?")
        if not line.startswith("ready /"):
            raise AgentLost(f"found {line[:80]!r}, expected the agent")
        path = printable(line.removeprefix("ready "))

    agent = Agent.open(command(remote, words, binary), meet=meet, name=remote.name)
    agent.about = {**agent.about, "path": path}
    _company.keep(agent)
    return agent


def _send(pipe: IO[bytes], data: bytes, seconds: float, ending: threading.Event | None) -> None:
    """Writes bytes to a pipe; AgentTimeout if they are not taken in time, AgentLost once `ending` is set."""
    until, left, descriptor = time.monotonic() + seconds, memoryview(data), pipe.fileno()
    os.set_blocking(descriptor, False)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_WRITE)
            while left:
                if ending is not None and ending.is_set():
                    raise AgentLost("given up")
                if time.monotonic() >= until:
                    raise AgentTimeout(f"the agent was not taken within {seconds:g} s")
                if selector.select(_Lines.LOOK_SECONDS):
                    left = left[os.write(descriptor, left) :]
    finally:
        os.set_blocking(descriptor, True)


class _Company:
    """Keeps remote agents alive by sending an empty line now and then, from one thread for all of them."""

    def __init__(self) -> None:
        self._agents: weakref.WeakSet[Agent] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def keep(self, agent: Agent) -> None:
        """Keeps an agent alive until it is closed."""
        with self._lock:
            self._agents.add(agent)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="company", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(NUDGE_SECONDS)
            with self._lock:
                agents = list(self._agents)
            for agent in agents:
                agent.nudge()


_company = _Company()


class _Lines:
    """Reads lines from a pipe, each with a timeout, and no byte beyond them, because what follows is for the agent."""

    MOST = 4096
    LOOK_SECONDS = 0.2  # between two checks whether to give up

    def __init__(self, pipe: IO[bytes], ending: threading.Event | None) -> None:
        self._descriptor = pipe.fileno()
        self._ending = threading.Event() if ending is None else ending

    def next(self, seconds: float) -> str:
        """The next line; AgentLost at its end, AgentTimeout if it does not come."""
        until, line = time.monotonic() + seconds, bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if len(line) >= self.MOST:
                    raise AgentLost(f"found {bytes(line[:80])!r}, expected the agent")
                left = max(0.0, until - time.monotonic())
                if self._ending.is_set():
                    raise AgentLost("given up")
                if not selector.select(min(left, self.LOOK_SECONDS)):
                    if left > 0:
                        continue
                    raise AgentTimeout(f"no answer within {seconds:g} s: is the path MTU smaller than the interface's?")
                if not (byte := os.read(self._descriptor, 1)):
                    raise AgentLost("ssh ended")
                line += byte
        return line.decode("utf-8", "replace").strip()
