"""A study of many flows beside one, as examples/port-contention.yaml makes it: what the first sentences say of it.

The figures are those of a full run: with taildrop the one flow gets 27 Mb/s beside 75 for each of twelve.
"""

from __future__ import annotations

import io
import re
from html import unescape
from itertools import product
from typing import Any

import pytest
from helpers import contended, pages
from rich.console import Console

from framegauge.report import markdown, terminal
from framegauge.report.page import html
from framegauge.report.pictures import material
from framegauge.results.journal import Journal, Run, Saved, read
from framegauge.statistics.mean import jain
from framegauge.summary import contention, document as summary
from framegauge.summary.sentence import answer

BLOCKS = 10
QUEUES = {name: {"kind": name} for name in ("taildrop", "red", "sfq")}
PLAN = {
    "question": "Do few flows by one port starve beside many by another?", "scope": "emulated", "treatment": "queue",
    "margins": {"smallest_goodput": 0.2, "fairness": 0.02, "goodput": 0.02}, "stop": "blocks", "planned_blocks": BLOCKS,
}  # fmt: skip
SHARED = {
    "pattern": "many-to-one", "duration_seconds": 2.0, "flows": 1, "rtt_seconds": 0.0002, "offloads": False,
    "congestion_control": "reno", "bits_per_second": 10**9, "mtu": 1500,
}  # fmt: skip
STARVED = (2, 7, 11, 15, 18, 24, 30, 42, 55, 70)  # of the condition in which runs differ most; the mean is 27.4
ROLES = {"taildrop": "baseline", "red": "treatment", "sfq": "treatment"}


def rates(queue: str, skew: int, shaping: bool, block: int) -> dict[str, float]:
    """What each flow gets in Mb/s: with taildrop h13 starves, but for unequal clocks of shaped ports."""
    off = (block % 5 - 2) / 2  # -1 to 1
    if queue == "red":
        one, many = 117 + 3 * off, 57.5 + 0.5 * off
    elif queue == "sfq" or (skew and shaping):
        one, many = 70 + 2 * off, 72 + 0.4 * off
    elif shaping:
        one, many = STARVED[block], 75.2 + 4.5 * off
    else:
        one, many = 30 + 3 * off, 75 + 0.5 * off
    return {**{f"h{number}": many for number in range(1, 13)}, "h13": one}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("outcast") / "out"
    number = 0
    with Journal.create(folder, "seed: 1\n", PLAN) as journal:
        for block in range(BLOCKS):
            for cell, (skew, shaping) in enumerate(product((0, 5000), (True, False))):
                for queue in QUEUES:
                    number += 1
                    found = {name: 1e6 * rate for name, rate in rates(queue, skew, shaping, block).items()}
                    metrics = {"goodput": sum(found.values()), "smallest_goodput": min(found.values())}
                    metrics["fairness"] = jain(list(found.values())) or 0.0
                    conditions = {**SHARED, "skew_ppm": skew, "shaping": shaping}
                    run = Run(
                        number, block, cell, queue, ROLES[queue], QUEUES[queue], 0, "stream", conditions, metrics, []
                    )
                    spools = {f"transfers-{name}-h14": contended.transfers([rate], [5]) for name, rate in found.items()}
                    spools["drops"] = contended.drops(contended.DROPPED)
                    record = contended.record([contended.asked(name) for name in contended.SENDERS], contended.DROPPED)
                    journal.add(run, record, spools)
    return read(folder)


@pytest.fixture(scope="module")
def found(saved: Saved) -> dict[str, Any]:
    return summary.summarise(saved)


BESIDE = (
    "With taildrop, h13 by h13>s2 gets 27.4 Mb/s (11.6 to 43.2) beside 75.2 Mb/s (72.8 to 77.6) for each of 12 flows "
    "by s1>s2; with red 117 Mb/s beside 57.5 Mb/s; with sfq 70 Mb/s beside 72 Mb/s (skew 0 ppm, shaping on, where "
    "taildrop shares least evenly)."
)


def test_the_headline_says_what_is_fairer_where_and_by_how_much(found: dict[str, Any]) -> None:
    text = answer(found).text
    better, worse, inside, unsettled = (
        part for part in re.split("; but |; no practical difference in |; not decided ", text) if part
    )  # fmt: skip
    assert better == (
        "It depends, as far as decided: red and sfq raise the goodput of the slowest flow by 92 % to 134 % with "
        "shaping off here, compared with taildrop; sfq raises the fairness of the flows by 2.8 % with shaping off"
    )
    assert worse == (
        "red lowers the fairness of the flows by 3.5 % to 6.1 % except with skew 0 ppm and shaping on; it lowers the "
        "goodput of bulk transfers by 13.1 % to 13.6 %"
    )
    assert inside.startswith("smallest goodput and fairness with sfq, skew 5000 ppm and shaping on")
    assert "fairness with sfq, skew 0 ppm and shaping on (+0.62 % to +7.04 %)" in unsettled
    assert "comparisons" not in text


def test_each_claim_is_what_the_verdicts_say_there(found: dict[str, Any]) -> None:
    fairer = [
        (each["conditions"]["shaping"], each["treatment"]["queue"]["kind"])
        for each in found["verdicts"]
        if each["metric"] == "fairness" and each["verdict"] == "better"
    ]
    assert fairer == [(False, "sfq")] * 2
    slower = {
        each["verdict"] for each in found["verdicts"] if each["metric"] == "goodput" and "red" in str(each["treatment"])
    }
    assert slower == {"worse"}


def test_what_the_one_flow_gets_is_the_second_sentence_everywhere(saved: Saved, found: dict[str, Any]) -> None:
    assert contention.beside(found) == BESIDE
    out = io.StringIO()
    terminal.show(found, Console(file=out, width=118))
    said = " ".join(out.getvalue().split())
    assert said.startswith(f"{PLAN['question']} {answer(found).text} {BESIDE} All rows: ")
    made = material.gather(saved, found)
    text = unescape(markdown.markdown(made)).replace("\\", "")
    assert f"**{made.answer.text}**\n\n{BESIDE}\n" in text
    first, second = [each for each in pages.check(html.page(made)).all("p") if "taildrop" in each.text][:2]
    assert (first.text.strip("±"), second.text) == (made.answer.text, BESIDE)


def test_without_a_metric_of_sharing_or_without_faith_there_is_no_second_sentence(found: dict[str, Any]) -> None:
    goodput = [each for each in found["verdicts"] if each["metric"] == "goodput"]
    for other in ({"verdicts": goodput}, {"flows": []}, {"faithful": False}):
        assert contention.beside({**found, **other}) == ""


def test_of_flows_that_are_not_one_beside_many_the_ends_are_told(found: dict[str, Any]) -> None:
    (entry, *_) = found["flows"]
    arms = [{**arm, "rows": arm["rows"][:1]} for arm in entry["arms"]]
    assert contention.beside({**found, "flows": [{**entry, "arms": arms}]}).startswith(
        "With taildrop, the slowest of 13 flows gets 27.4 Mb/s (11.6 to 43.2) beside 75.2 Mb/s (72.8 to 77.6) for the "
        "fastest; with red 57.5 Mb/s beside 117 Mb/s; with sfq"
    )


def test_conditions_that_do_not_vary_are_said_once(saved: Saved, found: dict[str, Any]) -> None:
    out = io.StringIO()
    terminal.show(found, Console(file=out, width=118))
    made = material.gather(saved, found)
    texts = {
        "terminal": out.getvalue(),
        "page": pages.as_read(html.page(made)),
        "markdown": markdown.markdown(made).replace("\\", ""),
    }
    for name, text in texts.items():
        common = "All rows: stream, 2 s, many-to-one, RTT 200 us, reno, MTU 1500, offloads off, rate 1 Gb/s; baseline "
        assert common in " ".join(text.split()), name
        # Of the study file and the design nothing is counted here: the folder has none. The decision stands by itself.
        text = text.partition('id="decision"')[0].partition("## Decision")[0]
        assert text.count("many-to-one") == text.count("reno") == text.count("rate 1 Gb/s") == 1, name
        assert "skew 5000 ppm, shaping off" in text
    assert all("reno" not in each.values for each in made.numbers)


def test_a_treatment_that_starves_a_flow_is_told_where_it_does(found: dict[str, Any]) -> None:
    """The baseline shares least evenly in one cell, and the treatment still less evenly in another."""
    (first, second) = found["flows"][:2]
    even = {"slowest_bits_per_second": 70e6, "fastest_bits_per_second": 75e6}
    ends = {"baseline": even, "treatment": even | {"slowest_bits_per_second": 1e6}}
    starving = {**second, "arms": [arm | ends[arm["role"]] | {"rows": []} for arm in second["arms"][:2]]}
    text = contention.beside({**found, "flows": [first, starving]})
    assert text.startswith("With taildrop, the slowest of 13 flows gets 70 Mb/s ")
    assert "; with red 1 Mb/s beside 75 Mb/s (" in text
    assert text.endswith(", where red shares least evenly).")
