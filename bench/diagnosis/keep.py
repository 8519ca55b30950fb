"""Makes the small captures that the fast tests read: one variant of each scene, headers only, with what is true of it.

    .venv/bin/python -m bench.diagnosis.keep [--folder python/tests/recorded/diagnosis]

Needs root. A capture is small because the scene's smallest of some variants is kept, and its payload is cut off.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from bench.common import say
from bench.diagnosis.__main__ import diagnose
from bench.diagnosis.judging import Sample
from bench.diagnosis.scenes import SCENES
from bench.diagnosis.staging import stage

KEPT = Path("python/tests/recorded/diagnosis")
VARIANTS = 8
# A larger one is not worth its place.
MOST_BYTES = 24_000


def main() -> None:
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole.add_argument("--folder", type=Path, default=KEPT)
    folder = whole.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as staging:
        wanted = [(scene, number) for scene in SCENES for number in range(1, VARIANTS + 1)]
        staged = stage(wanted, Path(staging), 4, say)
        truths = {}
        for scene in SCENES:
            some = sorted((each for each in staged if each[0] is scene), key=lambda each: each[2].stat().st_size)
            if not some or some[0][2].stat().st_size > MOST_BYTES:
                say(f"{scene.name}: no small one")
                continue
            ((_, _, _, samples),) = diagnose(some[:1])
            capture = some[0][2]
            (folder / capture.name).write_bytes(capture.read_bytes())
            truths[capture.name] = {sample.tap: _told(sample) for sample in samples}
    (folder / "truths.json").write_text(json.dumps(truths, indent=1, sort_keys=True) + "\n")


def _told(sample: Sample) -> dict[str, list[str]]:
    return {"must": sorted(sample.must), "may": sorted(sample.may - sample.must)}


if __name__ == "__main__":
    main()
