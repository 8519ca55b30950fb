"""Several results against the first: one table, one family, and the gravest outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers.other_tools import iperf3_folder
from helpers.support import STUDY

from framegauge.cli import main as cli
from framegauge.summary.schema import comparison_schema, several_schema

LOSSY = STUDY.replace("{kind: fake}", "{kind: fake, fake: {goodput_loss: 20 %}}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results a, b and c, which are alike, and one that is worse."""
    place = tmp_path_factory.mktemp("several")
    for seed, (name, text) in enumerate({"a": STUDY, "b": STUDY, "c": STUDY, "worse": LOSSY}.items(), 1):
        (place / f"{name}.yaml").write_text(f"{text.replace('blocks: 6', 'blocks: 8')}seed: {seed}\nstop: blocks\n")
        assert cli.main(["study", str(place / f"{name}.yaml"), "--out", str(place / name)]) == 0
    return place


def compared(folder: Path, capsys: pytest.CaptureFixture[str], *names: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["compare", *(str(folder / name) for name in names), "--json"]) == code
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_all_comparisons_are_one_family(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = compared(folder, capsys, "a", "b")
    several = compared(folder, capsys, "a", "b", "c")
    jsonschema.Draft202012Validator(comparison_schema()).validate(alone)
    jsonschema.Draft202012Validator(several_schema()).validate(several)
    one, other = several["comparisons"]
    assert several["family"]["comparisons"] == len(one["verdicts"]) + len(other["verdicts"])
    assert {each["family"]["comparisons"] for each in several["comparisons"]} == {several["family"]["comparisons"]}
    assert several["outcome"] == "nothing_worse"
    assert several["new"] == [str(folder / "b"), str(folder / "c")]
    wider = [
        (both["judged"]["interval"][0] <= single["judged"]["interval"][0], both["ci95"] == single["ci95"])
        for both, single in zip(one["verdicts"], alone["verdicts"], strict=True)
    ]
    assert set(wider) == {(True, True)}
    assert {round(each["judged"]["confidence"], 6) for each in one["verdicts"]} <= {
        round(1 - 0.05 / left, 6) for left in range(1, several["family"]["comparisons"] + 1)
    }


def test_one_that_is_worse_is_exit_1_and_the_table_says_which(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = compared(folder, capsys, "a", "b", "worse", code=1)
    assert document["outcome"] == "worse"
    assert [each["outcome"] for each in document["comparisons"]] == ["nothing_worse", "worse"]
    assert cli.main(["compare", *(str(folder / name) for name in ("a", "b", "worse")), "--metric", "goodput"]) == 1
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == f"BASE  {folder / 'a'}"
    assert lines[-2].startswith(f"{folder / 'b'}: nothing is worse: ")
    assert lines[-1].startswith(f"{folder / 'worse'}: it is worse: ")
    assert "all 4 comparisons with BASE mislead with at most 5 % together (Holm)" in lines
    assert out.count(str(folder / "worse")) >= 2
    assert "completion time" not in out


def test_what_cannot_be_compared_is_not_passed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = iperf3_folder(tmp_path / "down", [9e8] * 6, reverse=True)
    words = ["compare", str(folder / "a"), str(folder / "b"), str(strange)]
    assert cli.main(words) == 3
    assert f"{strange}: cannot be compared: nothing in common" in capsys.readouterr().out.splitlines()[-1]
    assert cli.main(["compare", str(folder / "a"), str(strange), str(folder / "a") + "@2000-01-01..2000-01-02"]) == 2


def test_each_result_is_given_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *(str(folder / name) for name in ("a", "b", "b"))]) == 2
    assert f"compare: found {folder / 'b'} twice, expected each once" in capsys.readouterr().err
