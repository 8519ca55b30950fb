"""Storage with both sizes of frames, on the rack: iSCSI, NFS over TCP and UDP, Ceph, and the switch while they run.

    sudo .venv/bin/python -m bench.storage [--only ceph] [--write docs/measured/storage.md]

Runs the study files of this folder by `framegauge study`. Results stay in results/storage/: what is there is not run
again, and what was interrupted is resumed. It needs root, a quiet machine and the packages that `docs/storage.md`
names, and takes about forty minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.kept import Kept, asked, put

FOLDER = Path(__file__).resolve().parent
KEPT = Kept("storage", FOLDER, 0, rack_only=[path.stem for path in FOLDER.glob("*.yaml")])
INTRODUCTION = """# Storage, measured

Written by `python -m bench.storage` from the study files in `bench/storage`, on the emulated rack of one machine with
two CPUs: real servers and clients, kernel TCP, and switches of our own. Disks are memory, so compare arms, not
machines.
[What the workloads are](../storage.md).
"""
END = "## Method"  # which this page has said


def section(name: str) -> str:
    """The answer and the tables of a study, with headings a level lower."""
    command = [sys.executable, "-m", "framegauge", "report", str(KEPT.results(name, "study")), "--markdown", "-"]
    # 3: nothing was judged.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"bench.storage: {done.stderr.strip()}")
    lines = done.stdout.partition(f"\n{END}\n")[0].splitlines()
    told = [f"#{line}" if line.startswith("#") else line for line in lines]
    told.insert(1, f"\n`bench/storage/{name}.yaml`")
    return "\n".join(told).rstrip() + "\n"


def main() -> None:
    options = asked(__doc__ or "")
    if not options.read:
        KEPT.run(options)
    there = [study.stem for study in KEPT.studies(options.only) if KEPT.results(study.stem, "study").is_dir()]
    put("\n".join([INTRODUCTION, *map(section, there)]).rstrip("\n"), options)


if __name__ == "__main__":
    main()
