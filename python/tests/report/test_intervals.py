"""No page, table or JSON has an interval that nobody can mean, however much the runs of a study differ."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from random import Random
from typing import Any

import pytest
from helpers import pages
from helpers.support import STUDY
from hypothesis import HealthCheck, example, given, settings, strategies as st
from rich.console import Console

from framegauge.cli import commands
from framegauge.report import terminal
from framegauge.report.decision import content
from framegauge.report.markdown import markdown
from framegauge.report.page import html
from framegauge.report.pictures import material
from framegauge.results.journal import Saved, read
from framegauge.statistics import doubts
from framegauge.statistics.ratio import USABLE, Ratio
from framegauge.study import file as study_file
from framegauge.summary import document, intervals as intervals_shown, words

# A change of more than that is of no interval that is shown; the ratios of single blocks are within e to the sixth.
MOST_PERCENT = 100 * 410 * USABLE


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("study") / "out"
    commands.run_study(study_file.parse(STUDY, "study.yaml"), folder, False, lambda _: None, lambda _: None)
    return read(folder)


def differing(saved: Saved, blocks: int, spread: float, seed: int) -> Saved:
    """The study with fewer blocks, whose runs differ so much (as logarithms)."""
    random = Random(seed)
    runs = [
        replace(run, metrics={name: value * random.lognormvariate(0, spread) for name, value in run.metrics.items()})
        for run in saved.runs
        if run.block < blocks
    ]
    return replace(saved, runs=runs)


def intervals(found: Any, name: str = "") -> Iterator[list[float]]:
    """All intervals of ratios in a summary."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key in ("ci95", "interval", "together") and name != "difference" and value is not None:
                yield value
            else:
                yield from intervals(value, key)
    elif isinstance(found, list):
        for value in found:
            yield from intervals(value, name)


def said(saved: Saved, summary: dict[str, Any]) -> str:
    """What terminal, Markdown and page have to say."""
    console = Console(file=io.StringIO(), width=200)
    terminal.show(summary, console)
    made = material.gather(saved, summary)
    page = unescape(re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", html.page(made), flags=re.DOTALL))
    return "\n".join([console.file.getvalue(), markdown(made), page])  # type: ignore[attr-defined]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(blocks=2, spread=2.0, seed=1)
@given(blocks=st.integers(1, 4), spread=st.sampled_from([0.001, 0.3, 1.0, 2.0]), seed=st.integers(0, 1000))
def test_every_interval_that_is_shown_says_something(study: Saved, blocks: int, spread: float, seed: int) -> None:
    saved = differing(study, blocks, spread, seed)
    summary = document.summarise(saved)
    for low, high in intervals(summary):
        assert 0 < low <= high <= USABLE * low
    text = said(saved, summary)
    assert "100 % to" not in text.replace("+100 %", "")
    figures = [float(figure) for figure in re.findall(r"([0-9][0-9.]*)[  ]%", text)]
    assert max(figures, default=0.0) < MOST_PERCENT
    for verdict in summary["verdicts"]:
        lines = [line for line in verdict["warnings"] if line.startswith("no usable interval from ")]
        judged = (verdict["judged"] or {"interval": [1.0, 1.0]})["interval"]
        assert bool(lines) == (judged is None and blocks > 1), verdict


def test_it_says_how_many_more_blocks_would_give_one(study: Saved) -> None:
    verdicts = document.summarise(differing(study, 2, 2.0, 1))["verdicts"]
    lines = {line for each in verdicts for line in each["warnings"] if line.startswith("no usable interval")}
    assert lines
    for line in lines:
        assert re.fullmatch(
            r"no usable interval from 2 blocks, which differ too much; about \d+ more blocks? would give one", line
        ), line


def test_json_has_null_and_the_reason(study: Saved, tmp_path: Path) -> None:
    found = json.loads(document.text(document.summarise(differing(study, 2, 3.0, 3))))
    [verdict, *_] = [each for each in found["verdicts"] if each["judged"] and each["judged"]["interval"] is None]
    assert any(line.startswith("no usable interval from 2 blocks") for line in verdict["warnings"])


def test_where_there_is_no_interval_at_all_the_blocks_are_not_to_blame() -> None:
    """A latency below what a busy machine may have added to it has none, however alike its blocks are."""
    assert list(doubts.unusable(Ratio(0.8, None, None, 6, 0.01))) == []
    [line] = doubts.unusable(Ratio(0.8, 0.01, 64.0, 2, 0.5))
    assert line.startswith("no usable interval from 2 blocks")


def test_a_verdict_has_one_interval_wherever_its_figure_is(study: Saved) -> None:
    """Own and corrected intervals differ by whole percents here; all that is read has the corrected one."""
    summary = document.summarise(differing(study, 4, 0.2, 3))
    summary["faithful"] = True
    console = Console(file=io.StringIO(), width=200)
    terminal.show(summary, console)
    made = material.gather(study, summary)
    texts = {
        "terminal": console.file.getvalue(),  # type: ignore[attr-defined]
        # Before the parts of a change, which are other figures: what is unexplained may vary as much as the whole.
        "markdown": markdown(made).partition("## Why")[0],
        "page": unescape(re.sub(r"<[^>]+>", "", pages.as_read(html.page(made)).partition('id="why"')[0])),
        "decision": str(content.decide(summary, Path("out"))),
    }
    for verdict in summary["verdicts"]:
        own, corrected = (words.change_interval(ends) for ends in (verdict["ci95"], intervals_shown.shown(verdict)))
        assert own != corrected
        for name in ("markdown", "page"):
            assert corrected in texts[name], name
        for name, text in texts.items():
            assert own not in text, name
        low, high = intervals_shown.shown(verdict) or (0, 0)
        assert f"{low:.4f} to {high:.4f}" in texts["terminal"]
    for name, text in texts.items():
        assert "95 % interval (corrected)" in text, name
