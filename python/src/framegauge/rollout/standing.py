"""What an undo must leave as it is: what other interfaces have come to need since the change. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from framegauge.rollout import preflight
from framegauge.rollout.model import Asked, Finding, Json
from framegauge.rollout.transition import STANDING_ON

__all__ = ["needed_by", "refused"]

# What is lost when an interface is lowered under it, whoever has raised it.
GRAVE = ("overlay", "child", "pods")
# What the kernel lowers with a bridge or an interface below it, if not at once. Of a bridge itself nobody knows whether
# it follows its ports.
ABOVE = (*STANDING_ON, "ipvtap", "macsec")


def needed_by(
    facts: Json, interface: str, before: Mapping[str, str], along: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """Of the interfaces that were raised with this one, to carry it, those that stay, each with what needs it: another
    VLAN, say, that has more than they had. `facts`: what `check.facts` has of the host; `before`: its settings then;
    `along`: by interface, what a change of it may change as well, where the agent tells.

    The kernel lowers what stands on an interface together with it, at once, while others still send to it.
    """
    raised = [name.removeprefix("mtu:") for name in before if name.startswith("mtu:")]
    needs: dict[str, str] = {}
    # From the top: what stays needs what it stands on.
    for name in reversed([upper for upper in raised if upper != interface]):
        least = int(before[f"mtu:{name}"])
        for upper in facts["interfaces"]:
            goes_back = upper["name"] in raised and upper["name"] not in needs
            stands = upper["parent"] == name and upper["kind"] in STANDING_ON
            stands = stands or (upper["name"] in (along or {}).get(name, ()) and upper["kind"] in ABOVE)
            if stands and upper["mtu"] > least and not goes_back:
                needs[name] = f"{upper['name']} with {upper['mtu']}"
                break
    return needs


def refused(facts: Mapping[str, Json], asked: Asked, origin: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    """What would not fit any more on an interface that has its old MTU again, unless its kind is forced: a tunnel, say,
    that was raised after it. `facts`: of `survey.read`, by host; `origin`: the settings to go back to, by host."""
    findings: list[Finding] = []
    for host, settings in origin.items():
        interface = asked.interfaces[host]
        host_request = replace(
            asked, waves=((host,),), target_mtu=int(settings[f"mtu:{interface}"]), old_mtu=None,
        )  # fmt: skip
        findings += [
            finding
            for finding in preflight.findings({host: facts[host]}, host_request)
            if finding.what in GRAVE and finding.severity == "refused"
        ]
    return findings
