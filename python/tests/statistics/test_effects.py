"""Main effects, interactions, and the parts of a ratio, against answers that are known."""

import math

import numpy as np
import pytest

from framegauge.evidence.steady import trim
from framegauge.report import causes
from framegauge.results.journal import Run
from framegauge.statistics.effects import effects
from framegauge.statistics.judge import judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.ratio import Ratio, estimate
from framegauge.statistics.why import Arm, decompose, frame_share
from framegauge.summary import interactions, why

TRUTH = {(True, 0.0002): 1.05, (True, 0.001): 1.10, (False, 0.0002): 1.38, (False, 0.001): 1.60}
CONDITIONS = {cell: {"lro": lro, "rtt_seconds": rtt, "flows": 1} for cell, (lro, rtt) in enumerate(TRUTH)}


def logs(spread=0.002, blocks=8, seed=1):
    random = np.random.default_rng(seed)
    return {
        cell: {block: math.log(ratio) + float(random.normal(0, spread)) for block in range(blocks)}
        for cell, ratio in enumerate(TRUTH.values())
    }


def test_main_effects_and_interactions_are_those_that_were_put_in():
    found = {tuple(each.factors): each for each in effects(logs(), CONDITIONS)}
    assert set(found) == {(), ("lro",), ("rtt_seconds",), ("lro", "rtt_seconds")}
    values = list(TRUTH.values())
    assert found[()].at[0].ratio.ratio == pytest.approx(math.prod(values) ** 0.25, rel=0.002)
    on, off = found["lro",].at
    assert (on.levels, off.levels) == ({"lro": True}, {"lro": False})
    assert on.ratio.ratio == pytest.approx(math.sqrt(1.05 * 1.10), rel=0.002)
    assert off.ratio.ratio == pytest.approx(math.sqrt(1.38 * 1.60), rel=0.002)
    (contrast,) = found["lro",].contrasts
    assert contrast.ratio.low < math.sqrt(1.38 * 1.60 / (1.05 * 1.10)) < contrast.ratio.high
    (both,) = found["lro", "rtt_seconds"].contrasts
    assert both.ratio.ratio == pytest.approx(1.05 / 1.10 / 1.38 * 1.60, rel=0.004)


def test_one_factor_is_a_paired_t_test_on_block_means():
    data = logs(0.02)
    on = next(each for each in effects(data, CONDITIONS) if each.factors == ("lro",)).at[0].ratio
    means = [math.exp((data[0][block] + data[1][block]) / 2) for block in range(8)]
    expected = estimate([1.0] * 8, means)
    assert (on.ratio, on.low, on.high) == pytest.approx((expected.ratio, expected.low, expected.high))


def test_the_interval_of_an_interaction_holds_none_in_95_percent():
    held = 0
    for seed in range(400):
        equal = {cell: {block: 0.05 + value - math.log(list(TRUTH.values())[cell]) for block, value in found.items()}
                 for cell, found in logs(0.02, seed=seed).items()}  # fmt: skip
        (contrast,) = next(each for each in effects(equal, CONDITIONS) if each.factors == ("lro",)).contrasts
        held += contrast.ratio.low <= 1 <= contrast.ratio.high
    assert held / 400 == pytest.approx(0.95, abs=0.033)


def test_blocks_without_all_cells_of_a_contrast_do_not_count():
    data = logs()
    del data[0][3]
    found = {tuple(each.factors): each for each in effects(data, CONDITIONS)}
    assert (found["lro",].at[0].ratio.blocks, found["lro",].at[1].ratio.blocks) == (7, 8)


def test_the_words_say_both_levels_and_nothing_where_nothing_differs():
    rows = [
        Row(block, cell, arm, role, level, "stream", CONDITIONS[cell],
            {"goodput": math.exp(value) if role == "treatment" else 1.0}, False)
        for cell, found in logs().items() for block, value in found.items()
        for arm, role, level in (("baseline", "baseline", 1500), ("9000", "treatment", 9000))
    ]  # fmt: skip
    entries = interactions.interactions(rows, ["goodput"], "mtu")
    lines = list(interactions.sentences(entries))
    assert any("with LRO on +7." in line and "with LRO off +48." in line for line in lines)
    same = [each for each in entries if each["factors"] == ["rtt_seconds"]]
    for each in same[0]["contrasts"]:
        each["sure"] = False
    assert list(interactions.sentences(same)) == []


def test_the_parts_of_a_ratio_multiply_to_the_whole():
    whole = Ratio(1.178, 1.17, 1.186, 8, 0.01)
    before = Arm(941.482, 0.01402, 0.4, 3.5, 750_000)
    after = Arm(990.042, 0.01194, 0.5, 2.5, 130_000)
    parts = {part.name: part for part in decompose(whole, before, after)}
    assert math.prod(part.ratio for part in parts.values()) == pytest.approx(1.178)
    assert parts["header overhead"].ratio == pytest.approx(1.05158, abs=1e-5)
    assert parts["window growth"].ratio == pytest.approx(0.01402 / 0.01194 / 1.05158, abs=1e-4)
    assert "CPU" not in parts  # nobody was busy
    rest = parts["unexplained"]
    assert rest.low < rest.ratio < rest.high
    assert rest.high / rest.low == pytest.approx(1.186 / 1.17)


def test_cpu_is_a_part_only_where_it_was_the_limit_and_only_as_far_as_its_cost_goes():
    whole = Ratio(2.0, 1.9, 2.1, 8, 0.01)
    before, after = Arm(1e10, None, 0.01, 2.0, 7e5), Arm(1.05e10, None, 0.3, 1.25, 1.2e5)
    parts = {part.name: part for part in decompose(whole, before, after)}
    assert parts["CPU"].ratio == pytest.approx(1.6)
    assert parts["unexplained"].ratio == pytest.approx(2.0 / 1.05 / 1.6)
    # A dearer treatment does not explain that it is faster.
    assert "CPU" not in {part.name for part in decompose(whole, before, Arm(1.05e10, None, 0.3, 3.0, 1.2e5))}
    assert decompose(whole, Arm(), after) == []


def test_the_share_of_frames_in_the_cost_is_amdahls():
    # 1 s per GB of bytes and 2 µs per frame.
    before, after = (Arm(frames_per_gigabyte=n, cpu_seconds_per_gigabyte=1 + 2e-6 * n) for n in (7e5, 1.2e5))
    assert frame_share(before, after) == pytest.approx(1.4 / 2.4)
    assert frame_share(before, before) is None
    assert frame_share(before, Arm()) is None


def test_the_summary_has_the_parts_of_every_treatment(study, execute):
    _, runs = execute(study)
    rows = [
        Row(run.block, run.cell, run.arm, run.role, run.level, run.workload, run.conditions, run.metrics, False)
        for run in runs
    ]
    (entry,) = why.why(runs, judge(rows, {"goodput": 0.01}), "mtu")
    assert math.prod(part["ratio"] for part in entry["parts"]) == pytest.approx(entry["ratio"])
    assert entry["baseline"]["mtu"] == 1500
    assert isinstance(runs[0], Run)


def test_a_beginning_and_an_end_are_trimmed_and_a_steady_series_is_not():
    random = np.random.default_rng(1)
    steady = 1 + random.normal(0, 0.02, 200)
    begin, end = trim([*np.linspace(0, 0.9, 30), *steady, *np.linspace(0.9, 0.1, 20)])
    assert 20 <= begin <= 40
    assert 220 <= end <= 240
    begin, end = trim(list(steady))
    assert begin <= 100
    assert end >= 150
    assert trim([1.0, 2.0, 3.0]) == (0, 3)


def test_levels_come_in_the_order_of_the_study_whatever_ran_first():
    data = logs()
    turned = {cell: CONDITIONS[cell] for cell in reversed(CONDITIONS)}
    for one, other in zip(effects(data, CONDITIONS), effects(data, turned), strict=True):
        assert [dict(each.levels) for each in one.at] == [dict(each.levels) for each in other.at]


def entry(**parts):
    """An entry of a summary's `why`, with parts as ratios."""
    return {
        "workload": "stream",
        "conditions": {"size_bytes": 1_000_000, "rtt_seconds": 1.2e-3},
        "baseline": {"mtu": 1500},
        "treatment": {"mtu": 9000},
        "measured": {side: {"frames_per_gigabyte": frames} for side, frames in (("baseline", 691e3), ("treatment", 112e3))},
        "ratio": math.prod(parts.values()),
        "parts": [
            {"name": name.replace("_", " "), "ratio": ratio, "ci95": [0.99, 1.01], "evidence": "may be nothing"}
            for name, ratio in parts.items()
        ],
        "cpu_share_of_frames": 0.424,
    }  # fmt: skip


def test_the_words_of_a_cause_add_up_and_leave_out_what_is_nothing():
    near = {"workload": "stream", "conditions": {"size_bytes": 1_000_000, "rtt_seconds": 2e-4}}
    summary = {
        "why": [entry(header_overhead=1.0516, window_growth=1.117, unexplained=1.002)],
        "verdicts": [near, entry()],
    }
    assert causes.lines(summary) == [
        "RTT 1.2 ms: +17.7 % = header overhead +5.2 %, window growth +11.7 %, "
        "unexplained +0.2 % (may be nothing); 42 % of the CPU cost is due to the number of frames"
    ]
    [row] = causes.rows(summary)
    assert dict(zip(causes.head(summary), row, strict=True))["frames per GB"] == "691,000 → 112,000"
    summary = {"why": [entry(header_overhead=1.0516, window_growth=1.0001, unexplained=0.9)], "verdicts": [near]}
    assert "window growth" not in causes.lines(summary)[0]
    assert "unexplained \u221210.0 %" in causes.lines(summary)[0]
    assert causes.lines({}) == []
