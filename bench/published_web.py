"""What the published study found of its web site, and the page's part on it: CPU time by component."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.report.pictures import arms, web
from framegauge.results.journal import Saved

__all__ = ["CPU", "lines"]

# CPU time in percent: mean, largest and smallest, at MTU 1500 and with jumbo frames; of quad-core servers.
CPU: Mapping[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "balancer": ((8, 14, 4), (7, 11, 4)),
    "web-1": ((28, 49, 12), (27, 44, 11)),
    "web-2": ((28, 48, 12), (27, 45, 11)),
    "database": ((2, 6, 1), (2, 6, 0.5)),
    "memcached": ((1, 3.5, 0), (1, 2.5, 0)),
    "files": ((0.75, 4, 0), (0.5, 3, 0)),
}
LEVELS = (1500, 9000)


def lines(studies: Sequence[Saved]) -> Iterator[str]:
    """The section on CPU time; nothing without a study of the web site that varies the MTU."""
    found = next((cpu for each in studies if each.plan["treatment"] == "mtu" and (cpu := _ours(each))), None)
    if found is None:
        return
    yield from (
        "## The web site: CPU time by component",
        "",
        "Nagle off; mean / largest / smallest in a second. Published: in percent of a server of its own with four",
        "cores, at 150 to 350 users who think for 5 s. Ours: in percent of one CPU, at 20 users who think for 1 s, on",
        "one machine that carries all components and the network: only changes from MTU to MTU can be compared.",
        "",
        "| component | published, 1500 | published, jumbo | ours, MTU 1500 | ours, MTU 9000 |",
        "| --- | --- | --- | --- | --- |",
    )
    for name, published in CPU.items():
        ours = [_told(shares) if (shares := found.get((name, mtu))) else "not measured" for mtu in LEVELS]
        yield f"| {name} | {' | '.join((*map(_told, published), *ours))} |"
    yield ""


def _ours(saved: Saved) -> dict[tuple[str, int], tuple[float, ...]]:
    """By component and MTU: the median of the means of runs, and the largest and smallest second of any, in percent."""
    off = {run.cell for run in saved.runs if not run.conditions.get("nagle")}
    levels = {run.arm: run.level for run in saved.runs}
    shares: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for cell, by_arm in web.sites(saved, arms.looks(saved.plan, saved.runs)).items():
        for arm, sites in by_arm.items() if cell in off else ():
            for component, share in ((name, each) for site in sites for name, each in site.get("cpu", {}).items()):
                shares.setdefault((component, levels[arm]), []).append(share)
    return {
        key: tuple(
            100 * each
            for each in (
                statistics.median(one["mean"] for one in found),
                max(one["most"] for one in found),
                min(one["least"] for one in found),
            )
        )
        for key, found in shares.items()
    }


def _told(shares: Sequence[float]) -> str:
    return " / ".join(f"{each:.3g}" for each in shares)
