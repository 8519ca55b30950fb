"""Are the statistics as good as they say? Synthetic studies with a known truth, judged as real ones are.

    .venv/bin/python -m bench.truth.calibration [--studies N] [--write docs/measured/calibration.md]

Noise is drawn from formulas (normal, drifting, correlated in time, heavy tails, bursts) and resampled from what real
studies on the rack showed (bench/truth/noise.json: log values of three arms about their means, in the order of
their blocks;
four blocks in a row are taken together, so that what follows one another still does, and the arms are swapped at
random).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.common import save, say

from framegauge.statistics.judge import is_settled, judge
from framegauge.statistics.pairs import Row
from framegauge.statistics.ratio import estimate, quantile
from framegauge.statistics.sequential import StoppingRule, looks
from framegauge.statistics.verdict import SETTLED, Verdict, decide

NOISE = Path(__file__).resolve().parent / "noise.json"
SPREAD = 0.01  # of one run's log value, where a formula gives the noise
ARMS = 3  # baseline, treatment, control
MORE = 5  # times as many studies where only one interval is asked for
RUN_LENGTH = 4  # blocks in a row that are resampled together
Draw = Callable[[np.random.Generator, int], np.ndarray]  # → log values: blocks x ARMS


def normal(random: np.random.Generator, blocks: int) -> np.ndarray:
    """Independent."""
    return random.normal(0, SPREAD, (blocks, ARMS))


def drifting(random: np.random.Generator, blocks: int) -> np.ndarray:
    """The machine gets slower by 20 spreads from beginning to end, and wanders; the order within a block is random."""
    times = np.arange(ARMS * blocks)
    way = 20 * SPREAD * times / len(times) + np.cumsum(random.normal(0, SPREAD / 2, len(times)))
    return random.permuted((way + random.normal(0, SPREAD, len(times))).reshape(blocks, ARMS), axis=1)


def correlated(random: np.random.Generator, blocks: int) -> np.ndarray:
    """Each run resembles the one before: autoregression with 0.7."""
    shocks = random.normal(0, SPREAD, ARMS * blocks)
    way = np.zeros(ARMS * blocks)
    for time in range(ARMS * blocks):
        way[time] = 0.7 * way[time - 1] + shocks[time] if time else shocks[0] / math.sqrt(1 - 0.49)
    return random.permuted(way.reshape(blocks, ARMS), axis=1)


def heavy(random: np.random.Generator, blocks: int) -> np.ndarray:
    """Student's t with 3 degrees of freedom."""
    return SPREAD * random.standard_t(3, (blocks, ARMS))


def bursts(random: np.random.Generator, blocks: int) -> np.ndarray:
    """One run in ten is disturbed, always to the same side."""
    hit = random.random((blocks, ARMS)) < 0.1
    return random.normal(0, SPREAD, (blocks, ARMS)) + hit * random.exponential(5 * SPREAD, (blocks, ARMS))


def resampled(series: Sequence[Sequence[Sequence[float]]]) -> Draw:
    """From real studies: each a list of blocks, each block the log values of the arms."""
    real = [np.asarray(each, dtype=float) for each in series]

    def draw(random: np.random.Generator, blocks: int) -> np.ndarray:
        source = real[random.integers(len(real))]
        pieces = []
        while sum(map(len, pieces)) < blocks:
            start = int(random.integers(len(source) - RUN_LENGTH + 1))
            pieces.append(source[start : start + RUN_LENGTH])
        return random.permuted(np.concatenate(pieces)[:blocks], axis=1)

    return draw


def noises() -> dict[str, Draw]:
    """By name: the formulas, and one for each metric of the real studies."""
    found: dict[str, Draw] = {
        "normal": normal, "drifting": drifting, "correlated": correlated, "heavy tails": heavy, "bursts": bursts,
    }  # fmt: skip
    for metric, series in json.loads(NOISE.read_text())["series"].items():
        found[f"rack: {metric.replace('_', ' ')}"] = resampled(series)
    return found


def spread_of(draw: Draw) -> float:
    """Robust standard deviation of the log ratio of a block."""
    logs = draw(np.random.default_rng(1), 4000)
    return float(1.4826 * np.median(np.abs(logs[:, 1] - logs[:, 0])))


@dataclass(frozen=True)
class Stopped:
    """A study of one comparison that stopped by itself."""

    blocks: int
    low: float
    high: float
    verdict: Verdict


def stop(logs: np.ndarray, effect: float, margin: float, planned: int) -> Stopped:
    """Look after every block, as the runner does."""
    rule = StoppingRule(planned)
    for blocks in looks(planned):
        before, after = np.exp(logs[:blocks, 0]), effect * np.exp(logs[:blocks, 1])
        found = estimate(before.tolist(), after.tolist(), rule.nominal(0.05, blocks))
        verdict = decide(found, margin, True)
        if verdict in SETTLED or blocks == planned:
            assert found.low is not None
            assert found.high is not None
            return Stopped(blocks, found.low, found.high, verdict)
    raise AssertionError("the last look is the planned end")


def fixed_coverage(draw: Draw, blocks: int, studies: int, seed: int = 1) -> float:
    """How often the 95 % interval of so many blocks holds the truth."""
    random, truth, held = np.random.default_rng(seed), 1.05, 0
    for _ in range(studies):
        logs = draw(random, blocks)
        found = estimate(np.exp(logs[:, 0]).tolist(), (truth * np.exp(logs[:, 1])).tolist())
        held += found.low <= truth <= found.high  # type: ignore[operator]
    return held / studies


def stopped(draw: Draw, effect: float, margin: float, planned: int, studies: int, seed: int = 2) -> list[Stopped]:
    """Studies of one comparison, each with its own noise."""
    random = np.random.default_rng(seed)
    return [stop(draw(random, planned), effect, margin, planned) for _ in range(studies)]


def false_claims(draw: Draw, planned: int, studies: int, cells: int = 4, seed: int = 3) -> float:
    """Of studies of equal arms with a control, in so many cells: the share that call anything better or worse."""
    random, rule, wrong = np.random.default_rng(seed), StoppingRule(planned), 0
    margin = {"goodput": spread_of(draw) / 10}  # so small that equality is out of reach, and a claim always near
    for _ in range(studies):
        everything = list(_rows([draw(random, planned) for _ in range(cells)]))
        for blocks in looks(planned):
            found = judge([row for row in everything if row.block < blocks], margin, rule, explain=False)
            if is_settled(found) or blocks == planned:
                wrong += any(each.verdict in (Verdict.BETTER, Verdict.WORSE, Verdict.SUSPECT) for each in found)
                break
    return wrong / studies


def _rows(drawn: Sequence[np.ndarray]) -> Iterator[Row]:
    for cell, logs in enumerate(drawn):
        for place, (arm, role) in enumerate((("baseline",) * 2, ("9000", "treatment"), ("control",) * 2)):
            for block, value in enumerate(logs[:, place]):
                yield Row(block, cell, arm, role, 0, "stream", {}, {"goodput": float(np.exp(value))}, False)


def measure(name: str, draw: Draw, studies: int) -> dict[str, Any]:
    """Everything of one kind of noise."""
    spread = spread_of(draw)
    margin = 1.5 * spread
    few = max(50, studies // 10)
    none = stopped(draw, 1.0, margin, 30, studies)
    large = stopped(draw, 1 + 3 * margin, margin, 30, studies)
    edge = stopped(draw, 1 + margin, margin, 30, studies)
    row = {
        "noise": name,
        "spread": spread,
        "coverage": {str(blocks): fixed_coverage(draw, blocks, MORE * studies) for blocks in (12, 20)},
        "coverage_when_stopped": {
            "no effect": _held(none, 1.0),
            "large effect": _held(large, 1 + 3 * margin),
            "effect = margin": _held(edge, 1 + margin),
        },
        "blocks_when_stopped": {
            "no effect": _median(none),
            "large effect": _median(large),
            "effect = margin": _median(edge),
        },
        "width_over_fixed": _wider(none, spread),
        "equivalence_error": sum(each.verdict is Verdict.NO_PRACTICAL_DIFFERENCE for each in edge) / studies,
        "false_claims": {str(planned): false_claims(draw, planned, few) for planned in (8, 20)},
        "studies": studies,
        "studies_of_false_claims": few,
    }  # fmt: skip
    say(f"{name}: {json.dumps(row)}")
    return row


def _held(found: Sequence[Stopped], truth: float) -> float:
    return sum(each.low <= truth <= each.high for each in found) / len(found)


def _median(found: Sequence[Stopped]) -> float:
    return statistics.median(each.blocks for each in found)


def _wider(found: Sequence[Stopped], spread: float) -> float:
    """Median width of the intervals over that of Student's t after as many blocks fixed beforehand."""

    def fixed(blocks: int) -> float:
        return 2 * quantile(blocks - 1) * spread / math.sqrt(blocks)

    return statistics.median(math.log(each.high / each.low) / fixed(each.blocks) for each in found)


def power(studies: int) -> list[dict[str, Any]]:
    """How often an effect, in margins, comes out better, of normal noise with a spread of as much as the margin."""
    rows = []
    margin = math.sqrt(2) * SPREAD
    for planned in (6, 8, 12, 20, 30):
        row: dict[str, Any] = {"blocks": planned}
        for times in (0.0, 1.0, 1.5, 2.0, 3.0):
            found = stopped(normal, 1 + times * margin, margin, planned, studies)
            row[f"{times:g} margins"] = {
                "better": sum(each.verdict is Verdict.BETTER for each in found) / studies,
                "equal": sum(each.verdict is Verdict.NO_PRACTICAL_DIFFERENCE for each in found) / studies,
                "blocks": _median(found),
            }
        rows.append(row)
    return rows


def page(rows: Sequence[Mapping[str, Any]], table: Sequence[Mapping[str, Any]], studies: int) -> str:
    """The committed summary."""
    lines = [
        "# Calibration",
        "",
        f"Written by `python -m bench.truth.calibration --studies {studies} --write docs/measured/calibration.md`.",
        "Synthetic studies whose truth is known are judged by the same code as real ones.",
        "[statistics.md](../why/statistics.md) has what the columns must show.",
        "",
        "- **Coverage**: the share of 95 % intervals that contain the truth, after 12 and 20 blocks fixed",
        "  beforehand, and for studies of at most 30 blocks that stopped by themselves (no effect, a large one,",
        "  one as large as the margin).",
        "- **Width**: relative to an interval after equally many blocks fixed beforehand.",
        "- **Equality**: how often an effect as large as the margin is called no practical difference.",
        "- **False claims**: the share of studies of four cells of equal arms with controls, at most 8 and 20",
        "  blocks, that call anything better or worse, or are suspect.",
        "",
        "| noise | coverage, fixed | coverage, stopped | width | equality | false claims |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        fixed, stopped_ = row["coverage"], row["coverage_when_stopped"]
        lines.append(
            f"| {row['noise']} | {fixed['12']:.1%}, {fixed['20']:.1%} | "
            + ", ".join(f"{value:.1%}" for value in stopped_.values())
            + f" | {row['width_over_fixed']:.2f} | {row['equivalence_error']:.1%} | "
            + ", ".join(f"{value:.1%}" for value in row["false_claims"].values())
            + " |"
        )
    lines += [
        "",
        "Power: how often an effect of this many margins comes out *better* (in brackets *no practical",
        "difference*, and the median number of blocks), for one comparison and normal noise whose log ratios",
        "spread as much as the margin.",
        "",
        "| at most | " + " | ".join(name for name in table[0] if name != "blocks") + " |",
        "| --- |" + " --- |" * (len(table[0]) - 1),
    ]
    for row in table:
        cells = (
            f"{each['better']:.0%} ({each['equal']:.0%}; {each['blocks']:g})"
            for name, each in row.items() if name != "blocks"
        )  # fmt: skip
        lines.append(f"| {row['blocks']} blocks | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=4000, help="of each kind (default 4000)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the summary as Markdown")
    options = parser.parse_args()
    rows = [measure(name, draw, options.studies) for name, draw in noises().items()]
    table = power(options.studies)
    text = page(rows, table, options.studies)
    print(text)  # noqa: T201 (its output is its purpose)
    if options.write:
        options.write.write_text(text)
    say(f"figures: {save('bench-calibration', {'noises': rows, 'power': table})}")


if __name__ == "__main__":
    main()
