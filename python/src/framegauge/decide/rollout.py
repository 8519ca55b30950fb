"""The file of a roll-out that does what was decided, for `framegauge rollout plan`. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from framegauge.decide.judge import Conclusion
from framegauge.decide.places import Own
from framegauge.decide.question import Question
from framegauge.decide.steps import Found
from framegauge.report.decision.model import Choice

__all__ = ["text"]

HEAD = """\
# Written by framegauge decide. Every step with its undo, and nothing is changed: framegauge rollout plan THIS_FILE
"""


def text(question: Question, found: Found, conclusion: Conclusion) -> str | None:
    """The file for all hosts, or for those of the subnets that were chosen. None if the answer is another one, or a
    host reaches the others by several interfaces, so that one must be chosen first."""
    if question.rack or conclusion.choice not in (Choice.DO_IT, Choice.SUBNET_ONLY):
        return None
    present = found.facts["present_mtu"]
    if present is None or present >= question.target_mtu:
        return None
    subnets = found.paths(question.target_mtu).subnets
    chosen = {name for subnet in conclusion.subnets for name in subnets[subnet]}
    used = {entry["name"]: [device["name"] for device in entry["interfaces"]] for entry in found.facts["hosts"]}
    if conclusion.subnets:
        used = {name: interfaces for name, interfaces in used.items() if name in chosen}
    if any(len(interfaces) != 1 for interfaces in used.values()):
        return None
    known = {entry.name: entry for entry in Own(question.hosts, question.machines, allowed=True).machines}
    hosts: list[dict[str, Any]] = []
    for name, (interface,) in used.items():
        hosts.append({**known[name].model_dump(mode="json", exclude_defaults=True), "interface": interface})
    document = {
        "question": question.text, "hosts": hosts, "mtu": question.target_mtu, "from": present, "scope": "subnets",
    }  # fmt: skip
    return HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
