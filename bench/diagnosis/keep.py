"""Keeps the small captures that the fast tests read: one variant of each scene, headers only, with what is true of it.

    .venv/bin/python -m bench.diagnosis.keep [--folder python/tests/recorded/diagnosis] [--staged FOLDER --first N]

Needs root, unless the variants were staged before. Of each scene the smallest capture is kept of those that are
diagnosed right: it is there so that they stay right. How often a diagnosis is right is in docs/measured/diagnosis.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.common import say
from bench.diagnosis.__main__ import Judged, diagnose
from bench.diagnosis.scenes import OWN
from bench.diagnosis.staging import stage

KEPT = Path("python/tests/recorded/diagnosis")
VARIANTS = 6
# A larger one is not worth its place.
MOST_BYTES = 24_000


def main() -> None:
    """Stage what is missing, and keep."""
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole.add_argument("--folder", type=Path, default=KEPT)
    whole.add_argument("--staged", type=Path, help="where variants were staged before")
    whole.add_argument("--first", type=int, default=1, help="the number of the first variant")
    options = whole.parse_args()
    with tempfile.TemporaryDirectory() as empty:
        numbers = range(options.first, options.first + VARIANTS)
        wanted = [(scene, number) for scene in OWN for number in numbers]
        staged = stage(wanted, options.staged or Path(empty), 2, say)
        _keep(diagnose(staged), options.folder)


def _keep(judged: Iterable[Judged], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    truths: dict[str, dict[str, dict[str, list[str]]]] = {}
    right = [each for each in judged if not any(sample.missed or sample.wrong for sample in each[3])]
    for scene in OWN:
        some = [each for each in right if each[0][0] is scene]
        smallest = min(some, key=lambda each: each[0][2].stat().st_size, default=None)
        if smallest is None or smallest[0][2].stat().st_size > MOST_BYTES:
            say(f"{scene.name}: no small one that is diagnosed right")
            continue
        (_, _, capture), _, taps, samples = smallest
        (folder / capture.name).write_bytes(capture.read_bytes())
        found = {tap["interface"]: sorted({each["kind"] for each in tap["findings"]}) for tap in taps}
        truths[capture.name] = {
            sample.tap: {"provoked": sorted(sample.must), "found": found[sample.tap]} for sample in samples
        }
    (folder / "truths.json").write_text(json.dumps(truths, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
