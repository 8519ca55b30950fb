"""The state file of the kept rack, and checks whether the processes that it names still run.

Each user has at most one rack. The state identifies processes by number and start time (clock ticks since boot),
because numbers are reused. Only modules that import quickly are used, because `framegauge rack exec` must start fast.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from framegauge.errors import FramegaugeError, InputError
from framegauge.rack.keeper import SEAL, replace, seal, socket_path

__all__ = ["Process", "Taken", "boot_id", "claim", "current", "forget", "listen", "state_path", "within_reach"]

SCHEMA = 1
FOR_ROOT = Path("/run/framegauge-rack.json")

Json = dict[str, Any]
Say = Callable[[str], None]


class Taken(InputError):
    """There is a rack already, or one is being built."""


class Process(NamedTuple):
    """A process, identified so that a later one of the same number differs."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process that has this number now; FramegaugeError if there is none, or it is not visible."""
        ticks = _start_ticks(pid)
        if ticks is None:
            raise FramegaugeError(f"/proc/{pid}/stat: found no such process, expected one that runs and is visible")
        return cls(pid, ticks)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Process:
        """The process in a mapping with its two keys."""
        return cls(int(value["pid"]), int(value["start_ticks"]))

    def as_json(self) -> Json:
        """The process as a mapping for `from_json`."""
        return {"pid": self.pid, "start_ticks": self.start_ticks}

    def runs(self) -> bool:
        """Whether it still runs."""
        return _start_ticks(self.pid) == self.start_ticks

    def open(self) -> int | None:
        """A descriptor for exactly this process, which becomes readable when it ends; None if it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.runs():  # checked after opening, so that the descriptor cannot be that of a later process
            return descriptor
        os.close(descriptor)
        return None


def _start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat (proc_pid_stat(5)); None if the process does not run, or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    """The id of this boot, from which ticks are counted; a file in /tmp may be from an earlier one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def state_path(user_id: int | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """The path of the state file of this user's rack, whether or not it exists."""
    user = os.geteuid() if user_id is None else user_id
    if user == 0:
        return FOR_ROOT
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / FOR_ROOT.name
    return Path(f"/tmp/framegauge-rack-{user}") / FOR_ROOT.name


def _own_folder(path: Path) -> bool:
    """Whether the folder of the state file is created for it, and removed with it."""
    return path.parent.name.startswith("framegauge-rack-")


def read(path: Path) -> Json | None:
    """The state in a file; InputError if it was not written by this program and user."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: found no readable file ({error.strerror}), expected the state of a rack") from None
    with open(descriptor, encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        # Programs and processes named in the file are run and signalled with our rights.
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            mode = f"user {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o}"
            raise InputError(f"{path}: found a file of {mode}, expected your own with mode 600; remove it")
        try:
            state: Json = json.load(file)
            schema = state["schema"]
            is_whole = state.get(SEAL) == seal(state)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            schema, is_whole = None, False
    if isinstance(schema, int) and schema != SCHEMA:
        raise InputError(f"{path}: found schema {schema}, expected {SCHEMA}: use the framegauge that built the rack")
    if not is_whole:
        raise InputError(
            f"{path}: found other content than was written, expected the state of a rack: end process "
            "`framegauge-agent rack` if there is one, and remove the file"
        )
    return {key: value for key, value in state.items() if key != SEAL}


def current(path: Path, say: Say) -> Json | None:
    """The state of the rack that is up, or being built; a state whose keeper has ended is removed, and reported."""
    state = read(path)
    if state is None:
        return None
    keeper = Process.from_json(state["keeper"])
    if state["boot_id"] == boot_id() and keeper.runs():
        return state
    if forget(path, keeper):
        reason = state["reason"] or f"its keeper, process {keeper.pid}, has ended"
        say(f"the rack that was up no longer exists ({reason}); removed {path}")
    return None


@contextlib.contextmanager
def claim(path: Path, state: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Holds the state file while a rack is built, with this process as its keeper; a failure removes it.

    Yields a function that writes the final state. Taken if there is a state file already.
    """
    if _own_folder(path):
        _make_own_folder(path.parent)
    _sweep(path)
    builder = Process.of(os.getpid())
    base = {"schema": SCHEMA, "boot_id": boot_id(), "state": "building", "reason": None, "keeper": builder.as_json()}
    # Linked, not renamed: an existing file is never replaced, and no incomplete file is visible.
    draft = f"{path}.{os.getpid()}"
    try:
        replace(draft, {**base, **state})
        os.link(draft, path)
    except FileExistsError:
        raise Taken(f"{path}: found the state of another rack, expected none") from None
    except OSError as error:
        raise FramegaugeError(f"{path}: cannot be written ({error.strerror}), expected a writable file") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    try:
        yield lambda final: replace(str(path), {**base, **state, **final})
    except BaseException:
        _remove(path)
        raise


def forget(path: Path, keeper: Process) -> bool:
    """Removes the state file if it is still that of this keeper; returns whether it was."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    with open(descriptor, encoding="utf-8") as file:
        # Two processes that clean up at once take turns, and the later must not remove a file written in between.
        fcntl.flock(file, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            is_same = os.path.samestat(os.fstat(file.fileno()), os.stat(path, follow_symlinks=False))
            if is_same and Process.from_json(json.load(file)["keeper"]) == keeper:
                _remove(path)
                return True
    return False


@contextlib.contextmanager
def listen(path: Path) -> Iterator[socket.socket]:
    """A socket next to the state file that this process holds, accessible only to this user and root."""
    with within_reach(path) as address, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        Path(address).unlink(missing_ok=True)  # left behind by a killed process; the claim excludes any other
        old_mask = os.umask(0o177)  # so that the socket never has another mode; clients cannot connect before `listen`
        try:
            listening.bind(address)
        except OSError as error:
            raise FramegaugeError(f"{socket_path(str(path))}: cannot be created ({error.strerror})") from None
        finally:
            os.umask(old_mask)
        listening.listen(1024)  # the backlog for clients beyond the most that are served
        yield listening


@contextlib.contextmanager
def within_reach(path: Path) -> Iterator[str]:
    """A path of the socket next to a state file that is short enough (108 bytes, unix(7)) wherever its folder is."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(socket_path(str(path)))}"
    finally:
        os.close(folder)


def _make_own_folder(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise InputError(f"{folder}: found a file or folder of others, expected your own folder with mode 700")


def _remove(path: Path) -> None:
    """Removes the socket, then the state file: without a state file, another process may create its own socket."""
    Path(socket_path(str(path))).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    _remove_own_folder(path)


def _remove_own_folder(path: Path) -> None:
    if _own_folder(path):
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _sweep(path: Path) -> None:
    """Removes drafts of processes that were killed while they wrote."""
    for draft in path.parent.glob(f"{path.name}.*"):
        number = draft.suffix[1:]
        if number.isdigit() and _start_ticks(int(number)) is None:
            draft.unlink(missing_ok=True)
