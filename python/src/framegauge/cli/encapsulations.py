"""What encapsulations take, asked of the agent (`frames.wire`), and as a table.

No arithmetic: that is in crates/frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, InputError
from framegauge.quantities import print_bits_per_second

__all__ = ["ask", "table"]

INVALID_PARAMS = -32602

Row = tuple[str, int | str, str]


def ask(mtu: int, encapsulations: Sequence[str], bits_per_second: int | None) -> dict[str, Any]:
    """The agent's sum; InputError if there is no such stack or too little room."""
    asked = {"mtu": mtu, "encapsulations": list(encapsulations), "bits_per_second": bits_per_second}
    with Agent.open([find_agent(), "host"]) as agent:
        try:
            return agent.request("frames.wire", asked)
        except AgentError as error:
            if error.code == INVALID_PARAMS:
                raise InputError(f"wire: {error.message.removeprefix('frames.wire: ')}") from None
            raise


def table(found: dict[str, Any]) -> list[str]:
    """Lines for people: what is taken, from the outside in, and what TCP has of the rest."""
    within = [layer for layer in found["layers"] if layer["within_mtu"]]
    frame_only = [layer for layer in found["layers"] if not layer["within_mtu"]]
    rows: list[Row] = [("link MTU", found["mtu"], "")]
    for layer in within:
        rows += _layer(layer, "-")
    rows += [("inner MTU", found["inner_mtu"], "the largest packet that fits"), ("", "", "")]
    untagged = found["frame_bytes"] - found["frame_overhead_bytes"]
    rows.append(("its frame", untagged, "with header and FCS"))
    for layer in frame_only:
        rows += _layer(layer, "+")
    if frame_only:
        rows.append(("tagged frame", found["frame_bytes"], "which every device on the way must take"))
    rows += [("on the wire", found["wire_bytes"], "with preamble and gap"), ("", "", "")]
    width = max(len(name) for name, _, _ in rows)
    lines = [f"{name:<{width}}  {number!s:>6}  {text}".rstrip() for name, number, text in rows]
    return lines + _ceilings(found)


def _layer(layer: dict[str, Any], sign: str) -> list[Row]:
    over = f" over IPv{layer['underlay']}" if layer["underlay"] is not None else ""
    rows: list[Row] = [(f"{layer['name']}{over}", f"{sign}{layer['overhead_bytes']}", "")]
    return rows + [("", "", f"{part['bytes']:>3}  {part['name']} ({part['source']})") for part in layer["parts"]]


def _ceilings(found: dict[str, Any]) -> list[str]:
    if not found["families"]:
        return ["no IP version that is carried inside can run on so small an MTU"]
    rate = found["bits_per_second"]
    lines = []
    for inside in found["families"]:
        lines.append(
            f"TCP over IPv{inside['family']} inside: MSS {inside['mss_bytes']}, "
            f"{inside['segment_payload_bytes']} bytes of payload a segment (timestamps on)"
        )
        if rate is not None:
            goodput = print_bits_per_second(inside["goodput_bits_per_second"])
            packets = f"{inside['packets_per_second']:,.0f} full packets per second"
            lines.append(f"  at {print_bits_per_second(rate)}: goodput at most {goodput}, {packets}")
    return lines
