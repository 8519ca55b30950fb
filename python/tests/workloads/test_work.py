"""Work that is known beforehand, as a scenario has it (crates/simulator/src/spec.rs)."""

from __future__ import annotations

from framegauge.workloads.work import CLIENT, SERVER, Flow, Step


def test_a_flow_has_the_keys_that_are_given_and_no_others() -> None:
    steps = (Step(CLIENT, 100, think_seconds=0.5), Step(SERVER, None))
    plain = {
        "client": "h1",
        "server": "h2",
        "steps": [{"from": "client", "bytes": 100, "think_seconds": 0.5}, {"from": "server", "bytes": None}],
    }
    assert Flow("h1", "h2", steps).as_json() == plain
    several = Flow("h1", "h2", steps, rounds=3, barrier=0, begin_seconds=0.1, after=(0, 2)).as_json()
    assert several == {**plain, "repeat": {"rounds": 3}, "barrier": 0, "begin_seconds": 0.1, "after": (0, 2)}
    assert Flow("h1", "h2", steps, until_seconds=1.0).as_json() == {**plain, "repeat": {"until_seconds": 1.0}}
