"""No test is waited for without end, and none that hangs keeps the others from running."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from helpers.support import ROOT

HANGING = """
import threading

released = threading.Event()


def waiting_elsewhere():
    released.wait()


def test_that_hangs():
    threading.Thread(target=waiting_elsewhere, daemon=True).start()
    threading.Event().wait()


def test_that_is_next():
    released.set()
"""


def test_a_test_that_hangs_says_where_all_threads_are_and_the_next_one_runs(tmp_path: Path) -> None:
    path = tmp_path / "test_hanging.py"
    path.write_text(HANGING)
    words = ["-c", ROOT / "pyproject.toml", "-o", "timeout=1", "-p", "no:cacheprovider", path]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "Failed: Timeout" in done.stdout
    assert "threading.Event().wait()" in done.stdout
    assert "in waiting_elsewhere" in done.stdout + done.stderr


def test_every_test_has_a_limit() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert 0 < settings["timeout"] < settings["faulthandler_timeout"]
    lifted = [path for path in (ROOT / "python/tests").rglob("*.py") if "mark.timeout" + "(0" in path.read_text()]
    assert lifted == []
