"""The decision: it says what the summary and the check say, nothing else, and fits on a sheet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import decisions, pages
from helpers.check_lab import Lab
from helpers.schemas import conforms
from helpers.support import STUDY
from summary.test_sentence import BETTER, FAR, UNDECIDED, WORSE, one, summary

from framegauge.check import saved as check_file
from framegauge.cli import main as cli
from framegauge.errors import CorruptResults, InputError, NewerResults
from framegauge.report import markdown
from framegauge.report.check import risks
from framegauge.report.decision import content, sheet
from framegauge.report.decision.model import Decision, Part, Risks, document, split
from framegauge.report.page import decision as page
from framegauge.study.factors import Factors
from framegauge.summary import competitors
from framegauge.summary.schema import decision_schema
from framegauge.summary.sentence import answer

PLACE = Path("results/rack")
GAIN = {"ratio": 1.5, "ci95": [1.4, 1.6]}
TSO = {
    "workload": "stream", "metric": "goodput", "baseline": {"mtu": 1500}, "treatment": {"mtu": 9000},
    "first": {"tso": False}, "level": {"tso": True}, "alone": GAIN, "treatment_alone": {"ratio": 1.3, "ci95": [1.2, 1.4]},
    "together": {"ratio": 1.7, "ci95": [1.6, 1.8]}, "pairs": 1, "sure": True,
}  # fmt: skip
ENOUGH = {
    "metric": "goodput", "margin": 0.01, "workload": None, "conditions": {}, "all_cells": True, "largest": {"mtu": 9000},
    "smallest": {"mtu": 4200}, "settled": True,
    "steps": [{"mtu": 4200, "enough": "enough", "ratio": 1.0, "interval": [0.999, 1.001]}],
}  # fmt: skip


def decide(*verdicts: dict[str, Any], found: Risks | None = None, **more: Any) -> Decision:
    return content.decide(summary(*verdicts, **more), PLACE, found)


def part(found: Decision, name: str) -> Part:
    return next(each for each in found.parts if each.name == name)


def lines(found: Decision, name: str) -> list[str]:
    return [" ".join(filter(None, split(line))) for line in part(found, name).lines]


def checked(lab: Lab, tmp_path: Path) -> Risks:
    (tmp_path / "check.json").write_text(json.dumps(lab.document()))
    return risks.of_check(check_file.read(tmp_path / "check.json"))


def test_the_answer_is_that_of_the_terminal_and_rows_are_ranges_of_verdicts() -> None:
    verdicts = [one(BETTER), one(BETTER, rtt=FAR, ratio=1.187), one(WORSE, "receiver_cpu_cost", ratio=1.2)]
    found = decide(*verdicts)
    assert found.answer == answer(summary(*verdicts))
    worse, better = part(found, "verdicts").rows
    assert worse[0] == "receiver CPU cost"  # where a table is cut, what is worse stays
    assert worse[-1] == "worse"
    assert better == ["goodput", "MTU 9000", "+5.3 % to +18.7 %", "+5.0 % to +19.1 %", "1 %", "better in all 2"]


def test_a_metric_that_is_open_somewhere_is_not_called_better() -> None:
    found = decide(one(BETTER), one(BETTER, rtt=FAR), one(UNDECIDED, rtt=0.01))
    assert part(found, "verdicts").rows[0][-1] == "2 better, 1 undecided"


def test_undecided_says_so_and_how_to_go_on() -> None:
    found = decide(one(UNDECIDED, warnings=("undecided: about 13 more blocks would settle it",)))
    assert found.answer.text.startswith("Undecided")
    assert part(found, "verdicts").rows[0][-1] == "undecided"
    assert "framegauge study --resume --blocks 13 --out results/rack" in lines(found, "next")[0]


def test_a_study_that_ended_early_and_undecided_is_to_be_gone_on_with() -> None:
    cut = {"stop": "blocks", "planned_blocks": 8, "blocks": 3}
    found = decide(one(UNDECIDED), stopping=cut)
    assert lines(found, "next")[0] == (
        "Run the rest of the study: 3 of 8 planned blocks were run framegauge study --resume --out results/rack"
    )
    assert not any("more levels" in line for line in lines(found, "next"))
    settled = lines(decide(one(BETTER), stopping=cut), "next")
    assert not any("--resume" in line for line in settled)
    assert any("more levels" in line for line in settled)


def test_a_suspect_study_claims_nothing() -> None:
    reason = "an A/A control of this study differs from the identical baseline, so nothing is claimed"
    control = one("suspect", level=1500, warnings=(reason,))
    found = decide(
        control, one("suspect", warnings=(reason,)), suspect=[reason], competitors=[TSO], smallest_levels=[ENOUGH]
    )
    assert not found.faithful
    assert found.answer.text.startswith("Suspect: this study is not evidence, because an A/A control")
    for name in ("verdicts", "smallest", "competitors"):
        assert not part(found, name).rows
        assert lines(found, name)[0].startswith("This study is not evidence, so nothing is claimed")
        assert "%" not in "".join(lines(found, name))


def test_competitors_are_shown_with_what_each_gives() -> None:
    chance = {**TSO, "first": {"nagle": False}, "level": {"nagle": True}, "sure": False}
    less = {**TSO, "treatment": {"mtu": 4200}}
    found = part(decide(one(BETTER), competitors=[TSO, chance, less]), "competitors")
    assert list(found.head[2:]) == ["it alone, at MTU 1500", "MTU 9000 alone", "both"]
    assert [row[0] for row in found.rows] == ["TSO on instead of off", "Nagle on instead of off"]
    assert list(found.rows[0][2:]) == ["+50 % (+40 % to +60 %)", "+30 % (+20 % to +40 %)", "+70 % (+60 % to +80 %)"]
    assert found.rows[1][2].endswith("may be chance")


def test_the_smallest_level_is_named_or_why_it_is_not() -> None:
    assert lines(decide(one(BETTER), smallest_levels=[ENOUGH]), "smallest") == [
        "MTU 4200 already gives the goodput of MTU 9000 (within 1 %)"
    ]
    assert lines(decide(one(BETTER)), "smallest") == ["Not asked: the study tried MTU 1500 and MTU 9000 alone"]
    other = decide(one(BETTER, factor="tso", level=True, baseline=False, conditions={"mtu": 1500}))
    assert lines(other, "smallest") == ["Not asked: the study does not compare MTUs; its runs had MTU 1500"]
    assert not other.beside  # nothing asks that paths carry more than they do


def test_without_a_check_the_page_says_so_and_with_which_command() -> None:
    found = decide(one(BETTER))
    assert found.beside == ["Not known: whether every path of your network carries packets of 9000 bytes"]
    check, again = lines(found, "risks")
    assert check.startswith("No check of the paths is part of this page.")
    assert "framegauge check --hosts inventory.ini --mtu 9000 --json > check.json" in check
    assert "framegauge report results/rack --decision --check check.json" in again


def test_the_faults_of_a_check_stand_beside_the_answer_and_come_first(tmp_path: Path) -> None:
    lab = Lab((2, 2)).fault([("a", "c", 4)], bad=8, hops=[("10.1.0.254", "expired"), ("", "silent")])
    found = decide(one(BETTER), found=checked(lab, tmp_path))
    assert found.beside == ["Risk: 1 of 12 pairs does not carry packets of 9000 bytes"]
    assert lines(found, "risks")[0] == "1 of 12 pairs does not carry packets of 9000 bytes"
    assert "One of several parallel links drops large packets" in lines(found, "risks")[1]
    assert lines(found, "next")[0].startswith("Remove the fault of the paths before any host gets a larger MTU")


def test_a_clear_check_is_no_risk_unless_it_asked_for_less(tmp_path: Path) -> None:
    clear = checked(Lab((3,)), tmp_path)
    found = decide(one(BETTER), found=clear)
    assert found.beside == []
    assert lines(found, "risks")[0] == "All 6 pairs carry packets of 9000 bytes"
    more = decide(one(BETTER, level=9216), found=clear)
    assert more.beside == ["Risk: the paths were checked with packets of 9000 bytes only, not with MTU 9216"]
    assert "Check the paths again, with --mtu 9216" in lines(more, "next")


def test_paths_that_failed_during_the_study_are_risks_with_or_without_a_check() -> None:
    reason = "error: packets of 9000 bytes from a to b: found that at most 1500 bytes pass; everything is put back"
    run = {
        "run": 3,
        "block": 0,
        "arm": "9000",
        "workload": "stream",
        "conditions": {},
        "mtu": 9000,
        "reasons": [reason],
    }
    found = decide(one(BETTER), excluded=[run, run])
    assert lines(found, "risks")[0] == (
        "During the study: packets of 9000 bytes from a to b: found that at most 1500 bytes pass"
    )
    assert "2 runs were excluded" in " ".join(lines(found, "not_measured"))


def test_what_was_not_measured_is_named() -> None:
    lost = one("not judged", "completion_time", rtt=FAR)
    better = [one(BETTER, rtt=rtt) for rtt in (0.1, 0.2, 0.3, 0.4)]
    found = decide(
        *better, lost, faithful=True, not_measured=[{"metric": "fairness", "why": "one flow"}], caveats=["x"]
    )
    said = lines(found, "not_measured")
    assert said[0].startswith("Emulated: ")
    assert said[1] == "Not varied: cubic"
    assert said[2] == "No verdict in 1 of 5 comparisons: completion time (RTT 1.2 ms)"
    assert said[3:] == ["Fairness was not measured: one flow", "X"]


def test_every_factor_of_a_study_is_a_setting_or_a_circumstance() -> None:
    assert set(Factors.model_fields) <= {*competitors.SETTINGS, *competitors.CIRCUMSTANCES}
    assert not set(competitors.SETTINGS) & set(competitors.CIRCUMSTANCES)


def every(found: Decision) -> Iterator[str]:
    yield from (found.goal, found.answer.text, *found.beside)
    for each in found.parts:
        yield from (cell for row in each.rows for cell in row)
        yield from (split(line)[0] for line in each.lines)


def test_what_does_not_fit_is_counted_and_commands_are_never_cut() -> None:
    whole = decisions.longest(1000, 100)
    short = sheet.shortened(whole)
    for before, after in zip(whole.parts, short.parts, strict=True):
        *kept, last = after.lines
        rows = f"{len(before.rows) - len(after.rows)} more rows and " if before.rows else ""
        assert split(last)[0].endswith(f"has {rows}{len(before.lines) - len(kept)} more lines")
        assert {split(line)[1] for line in kept} <= {"", decisions.COMMAND}
    assert max(map(len, every(short))) < 300
    assert "more clauses in the full report." in short.answer.text


def test_what_fits_is_left_alone() -> None:
    whole = decide(one(BETTER), competitors=[TSO], smallest_levels=[ENOUGH])
    assert document(sheet.shortened(whole)) == document(whole)


def test_an_answer_that_is_cut_says_that_something_is_worse() -> None:
    text = f"It depends: {'; '.join(['a clause of some forty characters in all'] * 30)}; but they cost more."
    assert sheet._clauses(text, 400, "the full report").endswith(
        "more clauses in the full report, also on what is worse."
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    (folder / "study.yaml").write_text(STUDY.replace("blocks: 6", "blocks: 3\nstop: blocks"))
    assert cli.main(["study", str(folder / "study.yaml"), "--out", str(folder / "out")]) == 0
    return folder / "out"


def test_the_command_writes_the_page_into_the_folder(
    results: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", str(results), "--decision"]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"written: {results / 'decision.html'}\n"
    assert "What it would take next" in printed.out
    found = pages.check((results / "decision.html").read_text())
    assert [each.text for each in found.all("h2")] == [
        "What it brings", "Verdicts", "The smallest sufficient MTU", "What competes: other settings",
        "Risks on the paths", "What was not measured", "What it would take next",
    ]  # fmt: skip
    Path("check.json").write_text(json.dumps(Lab((2,)).document()))
    assert cli.main(["report", str(results), "--decision", "--check", "check.json"]) == 0
    found = pages.check((results / "decision.html").read_text())
    assert [each.text for each in found.all("h2")][:2] == ["Which paths carry 9000 bytes", "What it brings"]


def test_json_and_markdown_have_the_same_and_write_no_page(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "decision.html").unlink(missing_ok=True)
    assert cli.main(["report", str(results), "--decision", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    conforms(found, decision_schema())
    assert cli.main(["report", str(results), "--decision", "--markdown", "-"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Does it work?\n\n**")
    for each in found["sections"]:
        assert f"## {each['title']}" in text
    assert not (results / "decision.html").exists()
    report = (results / "report.html").read_text()
    assert all(each["title"] in report.partition('id="decision"')[2] for each in found["sections"])


def test_a_check_is_on_both_pages(results: Path, tmp_path: Path) -> None:
    (tmp_path / "check.json").write_text(json.dumps(Lab((3,)).document()))
    for name, words in (("decision", ["--decision"]), ("report", [])):
        place = tmp_path / f"{name}.html"
        asked = ["report", str(results), *words, "--check", str(tmp_path / "check.json"), "--html", str(place)]
        assert cli.main(asked) == 0
        assert "All 6 pairs carry packets of 9000 bytes" in place.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--decision", "--pictures", "x"], "--pictures: found --decision, too"),
        (["--check", "check.json"], "--check: found nothing that would show it"),
    ],
)
def test_options_that_do_not_go_together_are_named_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "results/none", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"schema": 2}, NewerResults, "found schema 2, expected at most 1"),
        ({"schema": None}, CorruptResults, "found no schema"),
        ({"verdict": "carries_target"}, CorruptResults, "as its pairs and hosts have it"),
        ({"pairs": []}, CorruptResults, "pairs: found"),
        ({"target_mtu": "9000"}, CorruptResults, "target_mtu: found"),
        ({"findings": [{"kind": 1}]}, CorruptResults, "findings.0.kind: found 1"),
        ({"coverage": {"x": 1}}, CorruptResults, "coverage"),
    ],
)
def test_a_check_that_cannot_be_read_is_one_line(
    change: dict[str, Any], error: type[InputError], message: str, tmp_path: Path
) -> None:
    found = {**Lab((2,)).fault([("a", "b", 4)]).document(), **change}
    (tmp_path / "check.json").write_text(json.dumps(found))
    with pytest.raises(error, match=message) as raised:
        check_file.read(tmp_path / "check.json")
    assert "\n" not in str(raised.value)


def test_a_check_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: found no way to read it"):
        check_file.read(tmp_path / "none.json")


def test_foreign_words_are_text(tmp_path: Path) -> None:
    lab = Lab((2,)).fault([("a", "b", 4)])
    found = lab.document()
    for each in found["findings"]:
        each["where"], each["kind"] = pages.HOSTILE, pages.HOSTILE
    (tmp_path / "check.json").write_text(json.dumps(found))
    seen = risks.of_check(check_file.read(tmp_path / "check.json"))
    words = {"question": pages.HOSTILE, "scope": pages.HOSTILE, "caveats": [pages.HOSTILE]}
    made = decide(one(BETTER, workload=pages.HOSTILE, conditions={"ecn": pages.HOSTILE}), found=seen, **words)
    text = page.page(made)
    read = pages.check(text)
    assert not [each for tag in ("script", "img", "i") for each in read.all(tag)]
    assert any("<script>alert(1)" in each.text for each in read.all("li"))
    assert "<script" not in markdown.decision(made)
    assert not {"\x1b", "\x00"} & {*text, *markdown.decision(made)}
