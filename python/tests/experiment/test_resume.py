"""kill -9 of a real controller, at random moments: no finished run is lost, none is repeated."""

import random
import signal
import subprocess
import sys

import pytest
from helpers.support import PLAN, STUDY, by_length

from framegauge.results import journal as results
from framegauge.study import file as study_file
from framegauge.study.blocks import order

CONTROLLER = """
import sys
from pathlib import Path
from framegauge.cli import commands
from framegauge.study import file as study_file
folder, resume = Path(sys.argv[1]), sys.argv[2] == "resume"
study = commands.resumed_study(folder, None) if resume else study_file.load(sys.argv[3])
def show(event):
    if event.run is not None: print("finished", event.run.number, flush=True)
    else: print("begun", event.number, flush=True)
commands.run_study(study, folder, resume, show, print)
"""


@pytest.mark.thorough
@pytest.mark.soak(0.3)
@pytest.mark.parametrize("seed", range(by_length(1, 20)))
def test_killed_at_random_moments_it_resumes(seed, tmp_path):
    generator = random.Random(seed)
    path, out = tmp_path / "study.yaml", tmp_path / "out"
    path.write_text(STUDY.replace("blocks: 6", "blocks: 8\nstop: blocks"))
    finished, kills, mode, code = [], 0, "new", None
    while code != 0:
        command = [sys.executable, "-c", CONTROLLER, str(out), mode, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
            for _ in range(generator.randint(1, 25)):
                line = controller.stdout.readline()
                if line.startswith("finished"):
                    finished.append(int(line.split()[1]))
            if kills < 5:
                controller.send_signal(signal.SIGKILL)
                kills += 1
            finished += [int(line.split()[1]) for line in controller.stdout if line.startswith("finished")]
        code = controller.returncode
        assert code in (0, -signal.SIGKILL)
        mode = "resume"
    saved = results.read(out)
    assert not saved.torn
    assert kills >= 3
    # None repeated: each planned slot has exactly one run, numbered without gap.
    assert sorted(run.key for run in saved.runs) == sorted(slot.key for slot in order(study_file.load(path)))
    assert [run.number for run in saved.runs] == list(range(1, 25))
    # None lost: whatever was reported as finished is there, once.
    assert len(finished) == len(set(finished))
    assert set(finished) <= {run.number for run in saved.runs}
    assert all((out / f"runs/{run.number}/record.json").exists() for run in saved.runs)


def test_a_study_killed_before_its_first_run_resumes(study, tmp_path):
    results.Journal.create(tmp_path / "out", study_file.dump(study), PLAN).close()
    with results.Journal.resume(tmp_path / "out") as journal:
        assert journal.runs == []
