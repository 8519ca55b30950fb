"""Clients that got no answer, and the ports that are to blame, from records."""

from __future__ import annotations

from typing import Any

from framegauge.evidence.unanswered import unanswered
from framegauge.results.runs import Run


def record(answers: dict[str, tuple[int, int]], giants: dict[str, int] | None = None) -> dict[str, Any]:
    ports = [{"port": port, "giant_frames": count} for port, count in (giants or {}).items()]
    return {
        "workload": {"answers": {host: {"asked": asked, "answered": answered} for host, (asked, answered) in answers.items()}},
        "measure": {"fabric": None if giants is None else {"ports": ports}},
    }  # fmt: skip


def test_a_client_without_any_answer_is_named_with_the_ports_at_it() -> None:
    found = record(
        {"h1": (600, 600), "h2": (600, 0), "h3": (600, 1)}, {"switch>h1": 0, "switch>h2.1#2": 1, "switch>h4": 7}
    )  # fmt: skip
    assert list(unanswered(found)) == [
        "h2: 0 of 600 operations answered; port switch>h2.1#2 dropped 1 frame that is too large for it"
    ]


def test_ports_elsewhere_are_named_where_none_at_the_client_dropped_anything() -> None:
    found = record({"h2": (3, 0)}, {"h1>switch": 0, "switch>h4": 7})
    assert list(unanswered(found)) == [
        "h2: 0 of 3 operations answered; port switch>h4 dropped 7 frames that are too large for it"
    ]


def test_without_a_fabric_the_client_alone_is_named_and_who_asked_nothing_lacks_nothing() -> None:
    assert list(unanswered(record({"h1": (5, 0), "h2": (0, 0)}))) == ["h1: 0 of 5 operations answered"]
    assert list(unanswered({"workload": {}, "measure": {"fabric": None}})) == []


def run(*excluded: str) -> Run:
    return Run(1, 0, 0, "jumbo", "treatment", 9000, 0, "nfs", {}, {}, excluded)


def test_only_a_run_that_is_sound_otherwise_shows_that_something_does_not_work() -> None:
    assert run("does not work: h2: 0 of 5", "does not work: h3: 0 of 4").failure == "h2: 0 of 5; h3: 0 of 4"
    assert run("does not work: h2: 0 of 5", "fidelity: too late").failure is None
    assert run().failure is None
