"""`framegauge.simulate`: a simulated study as a table of its runs, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from framegauge import temporary
from framegauge.errors import InputError
from framegauge.experiment.simulated import engines, plan
from framegauge.experiment.simulated.pool import Pool
from framegauge.files import yaml as yaml_file
from framegauge.results.journal import Journal
from framegauge.results.tables import write_tables
from framegauge.study import file as study_file
from framegauge.study.sweep import Source, axes, points, simulated
from framegauge.summary import judging

if TYPE_CHECKING:
    import polars

__all__ = ["simulate"]


def simulate(
    study: str | Path | Mapping[str, Any],
    *,
    seeds: int | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    engine: str = "local",
    jobs: int | None = None,
) -> polars.DataFrame:
    """The runs of a study in virtual time, one row per run, with the columns of runs.parquet.

    `study` is the path of a study file, or what is in one. `seeds` is the number of blocks, `sweep` the values of keys
    of the file, as for `framegauge simulate`, and so are `engine` and `jobs`. InputError, in one line, for what cannot
    be simulated, and without Polars.
    """
    try:
        import polars
    except ImportError:
        raise InputError("simulate: found no polars, expected it: pip install polars") from None
    if seeds is not None and seeds < 2:
        raise InputError(f"simulate: found {seeds} seeds, expected 2 or more")
    if isinstance(study, Mapping):
        source = Source(yaml.safe_dump(dict(study), sort_keys=False), "study", seeds)
    else:
        source = Source(yaml_file.read(study, "a study file"), str(study), seeds)
    base, _ = simulated(source)
    grid = points(source, axes([f"{key}={','.join(map(_text, values))}" for key, values in (sweep or {}).items()]))
    stop = {"planned_blocks": base.blocks, "stop": base.stop}
    document = {
        "question": base.question,
        "scope": "simulated",
        "treatment": base.treatment,
        "margins": base.margin(),
        **stop,
    }
    with temporary.folder() as folder, engines.opened(engine, jobs) as opened:
        with Journal.create(folder / "out", study_file.dump(base), document) as journal:
            settled = partial(judging.is_settled, document)
            pool = Pool(plan.blocks(grid), journal, opened.simulate, opened.jobs, stop=opened.stop, settled=settled)
            if pool.run(base.stop == "settled").interrupted:
                raise KeyboardInterrupt
            write_tables(journal)
        return polars.read_parquet(folder / "out/runs.parquet")


def _text(value: Any) -> str:
    """A value as it is written in a file."""
    return (
        value
        if isinstance(value, str)
        else yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
    )
