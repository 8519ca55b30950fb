"""Why a run failed: an error, which another attempt may not meet, or what the study found."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from framegauge.agents.spools import MOST_BYTES
from framegauge.errors import AgentError, AgentTimeout, FramegaugeError, ProgramFailure
from framegauge.evidence.unanswered import failed, since
from framegauge.files.tables import Unfit, table
from framegauge.printable import one_line
from framegauge.results.runs import DOES_NOT_WORK
from framegauge.testbeds.base import Json, Testbed

__all__ = ["BEFORE", "ports_so_far", "reason"]

BEFORE = "ports_before"  # of a record: the counters of ports when the run began


def reason(bed: Testbed, record: Json, error: FramegaugeError) -> str:
    """The reason why a run does not count: that its workload does not work, if ports dropped frames for their size
    meanwhile, or all that came to them, or the error."""
    message = one_line(error)
    if isinstance(error, AgentError | AgentTimeout | ProgramFailure):
        is_late = isinstance(error, AgentTimeout)
        text = f"the workload had not ended when its time was over ({message})" if is_late else message
        ports = since(record.get(BEFORE, ()), ports_so_far(bed))
        if (why := failed(record, text, ports, lambda: _drops(bed, record))) is not None:
            return f"{DOES_NOT_WORK}{why}"
    return f"error: {message}"


def _drops(bed: Testbed, record: Json) -> pa.Table | None:
    """What the fabric has dropped since the measurement began, one by one; None before it, or where that cannot be read
    any more."""
    if "begun_seconds" not in record:
        return None
    try:
        fabric = (record["measure"] if "measure" in record else bed.end())["fabric"]
        if fabric is None or fabric.get("drops") is None:
            return None
        return table(bed.fetch(fabric["drops"]), MOST_BYTES)
    except (FramegaugeError, Unfit):
        return None


def ports_so_far(bed: Testbed) -> Sequence[Json]:
    """The counters of ports since they are there; none where they cannot be read any more."""
    try:
        return bed.ports()
    except FramegaugeError:
        return ()
