"""A study at another link rate, for machines that do not carry its own."""

from __future__ import annotations

from framegauge.study.model import Study
from framegauge.study.workloads import Workload

__all__ = ["LARGE_BYTES", "at_rate"]

LARGE_BYTES = 10_000_000  # from here on a transfer is so long that its goodput does not depend on its size


def at_rate(study: Study, bits_per_second: int) -> Study:
    """The study with all links at that rate, and large transfers that take as long as before.

    Small ones keep their size: they would become so few frames that the last one, which is not full, matters. RTTs stay
    as well, since they are what the study asks about.
    """
    link, before = study.testbed.link, study.testbed.link.rate
    if before is None or before == bits_per_second:
        return study
    bed = study.testbed.model_copy(update={"link": link.model_copy(update={"rate": bits_per_second})})
    share = bits_per_second / before
    workloads = [_scaled(workload, share) for workload in study.workloads]
    return study.model_copy(update={"testbed": bed, "workloads": workloads})


def _scaled(workload: Workload, share: float) -> Workload:
    parameters = workload.parameters
    sizes = getattr(parameters, "size", None)
    if not isinstance(sizes, list) or not any(size >= LARGE_BYTES for size in sizes):
        return workload
    scaled = [round(size * share) if size >= LARGE_BYTES else size for size in sizes]
    return workload.model_copy(update={parameters.key: parameters.model_copy(update={"size": scaled})})
