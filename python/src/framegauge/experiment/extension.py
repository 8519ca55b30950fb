"""A study that goes on beyond its planned end: what it was planned for before, and what going on costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.errors import InputError
from framegauge.results.journal import Saved
from framegauge.statistics.ratio import ALPHA
from framegauge.study.model import Study
from framegauge.summary import judging, units

__all__ = ["as_extended", "cost", "extend", "planned_before"]


def planned_before(plan: Mapping[str, Any]) -> list[int]:
    """The numbers of blocks that a study was planned for before it was extended, in order."""
    return list(plan.get("extended_from", ()))


def as_extended(study: Study, plan: Mapping[str, Any]) -> Study:
    """The study of a folder with the number of blocks that it has now; its file has that of the beginning."""
    return study.model_copy(update={"blocks": plan["planned_blocks"]}) if planned_before(plan) else study


def extend(study: Study, saved: Saved, more: int) -> tuple[Study, list[int]]:
    """The study with so many blocks more than it has, or was planned for; and what it was planned for before.

    InputError if it could end by itself and did, since then nothing is left to decide.
    """
    blocks = max((run.block + 1 for run in saved.runs), default=0)
    if study.stop == "settled" and judging.is_settled(saved.plan, blocks, saved.runs):
        raise InputError(
            f"{saved.folder}: found a study that has decided everything, expected an open question: more blocks would "
            f"only make a wrong verdict likelier"
        )
    before = [*planned_before(saved.plan), study.blocks]
    return study.model_copy(update={"blocks": max(blocks, study.blocks) + more}), before


def cost(plan: Mapping[str, Any], saved: Saved) -> str:
    """What the extension of this plan costs, in words; `saved` is what there is so far."""
    treated = sum(
        comparison.role != "control" and comparison.judged is not None for comparison in judging.compare(saved)
    )
    return (
        f"extended from {planned_before(plan)[-1]} to {plan['planned_blocks']} blocks: at most "
        f"{units.error(judging.family_error(plan, treated))} of such studies have a wrong verdict, instead of "
        f"{units.error(ALPHA)} of those that end as planned"
    )
