"""The table of verdicts in a terminal: long heads take several lines before rows are stacked."""

from __future__ import annotations

import io

from rich.console import Console

from framegauge.report import terminal

COLUMNS = ("metric", "95 % interval (corrected)", "verdict")
ROWS = (("goodput", "1.0475 to 1.0579", "better"), ("completion time", "0.9453 to 0.9546", "better"))


def printed(width: int) -> list[str]:
    file = io.StringIO()
    terminal.table(Console(file=file, width=width), COLUMNS, (0,), ("", ""), ROWS, ("better", "better"))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_there_is_room_for_one_line_or_two_or_none() -> None:
    assert printed(80)[0].split() == ["metric", "95", "%", "interval", "(corrected)", "verdict"]
    head, rest, first, *_ = printed(48)
    assert head.strip() == "95 % interval"
    assert rest.split() == ["metric", "(corrected)", "verdict"]
    assert first.split() == ["goodput", "1.0475", "to", "1.0579", "better"]
    assert rest.index("(corrected)") + len("(corrected)") == first.index("better") - 2
    assert "  95 % interval (corrected): 1.0475 to" in printed(40)


def test_the_numbers_behind_a_verdict_are_in_order() -> None:
    notes = {"first": 1}
    assert terminal.noted("undecided", ["second", "first"], notes) == "undecided [1] [2]"
    assert notes == {"first": 1, "second": 2}
