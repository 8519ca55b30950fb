"""Shared pieces: a small study, an in-memory fake rack, a fake agent on real pipes."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import drawing, unjudged
from helpers.support import SOAK, STUDY, NotRun
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

from framegauge.experiment.progress import Event
from framegauge.experiment.runner import Outcome, Runner
from framegauge.results.journal import Journal, Run
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.summary.judging import wants_runs
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed

if TYPE_CHECKING:
    from helpers.followed import Recorded

# As from a terminal: under nohup, or in the background of a shell, these are ignored, and children inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# What a test has built, such as network namespaces, is taken down on that way out, too.
signal.signal(signal.SIGTERM, signal.default_int_handler)
# pandas is a dependency of one test alone. Where it is installed pyarrow imports it, which takes 0.2 s of every program;
# users' framegauge does without.
NO_PANDAS = str(Path(__file__).parent / "helpers/no_pandas")
others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each not in ("", NO_PANDAS)]
os.environ["PYTHONPATH"] = os.pathsep.join([NO_PANDAS, *others])
sys.path[:] = [each for each in sys.path if each != NO_PANDAS]  # of pytest's own workers
# Tests start hundreds of programs, and each would compile all of framegauge anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Runs are the same everywhere, so there is nothing to remember between them.
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / f"framegauge-hypothesis-{os.getuid()}")
settings.register_profile("framegauge", database=None, deadline=None, derandomize=True, max_examples=100)
settings.load_profile("framegauge")
drawing.once()

not_run = NotRun()
TIMES_USUAL = 10
RACK_SECONDS = 900.0  # clusters are started there that take a minute or two


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(unjudged)


def _lacking(item: pytest.Item) -> str | None:
    """The programs that a test needs and this machine lacks; with `remedy`, the test's module has looked itself."""
    marks = list(item.iter_markers("needs"))
    if told := {mark.kwargs["remedy"]: mark.args[0] for mark in marks if "remedy" in mark.kwargs}:
        return f"needs {', '.join(told.values())}: {'; '.join(told)}"
    names = [name for mark in marks for name in mark.args if shutil.which(name) is None]
    return f"needs {', '.join(names)}: apt-get install {' '.join(names)}" if names else None


def _limit_seconds(item: pytest.Item) -> float | None:
    """How long a test may take that is not one of the usual ones."""
    minutes = [mark.args[0] for mark in item.iter_markers("soak")] if SOAK else []
    on_racks = [RACK_SECONDS] if Path(__file__).parent / "rack" in item.path.parents else []
    return max([each * 60 * TIMES_USUAL for each in minutes] + on_racks, default=None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if lacks := _lacking(item):
        not_run.stop(lacks)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    not_run.tell(terminalreporter)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count what cannot run here, and say how long a test may take; in a soak, list what there is to do and how long it
    takes."""
    for item in items:
        if lacks := _lacking(item):
            not_run.count(lacks)
        if item.get_closest_marker("timeout") is None and (seconds := _limit_seconds(item)):
            item.add_marker(pytest.mark.timeout(seconds))
    if not SOAK:
        return
    minutes = {item.nodeid: mark.args[0] for item in items for mark in item.iter_markers("soak")}
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    reporter.write_line(f"{len(minutes)} long forms, about {sum(minutes.values()):.0f} minutes:")
    for name, each in minutes.items():
        reporter.write_line(f"  {each:5.1f} min  {name}")


@pytest.fixture
def study() -> Study:
    return study_file.parse(STUDY, "study.yaml")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Of a study that has ended: tests take copies of its folder, and change nothing in it."""
    from helpers.followed import Recorded

    return Recorded(tmp_path_factory.mktemp("live") / "out")


@pytest.fixture
def study_path(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


Execute = Callable[..., tuple[Outcome, list[Run]]]


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    """Run a study on a fake rack: outcome and runs."""

    def run(
        study: Study,
        model: FakeModel | None = None,
        on_event: Callable[[Event], None] = lambda _: None,
        name: str = "out",
    ) -> tuple[Outcome, list[Run]]:
        plan = {
            "question": study.question,
            "scope": "invented",
            "treatment": study.treatment,
            "margins": study.margin(),
            "primary": study.primary,
            "ask": study.ask,
        }
        kind = "kernel" if study.testbed.kind == "veth" else "fabric"
        with Journal.create(tmp_path / name, study_file.dump(study), plan) as journal:
            bed = FakeTestbed(model, kind)
            runner = Runner(
                study, bed, journal, on_event=on_event, wanting=partial(wants_runs, plan),
                pause=lambda _: None, cpu_time=lambda: 0.0,
            )  # fmt: skip
            return runner.run(), list(journal.runs)

    return run


@pytest.fixture
def fake_agent(tmp_path: Path) -> Path:
    """An executable that is a fake agent, for FRAMEGAUGE_AGENT."""
    path = tmp_path / "framegauge-agent"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m framegauge.testbeds.fake.agent "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
