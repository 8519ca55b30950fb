"""The score of a corpus: what counts as right, missed and wrong, and how other tools' output becomes answers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from helpers.support import ROOT, bench

answers, score, board, manifest = (bench(f"corpus.{name}") for name in ("answers", "score", "board", "manifest"))
tools = bench("corpus.tools")
RECORDED = ROOT / "python/tests/recorded/corpus"
FIRST, SECOND = "10.9.1.1:4000-10.9.2.1:5000", "10.9.1.1:4001-10.9.2.1:5000"
CAPTURE = "runs/one-loss-10005/sender.pcapng.gz"
CONN_LOG = (
    "#separator \\x09\n#path\tconn\n"
    "#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tduration\tconn_state\tmissed_bytes\thistory\n"
    "100.5\tC1\t10.9.2.1\t40000\t10.9.1.1\t5000\ttcp\t0.25\tRSTR\t0\tShADTdtr\n"
    "101.0\tC2\tfd00:1::1\t40001\tfd00:2::1\t5000\ttcp\t0.5\tREJ\t0\tSr\n"
    "102.0\tC3\t10.9.2.1\t40002\t10.9.1.1\t5000\ttcp\t-\tSF\t1448\tShADgwFf\n"
    "103.0\tC4\t10.9.2.1\t40003\t10.9.1.1\t5000\ttcp\t0.5\tOTH\t0\tDF\n"
    "104.0\tC5\t10.9.2.1\t40003\t10.9.1.1\t53\tudp\t0.5\tSF\t0\tDd\n"
)


def truth(*must: tuple[str, str | None], may: tuple[str, ...] = (), kind: str = "loss") -> Any:
    """Of a capture with two connections; each cause lasts from 100 s to 101 s."""
    pairs = frozenset(answers.pair(text) for text in (FIRST, SECOND))
    items = [score.Item(cause, answers.pair(text) if text else None, 100.0, 101.0) for cause, text in must]
    return score.Truth(CAPTURE, "one loss", kind, "test", items, frozenset(may), pairs, 0.01)


def answer(cause: str, connection: str | None = FIRST, begin: float | None = None, end: float | None = None) -> Any:
    return answers.Answer(CAPTURE, answers.pair(connection) if connection else None, cause, begin, end)


def counts(scored: Any) -> tuple[int, int, int]:
    return scored.right, scored.missed, scored.wrong


def test_a_cause_is_right_on_its_connection_and_wrong_on_another() -> None:
    known = [truth(("fast_retransmit", FIRST))]
    assert counts(score.score(known, [answer("fast_retransmit")]).kinds["fast_retransmit"]) == (1, 0, 0)
    assert counts(score.score(known, [answer("fast_retransmit", SECOND)]).kinds["fast_retransmit"]) == (0, 1, 1)
    assert counts(score.score(known, []).kinds["fast_retransmit"]) == (0, 1, 0)


def test_what_is_said_twice_of_a_connection_counts_once() -> None:
    result = score.score([truth()], [answer("reset"), answer("reset"), answer("reset", SECOND)])
    assert counts(result.kinds["reset"]) == (0, 0, 2)


def test_what_is_said_of_the_capture_covers_each_connection_that_has_it() -> None:
    known = [truth(("incast", FIRST), ("incast", SECOND))]
    assert counts(score.score(known, [answer("incast", None)]).kinds["incast"]) == (2, 0, 0)
    known = [truth(("truncated", None))]
    assert counts(score.score(known, [answer("truncated")]).kinds["truncated"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("begin", "end", "right"),
    [(None, None, 1), (100.5, 100.6, 1), (99.0, 99.995, 1), (101.005, 102.0, 1), (99.0, 99.98, 0), (102.0, 103.0, 0)],
)
def test_a_time_must_overlap_the_true_one_by_a_round_trip(begin: float | None, end: float | None, right: int) -> None:
    result = score.score([truth(("rto_stall", FIRST))], [answer("rto_stall", FIRST, begin, end)])
    assert counts(result.kinds["rto_stall"]) == (right, 1 - right, 1 - right)


def test_what_may_be_said_is_neither_right_nor_wrong() -> None:
    result = score.score([truth(may=("network_limited",))], [answer("network_limited")])
    assert not result.kinds
    assert result.macro == (0.0, 0.0)


def test_a_family_is_right_for_any_of_its_kinds() -> None:
    result = score.score([truth(("tail_loss", FIRST))], [answer("loss")])
    assert counts(result.families["loss"]) == (1, 0, 0)
    assert counts(result.kinds["tail_loss"]) == (0, 1, 0)
    result = score.score([truth(("tail_loss", FIRST))], [answer("rto_stall")])
    assert counts(result.families["loss"]) == (1, 0, 0)
    assert counts(result.kinds["rto_stall"]) == (0, 0, 1)
    assert result.macro == (0.0, 1.0)


def test_warnings_on_clean_captures_are_counted_and_notes_are_none() -> None:
    result = score.score([truth(kind="clean")], [answer("rto_stall"), answer("network_limited")])
    assert (result.warnings, result.clean) == (1, 2)


def test_answers_on_other_captures_and_connections_are_told_apart() -> None:
    elsewhere = answers.Answer("runs/other/sender.pcapng.gz", None, "reset")
    result = score.score([truth()], [elsewhere, answer("reset", "10.9.1.1:4002-10.9.2.1:5000")])
    assert (result.unknown, result.strangers, result.answers) == (1, 1, 1)


def test_answers_are_read_as_they_were_written() -> None:
    given = [answer("reset", "[fd00:0:1::1]:4000-[fd00:2::1]:5000", 1.5, 2.25), answer("truncated", None)]
    text = io.StringIO()
    assert answers.write(given, text) == 2
    assert answers.read(text.getvalue().splitlines(keepends=True)) == given


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("a,b-c,reset,,", "found the connection b-c"),
        (f"a,{FIRST},slowness,,", "found the cause slowness"),
        (f"a,{FIRST},reset,1,", "found one of begin and end"),
        (f"a,{FIRST},reset,now,then", "found the times now and then"),
        (f"a,{FIRST},reset", "more or fewer values"),
        ("a,10.9.1.1:4000-10.9.2.1:70000,reset,,", "found the connection"),
        ("a,10.9.1:4000-10.9.2.1:5000,reset,,", "found the connection"),
    ],
)
def test_a_row_that_cannot_be_understood_is_told_in_one_line(row: str, problem: str) -> None:
    with pytest.raises(answers.AnswersError, match=f"^answers, line 2: .*{problem}"):
        answers.read(["capture,connection,cause,begin,end\n", row])


def test_columns_that_are_missing_are_told() -> None:
    with pytest.raises(answers.AnswersError, match="expected capture,connection,cause,begin,end"):
        answers.read(["capture,cause\n", "a,reset\n"])


def told(tool: str, file: str) -> list[tuple[str, str]]:
    text = (RECORDED / file).read_text()
    return [("-".join(sorted(each.connection or ())), each.cause) for each in tools.TOOLS[tool].answers(text, CAPTURE)]


def test_tcptrace_tells_repeats_and_refusals_by_its_counts() -> None:
    ends = "10.11.1.1:5000-10.11.2.1:54836"
    assert told("tcptrace", "tcptrace-losses-in-a-row.txt") == [(ends, "rto_stall"), (ends, "truncated")]
    assert [cause for _, cause in told("tcptrace", "tcptrace-refused.txt")] == ["connection_refused"] * 2


def test_tshark_tells_by_its_expert_information_with_times() -> None:
    causes = {cause for _, cause in told("tshark", "tshark-losses-in-a-row.txt")}
    assert causes == {"reordering", "fast_retransmit", "rto_stall"}
    assert [cause for _, cause in told("tshark", "tshark-refused.txt")] == ["connection_refused"] * 2
    text = (RECORDED / "tshark-refused.txt").read_text()
    assert next(tools.TOOLS["tshark"].answers(text, CAPTURE)).begin == pytest.approx(1795903670.128609)


def test_framegauge_tells_findings_at_their_times() -> None:
    text = (RECORDED / "framegauge-losses-in-a-row.json").read_text()
    given = {each.cause: each for each in tools.TOOLS["framegauge"].answers(text, CAPTURE)}
    loss = given["fast_retransmit"]
    assert loss.connection == answers.pair("10.11.1.1:5000-10.11.2.1:54836")
    assert 1_795_000_000 < loss.begin <= loss.end
    assert given["truncated"].connection is None


def test_zeek_tells_by_states_and_histories() -> None:
    given = list(tools.TOOLS["zeek"].answers(CONN_LOG, CAPTURE))
    by_connection: dict[Any, list[str]] = {}
    for each in given:
        by_connection.setdefault(each.connection, []).append(each.cause)
    assert list(by_connection.values()) == [
        ["fast_retransmit", "reset"], ["connection_refused"], ["zero_window", "capture_loss"], ["half_capture"],
    ]  # fmt: skip
    assert answers.pair("[fd00:1::1]:40001-[fd00:2::1]:5000") in by_connection
    assert (given[0].begin, given[0].end) == (100.5, 100.75)


def test_a_tool_that_is_not_there_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(tools.ToolMissing, match="zeek was not found: apt-get install zeek"):
        list(tools.ask(tools.TOOLS["zeek"], Path(), [CAPTURE]))


def test_the_page_has_each_tool_and_says_which_are_not_there(tmp_path: Path) -> None:
    (tmp_path / manifest.MANIFEST).write_text("{}")
    known = [truth(("rto_stall", FIRST), ("truncated", None))]
    scored = {"framegauge": score.score(known, [answer("rto_stall")]), "tshark": score.score(known, [answer("loss")])}
    page = board.written(scored, known, tmp_path, "test", ["of repeats"])
    assert "## Why segments were sent again\n\nof repeats\n" in page
    assert "1 runs of 1 scenes (the split `test` of 1 runs)" in " ".join(page.split())
    assert "| `rto_stall` | 1 | 1.00 1.00 **1.00** | - |" in page
    assert "| `loss` | 1 | 1.00 1.00 **1.00** | 1.00 1.00 **1.00** |" in page
    assert "Not there, and not scored: tcptrace -n -l -r, Zeek (conn.log)." in page
    assert "| framegauge diagnose | 0.500 | 1.000 of 1 | 1.000 |" in page
    assert all(len(line) <= 120 for line in page.splitlines() if not line.startswith("|"))
