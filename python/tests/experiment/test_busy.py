"""Who uses the CPUs: lines of /proc/PID/stat, and this machine's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from framegauge.experiment import busy
from framegauge.experiment.busy import Process, Reading, User

# A program may call itself anything; 22 fields and more, of which some are negative.
LINE = "4711 (a) R (b\n) S 12 4711 4711 0 -1 {flags} 95 0 0 0 250 50 9 9 20 0 1 0 777 1000 1 18446744073709551615 0 0"


def test_a_line_is_read_whatever_the_program_is_called() -> None:
    process = busy.parse(LINE.format(flags=4194304), 100)
    assert process == Process(4711, 12, "a) R (b", 777, 3.0)
    assert busy.parse(LINE.format(flags=4194304 | 0x200000), 100).is_kernel


@pytest.mark.parametrize("line", ["", "4711", "4711 (a", "4711 (a) S 12", "x (a) S" + " 1" * 30, "1 (a) S" + " x" * 30])
def test_what_is_no_such_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"expected a line|invalid literal"):
        busy.parse(line, 100)


def reading(seconds: float, *processes: Process) -> Reading:
    return Reading(seconds, {process.pid: process for process in processes})


def test_the_three_largest_are_named_and_neither_ours_nor_the_kernels() -> None:
    before = reading(
        10, Process(20, 1, "old", 1, 5.0), Process(21, 1, "idle", 1, 9.0), Process(22, 1, "reused", 1, 50.0)
    )
    after = reading(
        12,
        Process(1, 0, "init", 0, 0.0),
        Process(20, 1, "old", 1, 7.0),
        Process(21, 1, "idle", 1, 9.05),
        Process(22, 1, "reused", 2, 0.5),
        Process(23, 1, "new", 3, 1.5),
        Process(24, 1, "fourth", 3, 0.2),
        Process(30, 1, "framegauge", 1, 2.0),
        Process(31, 30, "sudo", 1, 2.0),
        Process(32, 31, "framegauge-agent", 1, 2.0),
        Process(40, 2, "ksoftirqd/0", 1, 2.0, is_kernel=True),
    )
    users = busy.largest(before, after, own=30)
    assert users == [User("old", 20, 1.0), User("new", 23, 0.75), User("reused", 22, 0.25)]
    assert busy.said(users[:2]) == "old (process 20, 100 % of a CPU), new (process 23, 75 % of a CPU)"


def test_parents_in_a_circle_end_and_no_time_has_no_users() -> None:
    loop = reading(1, Process(5, 6, "a", 1, 1.0), Process(6, 5, "b", 1, 1.0))
    assert len(busy.largest(reading(0), loop, own=1)) == 2
    assert busy.largest(loop, loop, own=1) == []


def test_a_loop_on_this_machine_is_found_and_not_that_of_its_own_child() -> None:
    """Until the kernel has counted a tenth of a second of its time, however long that takes."""
    before = busy.read()
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as loop:
        try:
            while (process := busy.read().processes[loop.pid]).cpu_seconds < 0.1:
                pass
            after = busy.read()
        finally:
            loop.kill()
    assert process.parent == os.getpid()
    # Of all that run here, three others may be larger: this one is asked about by itself, and with its parents.
    alone = Reading(before.seconds + 0.1, {loop.pid: process})
    [user] = busy.largest(Reading(before.seconds), alone, own=os.getpid())
    assert (user.pid, user.share) == (loop.pid, pytest.approx(process.cpu_seconds / 0.1))
    whole = Reading(before.seconds + 0.1, after.processes)
    assert loop.pid not in [user.pid for user in busy.largest(before, whole, own=os.getpid())]


def test_processes_that_end_meanwhile_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "13").mkdir()
    (tmp_path / "13/stat").write_text(LINE.format(flags=0))
    (tmp_path / "self").mkdir()
    assert list(busy.read(lambda: 0.0, tmp_path).processes) == [4711]


def test_the_age_of_this_process_grows_and_is_that_of_its_start() -> None:
    script = "from framegauge.experiment import busy; a = busy.age(); b = busy.age(); print(0 < a <= b)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
