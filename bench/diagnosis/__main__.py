"""Stages every scene with known truth, diagnoses the captures, and says how often the diagnosis is right.

    .venv/bin/python -m bench.diagnosis [--variants 20] [--kind KIND] [--write docs/measured/diagnosis.md]

Needs root, for network namespaces. What was staged is kept in --folder: an interrupted call goes on there, and another
one with a mended diagnosis reads the same captures again. Variants are seeded by their scene and number.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.common import say
from bench.diagnosis import page, scoring
from bench.diagnosis.judging import Sample, judge
from bench.diagnosis.staging import SCENES, Staged, stage, truth

from framegauge.agents.binary import find_agent

FOLDER = Path("results/diagnosis-scenes")


def main() -> None:
    options = _parser().parse_args()
    kinds = [kind for kind in options.kind.split(",") if kind]
    chosen = [scene for scene in SCENES if not kinds or scene.kind in kinds or scene.name in kinds]
    numbers = range(options.first, options.first + options.variants)
    wanted = [(scene, number) for number in numbers for scene in chosen]
    say(f"{len(wanted)} variants of {len(chosen)} scenes, {numbers[0]} to {numbers[-1]}, kept in {options.folder}")
    staged = stage(wanted, options.folder, options.workers, say)
    if len(staged) < len(wanted):
        say(f"{len(wanted) - len(staged)} variants could not be staged")
    judged = diagnose(staged)
    samples = page.of_own(judged)
    for sample in (sample for *_, some in judged for sample in some):
        if options.details and (sample.missed or sample.wrong):
            say(
                f"{sample.scene} {sample.number} {sample.tap}: missed {', '.join(sorted(sample.missed)) or 'nothing'}, "
                f"wrong {', '.join(sorted(sample.wrong)) or 'nothing'}"
            )
    text = page.written(judged, f"--variants {options.variants} --first {options.first}")
    if options.write:
        options.write.write_text(text)
    else:
        print(text)
    table = scoring.scores(samples)
    warnings, flows = scoring.false_warnings(samples)
    say(f"macro-F1 {scoring.macro_f1(table):.3f}; {warnings} false warnings in {flows} clean flows")


Judged = tuple[Staged, Any, Sequence[dict[str, Any]], list[Sample]]


def diagnose(staged: Sequence[Staged]) -> list[Judged]:
    """The taps of each capture, and how they were judged."""
    agent = find_agent()

    def one(each: Staged) -> Judged:
        scene, number, capture = each
        command = [agent, "diagnose", "--thresholds", "{}", str(capture)]
        answer = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        taps = json.loads(answer)["taps"]
        ran, _ = truth(capture)
        return each, ran, taps, judge(scene, scene.variant(number), ran, taps)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, staged))


def _parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole.add_argument("--variants", type=int, default=20, help="how many of each scene")
    whole.add_argument("--first", type=int, default=1, help="the number of the first")
    whole.add_argument("--kind", default="", help="kinds or names of scenes, with commas; all of them")
    whole.add_argument("--folder", type=Path, default=FOLDER, help="where captures and truths are kept")
    whole.add_argument("--workers", type=int, default=4, help="how many are staged at once")
    whole.add_argument("--write", type=Path, help="write the page here, instead of printing it")
    whole.add_argument("--details", action="store_true", help="name each sample that was judged wrong")
    return whole


if __name__ == "__main__":
    main()
