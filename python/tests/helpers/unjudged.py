"""The third outcome of a test: *not judged*, because this machine was too busy for its runs, and again for others.

Such a test has neither passed nor failed, and was not left out: pytest lists it with its reason, and
`scripts/checks.py` is red if there are too many. Only `helpers.real.judged` may end a test so, which has looked at the
reasons; a house rule says so.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NoReturn, Protocol, TypeVar

import pytest

CATEGORY = "not judged"
# How every reason of exclusion begins that says that the machine held a run up.
HELD_UP = "fidelity: "


class NotJudged(pytest.skip.Exception):
    """A test whose runs were not faithful, twice."""


class Excludable(Protocol):
    """What may be no evidence, such as a run of a study, and the reasons."""

    @property
    def excluded(self) -> Sequence[str]: ...


E = TypeVar("E", bound=Excludable)


def not_judged(reason: str) -> NoReturn:
    """End a test, or what several tests share, as not judged."""
    raise NotJudged(reason)


def reasons(runs: Sequence[Excludable]) -> list[str]:
    """Why runs are no evidence, each reason once. Fails if one of them is not that the machine held a run up."""
    lines = sorted({line for each in runs for line in each.excluded})
    faults = [line for line in lines if not line.startswith(HELD_UP)]
    if faults:
        pytest.fail("runs are excluded, and not because the machine was busy:\n  " + "\n  ".join(faults))
    return lines


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A report of its own for a test that is not judged."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, NotJudged):
        place, line, _ = report.location
        # As junitxml and xdist know skipped tests; the words are those that scripts/checks.py looks for.
        report.outcome, report.longrepr = "skipped", (place, line or 0, f"{CATEGORY}: {call.excinfo.value}")
        report.not_judged = str(call.excinfo.value)  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """The category, the letter and the word of a test that is not judged."""
    return (CATEGORY, "N", "NOT JUDGED") if hasattr(report, "not_judged") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that are not judged. Their number is in pytest's last line too."""
    reports = terminalreporter.stats.get(CATEGORY, [])
    if reports:
        terminalreporter.write_line(f"{len(reports)} tests not judged, because the machine was busy:")
    for each in reports:
        terminalreporter.write_line(f"  {each.nodeid}: {each.not_judged}")
