"""A plan in words: what an administrator reads before a change."""

from __future__ import annotations

from typing import Any

from framegauge.rollout import text, transition
from framegauge.rollout.engine import Outcome
from framegauge.rollout.model import Asked
from framegauge.rollout.routes import FREE, Route

SUBNET = "10.0.0.0/24"


def link(mtu: int) -> transition.Link:
    routes = (Route(4, SUBNET, True, FREE), Route(4, "default", False, FREE))
    return transition.Link("eth1", mtu, routes, {"mtu:eth1": str(mtu), "routes4:eth1": "0", "routes6:eth1": "0"})


def plan(*mtus: int, findings: Any = ()) -> list[str]:
    """The lines of a raise to 9000 of hosts that have these MTUs."""
    return list(text.plan_lines(planned(*mtus, findings=findings)))


def planned(*mtus: int, findings: Any = (), link_loss_seconds: Any = {}) -> dict[str, Any]:  # noqa: B006
    names = "abc"[: len(mtus)]
    asked = Asked((tuple(names),), dict.fromkeys(names, "eth1"), 9000, scope="subnets")
    changes = transition.changes(asked, {name: [link(mtu)] for name, mtu in zip(names, mtus, strict=True)})
    steps = transition.steps(changes, 60) if transition.has_room(changes) else ()
    return {
        "question": "?", "findings": list(findings), "changes": [], "afterwards": [],
        "link_loss_seconds": link_loss_seconds,
        "hosts": {each.host: each.as_json() for each in changes},
        "steps": [{"host": each.host, "kind": each.kind, "request": each.request, "back": each.back} for each in steps],
        "asked": {
            "waves": [list(names)], "interfaces": dict.fromkeys(names, "eth1"), "scope": "subnets", "target_mtu": 9000,
            "lease_seconds": 60.0, "probes": 3,
        },
    }  # fmt: skip


def test_steps_and_their_undo_are_in_the_words_of_ip() -> None:
    lines = plan(1500)
    assert lines[4:] == [
        "hold every route at the smaller MTU, on every host:",
        "  1. a: routes of eth1 (IPv4): every route with mtu 1500; routes of eth1 (IPv6): every route with mtu lock 1500",
        "     undo: routes of eth1 (IPv4, IPv6): every route without an mtu of its own",
        "change the interfaces, on every host; then prove full-size packets between all of them:",
        "  2. a: ip link set dev eth1 mtu 9000",
        "     undo: ip link set dev eth1 mtu 1500",
        "  3. a: routes of eth1 (IPv6): every route with mtu 1500",
        "     undo: routes of eth1 (IPv6): every route with mtu lock 1500",
        "release the routes, wave by wave; prove after each:",
        f"  4. a: routes of eth1 (IPv4): {SUBNET} without an mtu of its own, every other route with mtu 1500; "
        "routes of eth1 (IPv6): every route with mtu 1500",
        "     undo: routes of eth1 (IPv4, IPv6): every route with mtu 1500",
    ]
    assert "framegauge-agent" not in "".join(lines), "nobody types that, and few can read it"


def test_a_plan_that_changes_nothing_says_so() -> None:
    assert plan(9000, 9000)[-1] == "nothing is to be done: every host has an MTU of 9000 bytes already"
    assert plan(9000, 9000)[1] == "wave 1: a eth1 9000 → 9000; b eth1 9000 → 9000"
    assert "nothing is to be done" not in "".join(plan(9000, 1500))


def test_an_undo_that_failed_does_not_say_that_all_is_put_back() -> None:
    """That would be read as undone; and why it may fail is in the plan."""
    failed = Outcome("put_back", ["a to b (IPv4): black hole above 1504 bytes"])
    assert list(text.outcome_lines(failed, 60, 1500))[-1] == "everything is put back"
    assert list(text.outcome_lines(failed, 60, 1500, undoing=True)) == [
        "a to b (IPv4): black hole above 1504 bytes", "nothing is undone: every host is as it was before this undo",
    ]  # fmt: skip
    told = " ".join(plan(9000, 1500))
    assert (
        "these hosts have different MTUs (1500, 9000): what the larger ones send to the others may be lost now" in told
    )
    assert "different MTUs" not in " ".join(plan(1500, 1500))


def test_who_changes_the_mtu_is_told_what_a_plan_warns_of() -> None:
    alike = {"found": "this", "expected": "that", "remedy": "do so"}
    findings = [
        {"where": "a/eth1", "what": "bridge", "severity": "warning", **alike},
        {"where": "b/eth1", "what": "bridge", "severity": "warning", **alike},
        {"where": "a/eth1", "what": "owner", "severity": "note", **alike},
    ]
    warnings = ["warning: a/eth1, b/eth1: bridge: found this, expected that", "  do so"]
    assert list(text.warned_lines(planned(1500, 1500, findings=findings))) == warnings
    told = planned(9000, 1500, findings=findings, link_loss_seconds={"a": 3.0})
    lines = list(text.warned_lines(told))
    assert lines[0] == "links may be down for up to 3 s when their MTU changes, on a:"
    assert lines[2].startswith("these hosts have different MTUs (1500, 9000)")
    assert lines[4:] == warnings
    assert not list(text.warned_lines(planned(1500, 1500))), "nothing to warn of"
    assert set(warnings) < set(text.plan_lines(told)), "as a plan says it"


def test_a_finding_of_many_hosts_is_one_line() -> None:
    alike = {"what": "owner", "severity": "note", "found": "no file", "expected": "one", "remedy": "make one"}
    findings = [{"where": f"{name}/eth1", **alike} for name in "ab"]
    findings.append({"where": "c/eth1", **alike, "found": "two files"})
    told = [line for line in plan(1500, 1500, 1500, findings=findings) if line.startswith("note")]
    assert told == [
        "note: a/eth1, b/eth1: owner: found no file, expected one", "note: c/eth1: owner: found two files, expected one",
    ]  # fmt: skip
