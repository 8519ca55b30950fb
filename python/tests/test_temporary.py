"""Temporary folders: whoever ends how, none of the dead stays, and none of the living goes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from helpers.support import PATIENCE_SECONDS

from framegauge import temporary
from framegauge.cli.interrupts import ENDING, interruptible

LONG = """
testbed: {kind: simulator, link: {rate: 10 Gb/s}}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{stream: {size: 1000 GB}}]
blocks: 2
margins: {goodput: 1 %}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all temporary ones."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return path


def test_a_folder_of_the_living_stays_and_one_of_the_dead_goes(place: Path):
    with temporary.folder() as mine:
        assert f"-{os.getpid()}-" in mine.name
        script = "from framegauge import temporary; temporary.Folder(); import os, signal; os.kill(os.getpid(), 9)"
        assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
        (dead,) = set(place.iterdir()) - {mine}
        (dead / "inner").mkdir()
        temporary.sweep()
        assert list(place.iterdir()) == [mine]
    assert list(place.iterdir()) == []


def test_links_in_its_place_lead_nowhere(place: Path, tmp_path: Path):
    kept = tmp_path / "kept"
    (kept / "inner").mkdir(parents=True)
    (place / f"{temporary.PREFIX}1-x").symlink_to(kept)
    with temporary.folder() as mine:
        (mine / "link").symlink_to(kept)
    temporary.sweep()
    assert (kept / "inner").is_dir()


def test_another_users_folder_stays(place: Path, monkeypatch: pytest.MonkeyPatch):
    """To whoever sweeps, this process's user is another one: so it needs no root."""
    other = place / f"{temporary.PREFIX}1-x"
    other.mkdir()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    temporary.sweep()
    assert other.is_dir()
    monkeypatch.setattr(os, "geteuid", lambda: mine)
    temporary.sweep()
    assert not other.exists()


def children(process_id: int) -> list[int]:
    """The processes that its threads have started."""
    tasks = Path(f"/proc/{process_id}/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]


@pytest.mark.agent
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_simulation_leaves_no_folder(number: signal.Signals, place: Path, tmp_path: Path):
    (tmp_path / "long.yaml").write_text(LONG)
    command = [sys.executable, "-m", "framegauge", "simulate", "long.yaml", "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as simulating:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (list(place.glob("*/scenario.json")) and children(simulating.pid)):
            assert simulating.poll() is None, simulating.stdout and simulating.stdout.read()
            assert time.monotonic() < until
            time.sleep(0.02)
        agents = children(simulating.pid)
        simulating.send_signal(number)
        said = simulating.communicate(timeout=PATIENCE_SECONDS)[0].decode()
    for each in agents:  # one whose controller was killed ends as it says how far it is, which may take long
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    if number is signal.SIGKILL:
        assert list(place.iterdir())
        subprocess.run([sys.executable, "-m", "framegauge", "--version"], check=True, stdout=subprocess.DEVNULL)
    else:
        assert simulating.returncode == 130
        assert "framegauge: interrupted" in said
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("number", ENDING)
def test_each_of_these_signals_ends_a_command_in_order(number: signal.Signals):
    def ended() -> None:
        with interruptible():
            os.kill(os.getpid(), number)
            time.sleep(PATIENCE_SECONDS)

    with pytest.raises(KeyboardInterrupt):
        ended()


def test_under_nohup_a_terminal_that_goes_away_ends_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_folder_that_is_swept_while_it_is_made_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before it is opened, and before it is locked."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make, made = tempfile.mkdtemp, list[str]()
    sweepers: list[int] = []

    def swept(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            Path(made[0]).rmdir()
        if len(made) == 2:
            sweepers.append(os.open(made[1], os.O_RDONLY))
            fcntl.flock(sweepers[0], fcntl.LOCK_EX)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    with temporary.folder() as folder:
        assert str(folder) == made[2]
        assert folder.is_dir()
    os.close(sweepers[0])
