"""The lines of shell that look for the agent on a host: which file they run, and which they do not trust."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from framegauge.agents.ssh import SCRIPT

AGENT = b'#!/bin/sh\necho "agent $0 $*"\n'
EVIL = b"#!/bin/sh\necho evil\n"
DIGEST = hashlib.sha256(AGENT).hexdigest()
NAME = f"agent-{DIGEST[:32]}"
SHELLS = [["sh"], *([["busybox", "sh"]] if shutil.which("busybox") else [])]
pytestmark = pytest.mark.parametrize("shell", SHELLS, ids=" ".join)


def there(shell: Sequence[str], home: Path, script: str = SCRIPT, **variables: str) -> list[str]:
    """What is said on a host, with the agent's binary waiting to be copied."""
    command = [*shell, "-c", script, "sh", DIGEST[:32], str(len(AGENT)), "host"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), **variables}
    done = subprocess.run(command, input=AGENT, capture_output=True, env=environment, check=False)
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def keep(cache: Path, content: bytes = AGENT) -> Path:
    """An agent in the cache, as an earlier connection left it."""
    cache.mkdir(parents=True, mode=0o700)
    (cache / NAME).write_bytes(content)
    (cache / NAME).chmod(0o700)
    return cache / NAME


def is_copied(said: Sequence[str], outside: Path) -> None:
    """Copied to a folder of its own, which is gone afterwards, and run from there."""
    assert [line.split()[0] for line in said] == ["needs", "send", "ready", "agent"]
    folder = Path(said[1].removeprefix("send "))
    assert outside not in folder.parents
    assert said[2:] == [f"ready {folder}/{NAME}", f"agent {folder}/{NAME} host"]
    assert not folder.exists()


def test_it_is_copied_once_and_then_found(tmp_path: Path, shell: Sequence[str]) -> None:
    place = tmp_path / ".cache/framegauge"
    ready = [f"ready {place}/{NAME}", f"agent {place}/{NAME} host"]
    assert there(shell, tmp_path)[1:] == [f"send {place}", *ready]
    assert there(shell, tmp_path) == ready
    assert place.stat().st_mode & 0o777 == 0o700


def counted(tmp_path: Path) -> tuple[str, Path]:
    """A PATH with a sha256sum that writes down each use, and what it writes to."""
    log, tools = tmp_path / "sums", tmp_path / "tools"
    tools.mkdir()
    log.touch()
    own = tools / "sha256sum"
    own.write_text(f'#!/bin/sh\necho sum >>{log}\nexec {shutil.which("sha256sum")} "$@"\n')
    own.chmod(0o755)
    return f"{tools}:{os.environ['PATH']}", log


def test_an_agent_is_summed_again_only_after_a_change(tmp_path: Path, shell: Sequence[str]) -> None:
    path, log = counted(tmp_path)
    kept = tmp_path / ".cache/framegauge" / NAME
    ready = [f"ready {kept}", f"agent {kept} host"]
    there(shell, tmp_path, PATH=path)  # it is copied, and summed once then
    sums = log.read_text()
    assert there(shell, tmp_path, PATH=path) == ready
    assert sums
    assert log.read_text() == sums
    was = kept.stat()
    kept.write_bytes(EVIL.ljust(len(AGENT), b"#"))
    os.utime(kept, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert kept.stat().st_size == was.st_size
    assert there(shell, tmp_path, PATH=path)[1:] == [f"send {kept.parent}", *ready]
    assert log.read_text() != sums
    assert kept.read_bytes() == AGENT


@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_summed_agent_in_a_folder_that_was_opened_to_others_is_not_used(
    tmp_path: Path, shell: Sequence[str], above: int
) -> None:
    kept = keep(tmp_path / "home/.cache/framegauge")
    there(shell, tmp_path / "home")
    assert (kept.parent / f"{NAME}.sum").exists()
    kept.parents[above].chmod(0o777)
    said = there(shell, tmp_path / "home", TMPDIR="/tmp")
    assert said[0].startswith(f"note others can write to {kept.parents[above]}, so no agent is kept below it")
    is_copied(said[1:], tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("what", ["agent", "note", "folder"])
def test_what_another_user_owns_is_not_believed(tmp_path: Path, shell: Sequence[str], what: str) -> None:
    path, log = counted(tmp_path)
    kept = keep(tmp_path / ".cache/framegauge")
    note = kept.with_name(f"{NAME}.sum")
    there(shell, tmp_path, PATH=path)
    os.chown({"agent": kept, "note": note, "folder": kept.parent}[what], 65534, 65534)
    fields = subprocess.run(["ls", "-dlnic", "--full-time", kept], capture_output=True, text=True, check=True).stdout
    note.write_text(" ".join(fields.split()) + "\n")
    sums = log.read_text()
    there(shell, tmp_path, PATH=path, TMPDIR="/tmp")
    assert log.read_text() != sums


def test_other_content_of_that_name_is_replaced_and_not_run(tmp_path: Path, shell: Sequence[str]) -> None:
    kept = keep(tmp_path / ".cache/framegauge", EVIL)
    said = there(shell, tmp_path)
    assert said[1:] == [f"send {kept.parent}", f"ready {kept}", f"agent {kept} host"]
    assert kept.read_bytes() == AGENT


@pytest.mark.parametrize("writable", [0o770, 0o707, 0o777])
@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, shell: Sequence[str], writable: int, above: int
) -> None:
    kept = keep(tmp_path / "home/.cache/framegauge")
    loose = kept.parents[above]
    loose.chmod(writable)
    said = there(shell, tmp_path / "home", TMPDIR="/tmp")
    assert said[0].startswith(f"note others can write to {loose}, so no agent is kept below it")
    is_copied(said[1:], tmp_path)


@pytest.mark.parametrize("writable", [0o720, 0o702])
def test_a_file_that_others_can_write_to_is_replaced(tmp_path: Path, shell: Sequence[str], writable: int) -> None:
    kept = keep(tmp_path / ".cache/framegauge")
    kept.chmod(writable)
    assert there(shell, tmp_path)[-2:] == [f"ready {kept}", f"agent {kept} host"]
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_link_to_a_file_is_replaced(tmp_path: Path, shell: Sequence[str]) -> None:
    kept = keep(tmp_path / "elsewhere")
    (tmp_path / ".cache/framegauge").mkdir(parents=True)
    link = tmp_path / ".cache/framegauge" / NAME
    link.symlink_to(kept)
    assert there(shell, tmp_path)[-1] == f"agent {link} host"
    assert not link.is_symlink()


def test_a_link_to_a_folder_of_ones_own_is_followed_and_one_to_a_loose_one_is_not(
    tmp_path: Path, shell: Sequence[str]
) -> None:
    kept = keep(tmp_path / "elsewhere")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache/framegauge").symlink_to(kept.parent)
    assert there(shell, tmp_path) == [f"ready {kept}", f"agent {kept} host"]
    kept.parent.chmod(0o777)
    assert there(shell, tmp_path)[0].startswith(f"note others can write to {kept.parent}, ")


@pytest.mark.rack
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, shell: Sequence[str]) -> None:
    kept = keep(tmp_path / "cache/framegauge", EVIL)
    for path in (tmp_path / "cache", kept.parent, kept):
        os.chown(path, 65534, 65534)
    said = there(shell, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert said[0].startswith(f"note others can write to {kept.parent}, ")
    is_copied(said[1:], tmp_path / "cache")
    os.chown(kept.parent, 0, 0)
    said = there(shell, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert said[0].startswith(f"note others can write to {tmp_path / 'cache'}, ")


def test_without_a_program_that_hashes_nothing_is_kept(tmp_path: Path, shell: Sequence[str]) -> None:
    kept = keep(tmp_path / ".cache/framegauge", EVIL)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "uname", "mkdir", "mktemp", "chmod", "rm", "rmdir", "head", "wc", "mv", "ls", "id"):
        (programs / name).symlink_to(str(shutil.which(name)))
    named = [str(shutil.which(shell[0])), *shell[1:]]
    if len(shell) == 1:  # busybox has them all in itself
        said = there(named, tmp_path, PATH=str(programs))
        assert said[0] == "note no sha256sum and no openssl there, so no agent is kept"
        is_copied(said[1:], kept.parent)
        openssl = shutil.which("openssl")
        assert openssl is not None
        (programs / "openssl").symlink_to(openssl)
        assert there(named, tmp_path, PATH=str(programs))[-1] == f"agent {kept} host"


def test_the_one_that_root_installed_comes_first(tmp_path: Path, shell: Sequence[str]) -> None:
    keep(tmp_path / ".cache/framegauge")
    installed = keep(tmp_path / "local").rename(tmp_path / "local/framegauge-agent")
    script = SCRIPT.replace("/usr/local/bin/", f"{tmp_path}/local/")
    assert there(shell, tmp_path, script) == [f"ready {installed}", f"agent {installed} host"]
    installed.write_bytes(EVIL)
    assert there(shell, tmp_path, script)[-1] == f"agent {tmp_path}/.cache/framegauge/{NAME} host"
