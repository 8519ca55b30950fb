"""The rack that is kept for hand use: where its state is written, and whether what the state names still runs.

One rack a user. The state names its processes by number and start time (clock ticks since boot), because numbers
are used again. Only what is quick to import: `framegauge rack exec` must not keep people waiting.
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
from framegauge.rack.keeper import replace, socket_path

__all__ = ["Process", "Taken", "boot_id", "claim", "current", "forget", "listen", "state_path", "within_reach"]

SCHEMA = 1
FOR_ROOT = Path("/run/framegauge-rack.json")

Json = dict[str, Any]
Say = Callable[[str], None]


class Taken(InputError):
    """There is a rack, or one is being built."""


class Process(NamedTuple):
    """A process, not to be confused with a later one of the same number."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process that has this number now; FramegaugeError if there is none that we may see."""
        ticks = _start_ticks(pid)
        if ticks is None:
            raise FramegaugeError(f"/proc/{pid}/stat: found no such process, expected one that runs and may be seen")
        return cls(pid, ticks)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Process:
        """From a mapping that has the two keys."""
        return cls(int(value["pid"]), int(value["start_ticks"]))

    def as_json(self) -> Json:
        """The two keys of `from_json`."""
        return {"pid": self.pid, "start_ticks": self.start_ticks}

    def runs(self) -> bool:
        """Whether it still runs."""
        return _start_ticks(self.pid) == self.start_ticks

    def open(self) -> int | None:
        """A descriptor that stands for this very process, and becomes readable when it ends; None: it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.runs():  # asked after opening: the descriptor cannot be that of a later process
            return descriptor
        os.close(descriptor)
        return None


def _start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat (proc_pid_stat(5)); None if it does not run, also if it only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    """Of this boot: ticks are counted from it, and a file in /tmp may be older."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def state_path(user_id: int | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """The state file of this user's rack; whether there is one is another matter."""
    user = os.geteuid() if user_id is None else user_id
    if user == 0:
        return FOR_ROOT
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / FOR_ROOT.name
    return Path(f"/tmp/framegauge-rack-{user}") / FOR_ROOT.name


def _own_folder(path: Path) -> bool:
    """Whether the folder of the state file is made for it, and goes with it."""
    return path.parent.name.startswith("framegauge-rack-")


def read(path: Path) -> Json | None:
    """The state in a file; InputError if it is not one that we wrote."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: found no readable file ({error.strerror}), expected the state of a rack") from None
    with open(descriptor, encoding="utf-8") as file:
        about = os.fstat(file.fileno())
        # What it names is run, and signalled, with our rights.
        if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
            mode = f"user {about.st_uid}, mode {stat.S_IMODE(about.st_mode):o}"
            raise InputError(f"{path}: found a file of {mode}, expected our own with mode 600; remove it")
        try:
            state: Json = json.load(file)
            found = state["schema"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}: found no JSON of ours, expected the state of a rack; remove it") from None
    if found != SCHEMA:
        raise InputError(f"{path}: found schema {found}, expected {SCHEMA}: use the framegauge that built the rack")
    return state


def current(path: Path, say: Say) -> Json | None:
    """The state of the rack that is up, or being built; one whose keeper is gone is removed, and said."""
    state = read(path)
    if state is None:
        return None
    keeper = Process.from_json(state["keeper"])
    if state["boot_id"] == boot_id() and keeper.runs():
        return state
    if forget(path, keeper):
        why = state["reason"] or f"its keeper, process {keeper.pid}, has gone"
        say(f"the rack that was up is no more ({why}); removed {path}")
    return None


@contextlib.contextmanager
def claim(path: Path, state: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Hold the state file while a rack is built, naming this process its keeper; a failure removes it.

    Gives what writes the final state. Taken if somebody was quicker.
    """
    if _own_folder(path):
        _make_own_folder(path.parent)
    _sweep(path)
    builder = Process.of(os.getpid())
    first = {"schema": SCHEMA, "boot_id": boot_id(), "state": "building", "reason": None, "keeper": builder.as_json()}
    # Linked, not renamed: a file that is there already stays, and nobody ever sees half of ours.
    draft = f"{path}.{os.getpid()}"
    try:
        replace(draft, {**first, **state})
        os.link(draft, path)
    except FileExistsError:
        raise Taken(f"{path}: found the state of another rack, expected none") from None
    except OSError as error:
        raise FramegaugeError(
            f"{path}: found no way to write it ({error.strerror}), expected a writable file"
        ) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    try:
        yield lambda final: replace(str(path), {**first, **state, **final})
    except BaseException:
        _remove(path)
        raise


def forget(path: Path, keeper: Process) -> bool:
    """Remove the state file if it still is that of this keeper; whether it was."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    with open(descriptor, encoding="utf-8") as file:
        # Two that tidy up at once take turns, and the later must not remove what a third has written meanwhile.
        fcntl.flock(file, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            same = os.path.samestat(os.fstat(file.fileno()), os.stat(path, follow_symlinks=False))
            if same and Process.from_json(json.load(file)["keeper"]) == keeper:
                _remove(path)
                return True
    return False


@contextlib.contextmanager
def listen(path: Path) -> Iterator[socket.socket]:
    """A socket beside the state file of which this process holds the claim, for nobody but this user and root."""
    with within_reach(path) as place, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        Path(place).unlink(missing_ok=True)  # of somebody who was killed: the claim says that there is nobody else
        before = os.umask(
            0o177
        )  # while it is bound, so that it never has another mode; nobody connects before `listen`
        try:
            listening.bind(place)
        except OSError as error:
            raise FramegaugeError(f"{socket_path(str(path))}: found no way to make it ({error.strerror})") from None
        finally:
            os.umask(before)
        listening.listen(1024)  # who comes while all places are taken waits
        yield listening


@contextlib.contextmanager
def within_reach(path: Path) -> Iterator[str]:
    """A name for the socket beside a state file that is short enough (108 bytes, unix(7)), wherever its folder is."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(socket_path(str(path)))}"
    finally:
        os.close(folder)


def _make_own_folder(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise InputError(f"{folder}: found something of others, expected a folder of our own with mode 700")


def _remove(path: Path) -> None:
    """The socket goes first: it is that of whom the state names, and without a state another's may come."""
    Path(socket_path(str(path))).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    _remove_own_folder(path)


def _remove_own_folder(path: Path) -> None:
    if _own_folder(path):
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _sweep(path: Path) -> None:
    """Drafts of processes that were killed while they wrote."""
    for draft in path.parent.glob(f"{path.name}.*"):
        number = draft.suffix[1:]
        if number.isdigit() and _start_ticks(int(number)) is None:
            draft.unlink(missing_ok=True)
