"""Why a run failed: an error, which another attempt may not meet, or what the study found."""

from __future__ import annotations

import pyarrow as pa

from framegauge.agents.spools import MOST_BYTES
from framegauge.errors import AgentError, AgentTimeout, FramegaugeError, ProgramFailure
from framegauge.evidence.unanswered import failed, giants
from framegauge.files.tables import Unfit, table
from framegauge.printable import one_line
from framegauge.results.runs import DOES_NOT_WORK
from framegauge.testbeds.base import Json, Testbed

__all__ = ["BEFORE", "giants_so_far", "reason"]

BEFORE = "giants_before"  # of a record: what ports had dropped for its size when the run began


def reason(bed: Testbed, record: Json, error: FramegaugeError) -> str:
    """The reason why a run does not count: that its workload does not work, if ports dropped frames for their size
    meanwhile, or the error."""
    message = one_line(error)
    if isinstance(error, AgentError | AgentTimeout | ProgramFailure):
        is_late = isinstance(error, AgentTimeout)
        text = f"the workload had not ended when its time was over ({message})" if is_late else message
        after = giants_so_far(bed)
        drops = _drops(bed, record) if after else None
        if (why := failed(record, text, record.get(BEFORE, {}), after, drops)) is not None:
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


def giants_so_far(bed: Testbed) -> dict[str, int]:
    """The frames that ports have dropped for their size since they are there; none where that cannot be read any
    more."""
    try:
        return giants(bed.ports())
    except FramegaugeError:
        return {}
