"""What several captures say together, on the page: where packets were lost, one-way delays, who held answers back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.diagnose import together
from framegauge.diagnose.joined import WORTH_SECONDS, ends, hops, waits
from framegauge.diagnose.page.parts import seconds, section, text, whole
from framegauge.quantities import print_bytes, print_seconds
from framegauge.report.page.tables import table

__all__ = ["between"]

MOST_ROWS = 50
MOST_DELAYS = 6
WIDTH, HEIGHT = 720, 120
Json = Mapping[str, Any]
Hop = tuple[Json, int, Json]


def between(joined: Json | None) -> str:
    """The section; empty unless captures share a connection."""
    if joined is None:
        return ""
    names = {tap["tap"]: tap["name"] for tap in joined["taps"]}
    items = "".join(f"<li>{text(line.strip())}</li>" for line in list(together.lines(joined))[2:])
    return section(
        "between", "Between the captures",
        f"<ul>{items}</ul>\n" + _lost(joined, names) + _held(joined, names) + _delays(joined, names),
    )  # fmt: skip


def _way(hop: Json, names: Mapping[int, str]) -> str:
    near, far = (text(names[tap]) for tap in hop["between"])
    return f"<bdi>{near}</bdi> → <bdi>{far}</bdi>"


def _lost(joined: Json, names: Mapping[int, str]) -> str:
    losses = sorted(
        (entry for entry in hops(joined) if entry[2]["lost_packets"]), key=lambda entry: -entry[2]["lost_packets"]
    )
    rows = (
        [
            _way(hop, names),
            f"<bdi>{text(ends(connection, direction))}</bdi>",
            f"{hop['lost_packets']:,} of {hop['lost_packets'] + hop['arrived_packets']:,}",
            whole(print_bytes(hop["lost_bytes"])),
            ", ".join(str(drop["packet"]) for drop in hop["drops"][:8]) + (" …" if len(hop["drops"]) > 8 else ""),
        ]
        for connection, direction, hop in losses[:MOST_ROWS]
    )
    head = ("between", "packets from", "lost", "payload", "packet numbers in the first capture")
    return table(f"Where packets were lost, {min(len(losses), MOST_ROWS)} of {len(losses)}", head, rows)


def _held(joined: Json, names: Mapping[int, str]) -> str:
    held_waits = [
        (wait, connection, direction)
        for connection in joined["connections"]
        for direction, wait in waits(connection)
        if wait["held_seconds"] >= WORTH_SECONDS
    ]
    held_waits.sort(key=lambda entry: -entry[0]["held_seconds"])
    rows = (
        [
            f"<bdi>{text(names[wait['between'][1]])}</bdi>",
            f"<bdi>{text(ends(connection, direction))}</bdi>",
            str(wait["answers"]),
            whole(seconds(wait["waited_seconds"])),
            whole(seconds(wait["held_seconds"])),
            whole(seconds(wait["longest_held_seconds"])),
        ]
        for wait, connection, direction in held_waits[:MOST_ROWS]
    )
    head = (
        "who answered",
        "requests from",
        "answers",
        "waited in all",
        "held back by who answered",
        "longest of those",
    )
    return table(f"Who held answers back, {min(len(held_waits), MOST_ROWS)} of {len(held_waits)}", head, rows)


def _delays(joined: Json, names: Mapping[int, str]) -> str:
    """The delays that rise most, as pictures over time."""
    measured = [
        entry for entry in hops(joined) if entry[2]["delay"] is not None and len(entry[2]["delay"]["series"]) > 1
    ]
    measured.sort(key=lambda entry: entry[2]["delay"]["least_seconds"] - entry[2]["delay"]["p99_seconds"])
    drawn = "".join(_delay(entry, names) for entry in measured[:MOST_DELAYS])
    rest = len(measured) - MOST_DELAYS
    more = f"<p>{rest} more {'is' if rest == 1 else 'are'} in the JSON document.</p>\n" if rest > 0 else ""
    key = (
        '<p class="soft">One-way delays over time: the line is the median of each part, the band goes from the least '
        "to the most. The uncertainty of the clocks moves all of a picture up or down.</p>\n"
    )
    return f"<h3>One-way delays</h3>\n{key}{drawn}{more}" if drawn else ""


def _delay(entry: Hop, names: Mapping[int, str]) -> str:
    connection, direction, hop = entry
    delay = hop["delay"]
    description = (
        f"median {_signed(delay['median_seconds'])}, 99 % below {_signed(delay['p99_seconds'])}, known to "
        f"{seconds(delay['uncertainty_seconds'])}"
    )
    return (
        f'<figure class="delay"><figcaption>{_way(hop, names)}, <bdi>{text(ends(connection, direction))}</bdi>: '
        f"{text(description)}</figcaption>\n{_picture(delay, description)}</figure>\n"
    )


def _picture(delay: Json, description: str) -> str:
    series = delay["series"]
    begin, end = series[0]["begin_seconds"], series[-1]["end_seconds"]
    low = min(0.0, *(part["least_seconds"] for part in series))
    high = max(part["most_seconds"] for part in series)
    across = WIDTH / (end - begin if end > begin else 1.0)
    up = HEIGHT / (high - low if high > low else 1.0)

    def points(name: str, parts: Sequence[Json]) -> Iterator[str]:
        for part in parts:
            middle = (part["begin_seconds"] + part["end_seconds"]) / 2
            yield f"{(middle - begin) * across:.1f},{HEIGHT - (part[name] - low) * up:.1f}"

    band = " ".join([*points("most_seconds", series), *points("least_seconds", series[::-1])])
    line = " ".join(points("median_seconds", series))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img"><title>One-way delay over time'
        f'</title><desc>{text(description)}</desc><polygon class="band" points="{band}"/><polyline class="median" '
        f'points="{line}"/></svg>\n<p class="axis soft"><span>{_signed(low)} to {_signed(high)}, upwards</span>'
        f"<span>{seconds(end - begin)}, to the right</span></p>\n"
    )


def _signed(value: float) -> str:
    return f"−{print_seconds(-value, 3)}" if value < 0 else print_seconds(value, 3)
