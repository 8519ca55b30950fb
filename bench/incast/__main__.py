"""Incast, published and run again: one client reads from many servers at once, on the rack and in the simulator.

    sudo .venv/bin/python -m bench.incast [--only rto] [--engine simulate] [--write docs/measured/incast.md]

Runs the study files of this folder by `framegauge study` and `framegauge simulate`. Results stay in results/incast/:
what is there is not run again, and what was interrupted is resumed. The rack needs root and a quiet machine, and takes
about twenty minutes; simulations take ten.
"""

from __future__ import annotations

from pathlib import Path

from bench.incast import page
from bench.kept import COLUMNS, Kept, asked, named, put

KEPT = Kept("incast", Path(__file__).resolve().parent, 10, rack_only=["captured"], delay="150 us")


def main() -> None:
    options = asked(__doc__ or "")
    if not options.read:
        KEPT.run(options)
    tables = {
        study: {name: page.goodputs(KEPT.results(study.stem, engine)) for name, engine in COLUMNS.items()}
        for study in KEPT.studies(options.only)
        if study.stem != "captured"
    }
    text = page.page(tables)
    text += "\n".join(["", page.CAPTURED, *named(KEPT.results("captured", "study"), "incast", "goodput"), ""])
    put(text, options)


if __name__ == "__main__":
    main()
