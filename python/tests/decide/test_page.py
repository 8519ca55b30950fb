"""What the page of a decision says beside its answer, from documents alone."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.check_lab import Lab
from rich.console import Console

from framegauge.decide import judge, page
from framegauge.decide.page import Situation
from framegauge.decide.places import LAB_STAYS
from framegauge.decide.steps import BUSY, Found
from framegauge.report.decision import terminal
from framegauge.report.decision.sheet import shortened

WHY = "netns:a is not reached over ssh, and only hosts that are can be raised and put back"


def told(found: Found) -> tuple[list[str], list[str]]:
    """What stands beside the answer, and what is next."""
    asked = Situation("?", "measured", 9000, Path("out"), allowed=False)
    shown = page.decision(asked, found, judge.conclude(found.paths(9000), found.benefit(9000)))
    return list(shown.beside), [" ".join([line] if isinstance(line, str) else line) for line in shown.parts[-1].lines]


def found(target: dict[str, Any], *mtus: int, findings: Any = ()) -> Found:
    hosts = [
        {"name": name, "error": None, "interfaces": [{"name": "eth0", "mtu": mtu, "maximum_mtu": None, "driver": None}]}
        for name, mtu in zip("abc", mtus, strict=True)
    ]
    facts = {"schema": 1, "present_mtu": min(mtus), "hosts": hosts}
    preflight = {"verdict": "refused", "findings": list(findings), "changes": []}
    return Found(facts, preflight, None, target, False, None, None, {"study": WHY, "check-raised": WHY})


def one_that_was_forgotten() -> dict[str, Any]:
    """a and b have 9000, c has 1500."""
    lab = Lab((3,))
    lab.device("c")["mtu"] = 1500
    lab.fault([("a", "c", 4), ("b", "c", 4)], hops=[("", "silent")])
    lab.fault([("c", "a", 4), ("c", "b", 4)], kind="too_small", told=[(None, 1500)])
    return lab.document()


def test_a_host_that_was_forgotten_is_the_first_thing_to_do() -> None:
    beside, then = told(found(one_that_was_forgotten(), 9000, 9000, 1500))
    assert beside[0] == "Lost even now: large packets to c, from hosts that have a larger MTU"
    assert then == [
        "Give c the MTU of the others, or the others theirs; then check the paths again "
        "framegauge decide --resume --out out --again check",
        "Name the hosts as ssh knows them: these can be raised for the check and a study, and are put back",
    ]


def test_there_is_something_to_do_where_every_path_carries_the_packets() -> None:
    _, then = told(found(Lab((3,)).document(), 9000, 9000, 9000))
    assert then == ["Name the hosts as ssh knows them: these can be raised for the check and a study, and are put back"]


def test_the_same_reason_is_told_once() -> None:
    finding = {
        "what": "neighbour",
        "where": "c/eth0",
        "severity": "refused",
        "found": "x",
        "expected": "y",
        "remedy": "z",
    }
    many = [{**finding, "found": str(number)} for number in range(3)] + [
        {**finding, "where": f"{name}/e"} for name in "abd"
    ]
    beside, _ = told(found(one_that_was_forgotten(), 9000, 9000, 1500, findings=many))
    assert beside[-1] == (
        "A roll-out is refused because of neighbour (c/eth0), neighbour (a/e), neighbour (b/e) and 1 more"
    )


@pytest.mark.parametrize(
    ("why", "begins"),
    [
        (
            f"{BUSY}: 1 Gb/s is not carried (idle CPU): end x (7), or wait for it",
            "Too busy for the study now: end x (7),",
        ),
        (f"{BUSY}: 1 Gb/s is not carried", "Too busy for the study now: wait until it is less so;"),
        ("b is read_only in its inventory", "Decide about hosts that may be raised"),
        (LAB_STAYS, "Ask the same about a rack"),
    ],
)
def test_every_study_that_is_left_out_for_now_has_a_way_on(why: str, begins: str) -> None:
    whole = found(Lab((3,)).document(), 9000, 9000, 9000)
    _, then = told(replace(whole, left_out={"study": why}))
    assert len(then) == 1
    assert then[0].startswith(begins)


def test_a_terminal_breaks_the_answer_between_words() -> None:
    whole = found(Lab((3,)).document(), 9000, 9000, 9000)
    asked = Situation("?", "measured", 9000, Path("out"), allowed=False)
    shown = page.decision(asked, whole, judge.conclude(whole.paths(9000), whole.benefit(9000)))
    printed, piped = io.StringIO(), io.StringIO()
    terminal.show(shown, Console(file=printed, width=60, force_terminal=True, no_color=True, color_system=None))
    assert max(map(len, printed.getvalue().splitlines())) <= 60
    terminal.show(shown, Console(file=piped, width=60))
    assert shortened(shown).answer.text in piped.getvalue().splitlines()
