"""TCP Outcast, published and run again: on the rack with real kernels, and in the simulator.

    sudo .venv/bin/python -m bench.outcast [--only fat-tree] [--engine simulate] [--write docs/measured/outcast.md]

Runs the study files of published/outcast-2014 by `framegauge study` and `framegauge simulate`. Results stay in
results/outcast/: what is there is not run again, and what was interrupted is resumed. The rack needs root and a quiet
machine, and takes an hour and a half, of which the study of MapReduce, which needs Java and `framegauge apps fetch
hadoop`, is a third; simulations take about ten minutes. Those with DCTCP of a kernel run in the emulated machine,
whose clock no other load disturbs; bench/cost/machine/build names the packages that it needs.
"""

from __future__ import annotations

from bench.kept import COLUMNS, ENGINES, Kept, asked, named, put
from bench.outcast import details, mapreduce, page
from bench.outcast.figures import Figures
from bench.outcast.rows import ROWS

from framegauge.shipped import places

# What the few get varies from seed to seed. Simulated endpoints have no MPTCP, and no captures of their own, and
# simulated hosts run no Hadoop.
KEPT = Kept(
    "outcast", places.published() / "outcast-2014", 30, delay=page.DELAY,
    rack_only=["mptcp", "captured", "mapreduce", "mapreduce-slow"],
    counterparts=["shuffle", "shuffle-slow", "shuffle-all"], in_machine=["dctcp-kernel", "dctcp-jitter"],
)  # fmt: skip


def main() -> None:
    options = asked(__doc__ or "")
    if not options.read:
        KEPT.run(options)
    names = {study.stem for study in KEPT.studies(options.only)}
    asked_for = {row.of(engine) for row in ROWS if row.study in names for engine in ENGINES}
    known = {(name, engine): Figures(KEPT.results(name, engine)) for name in asked_for for engine in ENGINES}
    found = [
        page.Answer(row, *(known[row.of(engine), engine].of(row) for engine in COLUMNS.values()))
        for row in ROWS
        if row.study in names
    ]
    states = {name: page.two_states(KEPT.results("two-state", engine)) for name, engine in COLUMNS.items()}
    text = page.page(found, states)
    counted = page.details(details.course(KEPT), details.drops(KEPT), details.marks(KEPT))
    text += "\n".join(["", *mapreduce.section(KEPT), *counted])
    text += "\n".join(["", page.CAPTURED, *named(KEPT.results("captured", "study"), "outcast", "share_of_few"), ""])
    put(text, options)


if __name__ == "__main__":
    main()
