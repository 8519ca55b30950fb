"""What encapsulations take, asked of the agent (`frames.wire`), and as a table.

The arithmetic of frames is in crates/frames; here are only ratios of its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, InputError
from framegauge.quantities import print_bits_per_second

__all__ = ["LEVELS", "ask", "compared", "levels_table", "table"]

INVALID_PARAMS = -32602
# What is usual: Ethernet, Azure, a page of payload, Google Cloud, jumbo frames, AWS.
LEVELS = (1500, 3900, 4200, 8896, 9000, 9001)
GIGABYTE = 1e9

Row = tuple[str, int | str, str]


def ask(mtu: int, encapsulations: Sequence[str], bits_per_second: int | None) -> dict[str, Any]:
    """The agent's sum; InputError if there is no such stack or too little room."""
    with Agent.open([find_agent(), "host"]) as agent:
        return _ask(agent, mtu, encapsulations, bits_per_second)


def _ask(agent: Agent, mtu: int, encapsulations: Sequence[str], bits_per_second: int | None) -> dict[str, Any]:
    request = {"mtu": mtu, "encapsulations": list(encapsulations), "bits_per_second": bits_per_second}
    try:
        return agent.request("frames.wire", request)
    except AgentError as error:
        if error.code == INVALID_PARAMS:
            raise InputError(f"wire: {error.message.removeprefix('frames.wire: ')}") from None
        raise


def compared(mtus: Sequence[int], encapsulations: Sequence[str], bits_per_second: int | None) -> dict[str, Any]:
    """The agent's sums for several MTUs, from the smallest on, and what each gains over the smallest, by arithmetic.

    InputError if an MTU has too little room for the stack, or for TCP over the IP version that all others carry.
    """
    with Agent.open([find_agent(), "host"]) as agent:
        answers = [_ask(agent, mtu, encapsulations, bits_per_second) for mtu in sorted(set(mtus))]
    first = answers[0]["families"]
    if not first:
        raise InputError(f"--levels: found {answers[0]['mtu']}, expected an MTU that can carry IP in this stack")
    family = first[0]["family"]
    inside = [next(entry for entry in answer["families"] if entry["family"] == family) for answer in answers]
    payloads = [entry["segment_payload_bytes"] for entry in inside]
    shares = [payload / answer["wire_bytes"] for payload, answer in zip(payloads, answers, strict=True)]
    packets = [GIGABYTE / payload for payload in payloads]
    rows = [
        {
            "mtu": answer["mtu"],
            "payload_share": share,
            "gain": share / shares[0] - 1,
            "gain_of_largest": _part(share - shares[0], shares[-1] - shares[0]),
            "packets_per_gigabyte": count,
            "packets_saved_of_largest": _part(packets[0] - count, packets[0] - packets[-1]),
            "goodput_bits_per_second": tcp["goodput_bits_per_second"],
            "wire": answer,
        }
        for answer, tcp, share, count in zip(answers, inside, shares, packets, strict=True)
    ]
    return {"family": family, "encapsulations": list(encapsulations), "levels": rows}


def _part(of: float, total: float) -> float | None:
    return of / total if total else None


def levels_table(found: dict[str, Any]) -> list[str]:
    """Lines for people: the payload share of each MTU, its gain over the smallest, and its packets."""
    rows = found["levels"]
    smallest, largest = rows[0]["mtu"], rows[-1]["mtu"]
    rate = [level["goodput_bits_per_second"] for level in rows]
    head = (
        "MTU",
        "goodput" if rate[0] else "payload",
        f"gain over {smallest}",
        f"of the gain of {largest}",
        "packets per GB",
        "of those saved",
    )
    cells = [
        (
            str(level["mtu"]),
            print_bits_per_second(goodput) if goodput else f"{level['payload_share']:.2%}",
            f"{level['gain']:+.2%}", _percent(level["gain_of_largest"]),
            f"{level['packets_per_gigabyte']:,.0f}", _percent(level["packets_saved_of_largest"]),
        )
        for level, goodput in zip(rows, rate, strict=True)
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *cells)]
    return [
        f"TCP over IPv{found['family']} with timestamps, full segments"
        + ("" if rate[0] else "; payload is its share of the wire"),
        *lines,
        "This is arithmetic alone: what hosts and applications make of it, only a study shows.",
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def table(found: dict[str, Any]) -> list[str]:
    """Lines for people: what is taken, from the outside in, and what TCP has of the rest."""
    within = [layer for layer in found["layers"] if layer["within_mtu"]]
    frame_only = [layer for layer in found["layers"] if not layer["within_mtu"]]
    rows: list[Row] = [("link MTU", found["mtu"], "")]
    for layer in within:
        rows += _layer(layer, "-")
        if layer is not within[-1]:
            rows.append(("MTU inside of it", layer["inner_mtu"], ""))
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
    rows += [("", "", f"{part['bytes']:>3}  {part['name']} ({part['source']})") for part in layer["parts"]]
    if (span := layer["range"]) is not None:
        rows.append(("", "", f"     {span['least_bytes']} to {span['most_bytes']}: {span['why']}"))
    return rows


def _ceilings(answer: dict[str, Any]) -> list[str]:
    if not answer["families"]:
        return ["no IP version that is carried inside can run on so small an MTU"]
    rate = answer["bits_per_second"]
    lines = []
    for inside in answer["families"]:
        lines.append(
            f"TCP over IPv{inside['family']} inside: MSS {inside['mss_bytes']}, "
            f"{inside['segment_payload_bytes']} bytes of payload a segment (timestamps on)"
        )
        if rate is not None:
            goodput = print_bits_per_second(inside["goodput_bits_per_second"])
            packets = f"{inside['packets_per_second']:,.0f} full packets per second"
            lines.append(f"  at {print_bits_per_second(rate)}: goodput at most {goodput}, {packets}")
    return lines
