"""Studies over ssh, as a user starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from helpers.real import judged
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.ssh import Remote
from framegauge.results.journal import Run, read


def remote(site: Site, name: str, **more: object) -> Remote:
    return Remote(name, name, site.options, **more)  # type: ignore[arg-type]


STUDY = """\
question: Do jumbo frames help here?
testbed: {{kind: ssh, inventory: {inventory}, lease: {lease} s}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}}}
workloads: [{{stream: {{duration: {seconds} s}}}}]
blocks: {blocks}
stop: blocks
control: false
meters: {{cpu: true}}
margins: {{goodput: 2 %}}
"""


def study_of(
    site: Site, folder: Path, *, lease: int = 30, seconds: float = 0.3, blocks: int = 2, **more: object
) -> Path:
    """A study file of all hosts of a site, and its inventory."""
    hosts = [{"name": name, **more} for name in site.hosts]
    (folder / "hosts.yaml").write_text(json.dumps({"hosts": hosts, "options": list(site.options)}))
    path = folder / "study.yaml"
    path.write_text(STUDY.format(inventory="hosts.yaml", lease=lease, seconds=seconds, blocks=blocks))
    return path


def framegauge(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "framegauge", *map(str, words)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


HELD_UP = "fidelity: CPU"


def undisturbed(runs: Sequence[Run]) -> list[Run]:
    """The runs that count. What holds up the machine of these tests may exclude others, and nothing else."""
    assert not [line for run in runs for line in run.excluded if not line.startswith(HELD_UP)]
    return [run for run in runs if not run.excluded]


def studied(path: Path, out: Path) -> str:
    """What a study of four runs said, with its results in `out`. That it is right is its exit code, unless something
    held up this machine; where that left fewer than four runs, as `judged` says."""
    said = ""

    def made() -> list[Run]:
        nonlocal said
        process = framegauge("study", path, "--out", out)
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
        runs = read(out).runs
        assert process.returncode == 0 or (process.returncode == 3 and len(runs) > 4), said
        return runs

    def enough(runs: Sequence[Run]) -> bool:
        counted = len(undisturbed(runs))
        # Runs that were lost may call for a block more than planned.
        return counted == 4 or 4 < counted < len(runs)

    judged(made, out, enough)
    return said


def mtus(site: Site) -> set[int]:
    return {host.mtu() for host in site.hosts.values()}
