"""Which programs a preflight takes for those of a host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from framegauge.rollout.preflight import survey


def programs() -> list[str]:
    done = subprocess.run(["sh", "-c", survey.SCRIPT], capture_output=True, check=True)
    found: list[str] = survey.parsed(done.stdout, "here")["programs"]
    return found


def test_a_program_that_runs_counts_and_one_that_has_ended_does_not(tmp_path: Path) -> None:
    """A process that nobody has waited for keeps its name."""
    before = programs()
    runs, ended = (shutil.copy(shutil.which("sleep") or "", tmp_path / name) for name in ("calico-node", "flanneld"))
    with subprocess.Popen([runs, "60"]) as one, subprocess.Popen([ended, "0"]) as other:
        try:
            os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
            assert Path(f"/proc/{other.pid}/comm").read_text() == "flanneld\n"
            found = programs()
        finally:
            one.kill()
    assert found.count("calico-node") == before.count("calico-node") + 1
    assert found.count("flanneld") == before.count("flanneld")
