"""What larger aggregates give: BIG TCP alone, jumbo frames alone, both: the figures, and what is said of them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from helpers import pages

from framegauge.report.markdown import markdown
from framegauge.report.page.html import page
from framegauge.report.pictures.material import gather
from framegauge.results.journal import read
from framegauge.statistics.pairs import Row
from framegauge.study import file as study_file
from framegauge.summary import big_tcp, document
from framegauge.summary.schema import summary_schema

STUDY = """
question: Which gives more?
testbed: {kind: fake}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
  gso_size: [20000, 65536]
workloads: [{stream: {size: 10 MB}}]
blocks: 8
margins: {goodput: 2 %}
"""


def rows(mtu, aggregates, both, metric="transactions", blocks=10, noise=0.01):
    """The runs of a study whose effects are these log ratios, with an A/A control."""
    draw, found = np.random.default_rng(7), []
    effects = {(1500, 65536): 0.0, (9000, 65536): mtu, (1500, 180000): aggregates, (9000, 180000): both}
    for block in range(blocks):
        for (level, size), effect in effects.items():
            roles = ("baseline", "control") if level == 1500 else ("treatment",)
            for role in roles:
                value = 1000 * math.exp(effect + draw.normal(0, noise))
                conditions = {"gso_size_bytes": size, "rtt_seconds": 0.0}
                place = (block, size == 180000, role if role != "treatment" else "9000", role, level, "rr", conditions)
                found.append(Row(*place, {metric: value}, excluded=False))
    return found


def said(*effects, metric="transactions", **how):
    found = big_tcp.entries(rows(*effects, metric=metric, **how), [metric], "mtu")
    (line,) = big_tcp.lines({"faithful": True, "big_tcp": found})
    return line


def test_shares_of_the_gain_of_the_mtu():
    line = said(0.2, 0.1, 0.25)
    assert line.startswith("transactions: BIG TCP alone (GSO size 180000) gives 5")
    assert " of what MTU 9000 alone gives (+2" in line
    assert "; both together 12" in line
    assert line.endswith(" of it")
    # A time that falls is a gain, too, and its shares are the same.
    assert said(-0.2, -0.1, -0.25, metric="latency_p50").startswith(
        "latency p50: BIG TCP alone (GSO size 180000) gives "
    )


@pytest.mark.parametrize(
    ("effects", "line"),
    [
        ((0.2, 0.0, 0.2), "transactions: whether BIG TCP alone (GSO size 180000) gives any of what MTU 9000 alone gives ("),
        ((0.2, -0.1, 0.2), "transactions: BIG TCP alone (GSO size 180000) gives nothing of what MTU 9000 alone gives ("),
        ((0.0, 0.1, 0.1), "transactions: MTU 9000 alone makes no sure difference ("),
        ((-0.1, 0.1, 0.1), "transactions: MTU 9000 alone makes it worse ("),
    ],
)  # fmt: skip
def test_nothing_is_claimed_that_may_be_chance(effects, line):
    found = said(*effects)
    assert found.startswith(line), found
    assert "nan" not in found


def test_the_figures_are_those_of_the_runs():
    (entry,) = big_tcp.entries(rows(0.2, 0.1, 0.25, noise=1e-9), ["transactions"], "mtu")
    effects = entry["effects"]
    assert [effects[name]["ratio"] for name in ("mtu", "aggregates", "both")] == pytest.approx(
        [math.exp(each) for each in (0.2, 0.1, 0.25)], rel=1e-6
    )
    assert effects["aggregates"]["share"] == pytest.approx([0.5] * 3, abs=1e-6)
    assert effects["both"]["share"] == pytest.approx([1.25] * 3, abs=1e-6)
    assert effects["mtu"]["share"] is None
    assert (entry["mtu"], entry["gso_size_bytes"], entry["blocks"]) == ([1500, 9000], [65536, 180000], 10)


def test_it_is_the_same_where_the_size_is_the_treatment():
    """Each run with MTU and size in each other's place."""
    turned = [
        replace(
            row, cell=row.level == 9000, level=row.conditions["gso_size_bytes"],
            conditions={"mtu": row.level, "rtt_seconds": 0.0},
            arm="baseline" if row.conditions["gso_size_bytes"] == 65536 else "180000",
            role="baseline" if row.conditions["gso_size_bytes"] == 65536 else "treatment",
        )
        for row in rows(0.2, 0.1, 0.25) if row.role != "control"
    ]  # fmt: skip
    straight = [row for row in rows(0.2, 0.1, 0.25) if row.role != "control"]
    expected = big_tcp.entries(straight, ["transactions"], "mtu")
    assert big_tcp.entries(turned, ["transactions"], "gso_size_bytes") == expected


def test_no_study_without_both_factors_has_any():
    crossed = rows(0.2, 0.1, 0.25)
    assert big_tcp.entries([row for row in crossed if row.level == 1500], ["transactions"], "mtu") == []
    one_size = [row for row in crossed if row.conditions["gso_size_bytes"] == 65536]
    assert big_tcp.entries(one_size, ["transactions"], "mtu") == []
    assert big_tcp.entries([row for row in crossed if row.block < 2], ["transactions"], "mtu") == []


def test_summary_page_and_markdown_say_it(execute, tmp_path):
    execute(study_file.parse(STUDY, "x"))
    saved = read(tmp_path / "out")
    summary = json.loads(document.text(document.summarise(saved)))
    jsonschema.Draft202012Validator(summary_schema()).validate(summary)
    (line,) = big_tcp.lines(summary)
    # Sizes up to the usual one are no BIG TCP.
    assert line.startswith("goodput: whether GSO size 65536 alone gives any of what MTU 9000 alone gives (+5.")
    assert list(big_tcp.lines({**summary, "faithful": False})) == []
    assert list(big_tcp.lines({**summary, "suspect": ["a control differs"]})) == []
    material = gather(saved, summary)
    assert "What larger aggregates give" in [each.text for each in pages.check(page(material)).all("h2")]
    assert "## What larger aggregates give" in markdown(material)
