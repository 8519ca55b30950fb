"""What a check found, for the page on which somebody decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.check.judgement.findings import title
from framegauge.report.check import findings, matrix
from framegauge.report.decision.model import Risks

__all__ = ["of_check"]


def of_check(document: Mapping[str, Any]) -> Risks:
    """The risks in a document of a check, the faults before what is only worth knowing."""
    ordered = sorted(document["findings"], key=lambda finding: not findings.is_fault(finding))
    faults = sum(map(findings.is_fault, ordered))
    is_clear = document["verdict"] == "carries_target"
    steps = []
    if faults:
        fault_text = "the fault" if faults == 1 else f"the {faults} faults"
        steps.append(
            f"Remove {fault_text} of the paths before any host gets a larger MTU; framegauge check prints the remedies"
        )
    elif not is_clear:
        steps.append("Repeat the check: of some pairs it could not tell")
    return Risks(
        headline=matrix.headline(document).removesuffix("."),
        found=[f"{title(finding['kind'])}: {finding['where']}" for finding in ordered],
        limits=[matrix.plan_text(document).partition(". ")[0]],
        target_mtu=document["target_mtu"],
        is_clear=is_clear,
        then=steps,
    )
