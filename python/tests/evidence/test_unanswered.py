"""Clients that got no answer, and the ports that are to blame, from records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from framegauge.evidence.unanswered import failed, giants, shut, since, unanswered
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


def test_the_mtu_of_a_port_and_the_largest_frame_that_it_dropped_are_told_where_known() -> None:
    told = record({"h1": (4, 0)}, {"left>right": 5})
    told["rack"] = {"network": {"ports": [{"port": "left>right", "mtu": 1500}]}}
    drops = pa.table(
        {
            "port": ["left>right", "left>right", "left>right"], "frame_bytes": [9018, 4000, 65000],
            "reason": ["giant", "giant", "taildrop"],
        }
    )  # fmt: skip
    assert list(unanswered(told, drops)) == [
        "h1: 0 of 4 operations answered; port left>right (MTU 1500) dropped 5 frames that are too large for it, "
        "of up to 9018 bytes"
    ]


@pytest.mark.parametrize(
    ("others", "giants", "lines"),
    [
        # What one of several flows got none of, others may have taken; not if ports drop frames for their size.
        (3, None, 0), (3, {"s>h9": 0}, 0), (3, {"s>h9": 2}, 1),
        # Nobody got anything: nobody took it.
        (0, None, 2),
    ],
)  # fmt: skip
def test_a_flow_that_others_may_have_starved_is_a_result_only_by_its_size(
    others: int, giants: dict[str, int] | None, lines: int
) -> None:
    told = record({}, giants)
    told["workload"]["answers"] = {
        f"{host} to h9": {
            "asked": 3, "answered": count, "host": host, "what": "transfers delivered anything", "may_starve": True,
        }
        for host, count in (("h1", 0), ("h2", others))
    }  # fmt: skip
    found = list(unanswered(told))
    assert len(found) == lines
    assert all(line.startswith("h1 to h9: 0 of 3 transfers delivered anything") for line in found[:1])


def test_a_run_that_failed_did_not_work_if_ports_dropped_frames_for_their_size_meanwhile() -> None:
    rack = {"rack": {"network": {"ports": [{"port": "a>b", "mtu": 1500}]}}}

    def why(before: int, after: int, drops: pa.Table | None = None) -> str | None:
        counters = [[{"port": "a>b", "giant_frames": count}] for count in (before, after)]
        return failed(rack, "no answer within 30 s", since(*counters), lambda: drops)

    assert failed(rack, "no answer within 30 s", [], lambda: None) is None
    # What they dropped before this run says nothing of it.
    assert why(7, 7) is None
    assert why(7, 9) == "no answer within 30 s; port a>b (MTU 1500) dropped 2 frames that are too large for it"
    drops = pa.table({"port": ["a>b"], "reason": ["giant"], "frame_bytes": [9018]})
    assert why(0, 2, drops) == (
        "no answer within 30 s; port a>b (MTU 1500) dropped 2 frames that are too large for it, of up to 9018 bytes"
    )
    assert giants([{"port": "a>b", "giant_frames": 3}, {"port": "b>a", "giant_frames": 0}]) == {"a>b": 3}


def port(name: str, received: int, sent: int = 0, lost: int = 0, queued: int = 0) -> dict[str, Any]:
    counts = {"received_frames": received, "sent_frames": sent, "lost_frames": lost, "queued_frames": queued}
    return {"port": name, **counts}


def test_a_port_is_shut_if_nothing_of_what_came_to_it_went_on() -> None:
    ports = [
        port("h1>left", 9, sent=9), port("left>right", 9, sent=9, lost=9), port("h2>right", 1), port("right>h3", 0),
        port("h4>left", 9, sent=9, lost=8), port("h5>left", 2, queued=2),
    ]  # fmt: skip
    drops = pa.table(
        {
            "port": ["left>right", "left>right", "h2>right", "h1>left"],
            "reason": ["loss", "giant", "link_down", "taildrop"],
            "action": ["dropped", "marked", "dropped", "dropped"],
        }
    )
    found: dict[str, Any] = {"measure": {"fabric": {"ports": ports}}}
    assert list(shut(found, drops)) == [
        "port left>right dropped all 9 frames that came to it (loss)",
        "port h2>right dropped the 1 frame that came to it (link_down)",
    ]
    assert next(shut(found)) == "port left>right dropped all 9 frames that came to it"
    assert list(shut({"measure": {"fabric": None}})) == []


def test_a_run_that_failed_did_not_work_if_a_port_let_nothing_through_meanwhile() -> None:
    drops = pa.table({"port": ["a>b"], "reason": ["loss"], "action": ["dropped"]})

    def why(*ports: dict[str, Any]) -> str | None:
        before = [port("a>b", 5, sent=5), port("b>a", 5, sent=5)]
        return failed({}, "no answer within 30 s", since(before, ports), lambda: drops)

    assert why(port("a>b", 9, sent=9, lost=4), port("b>a", 7, sent=7)) == (
        "no answer within 30 s; port a>b dropped all 4 frames that came to it (loss)"
    )
    # Something went on, or only one frame came and was not sent again; what waits may still go on.
    assert why(port("a>b", 9, sent=9, lost=3)) is None
    assert why(port("a>b", 6, sent=6, lost=1)) is None
    assert why(port("a>b", 9, sent=5, queued=4)) is None
