"""The path of a finding, drawn: one line for a terminal, SVG for the page. Reads `path` of a finding, nothing else.

A link carries a number if packets of that size were measured on it, and "?" if none were. What is marked says so by a
sign and in words, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rich.cells import cell_len

from framegauge.printable import printable, prose as _text

__all__ = ["line", "svg", "words"]

MOST_CELLS = 26  # of a name in a drawing; the table has all of it
_SEGMENTS = {"network": "switches of", "underlay": "underlay of"}  # what no trace shows
_ASCII = str.maketrans({"─": "-", "✗": "X", "←": "<", "…": "~", "×": "x"})


def _short(text: object, most: int = MOST_CELLS) -> str:
    """Printable and no longer than there is room for: the middle is left out, since both ends tell names apart."""
    name = printable(str(text))
    if cell_len(name) <= most:
        return name
    end_length = len(name) // 2
    while end_length and cell_len(name[:end_length] + name[-end_length:]) >= most:
        end_length -= 1
    return f"{name[:end_length]}…{name[len(name) - end_length :]}"


def _hops(node: Mapping[str, Any]) -> str:
    """Hops that did not answer: how many, if that is known."""
    if node["hops"] is None:
        return "?…"
    return "?" if node["hops"] <= 1 else f"{node['hops']}×?"


def _node(node: Mapping[str, Any]) -> str:
    if node["kind"] == "unknown":
        return _hops(node)
    if node["kind"] in _SEGMENTS:
        return f"[{_SEGMENTS[node['kind']]} {_short(node['name'])}]"
    return _short(node["name"])


def _size(link: Mapping[str, Any]) -> str:
    return "?" if link["carries_bytes"] is None else str(link["carries_bytes"])


def _link(path: Mapping[str, Any], link: Mapping[str, Any], dashes: int) -> str:
    rule = "─" * dashes
    if link["bad"]:
        return f"{rule}✗{'' if path['located'] else '?'} {_size(link)}{rule}"
    return f"{rule}{_size(link)}{'←' if link['direction'] == 'back' and link['carries_bytes'] else ''}{rule}"


def line(path: Mapping[str, Any], width: int, is_unicode: bool = True) -> str:
    """The whole path in one line; nodes far from the bad link are left out where there is no room for them."""
    drawn = ""
    for dashes, whole in ((2, True), (1, True), (1, False)):
        nodes, links = (path["nodes"], path["links"]) if whole else _near(path["nodes"], path["links"])
        parts = [_node(nodes[0])]
        for link, node in zip(links, nodes[1:], strict=True):
            parts += [f" {_link(path, link, dashes)} ", _node(node)]
        drawn = "".join(parts)
        if cell_len(drawn) <= width:
            break
    return drawn if is_unicode else drawn.translate(_ASCII).encode("ascii", "replace").decode()


def _near(
    nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The ends of the path and of the bad stretch; one node for all that is left out between them."""
    first, last = _stretch(links)
    keep = sorted({0, first, first + 1, last, last + 1, len(nodes) - 1})
    left_out = {"kind": "host", "name": "…", "hops": 1}
    shown, between = [nodes[0]], []
    for before, index in pairwise(keep):
        if index > before + 1:
            shown.append(left_out)
            between.append(links[before])
        shown.append(nodes[index])
        between.append(links[index - 1])
    return shown, between


def _stretch(links: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The first and the last link that are marked."""
    marked = [index for index, link in enumerate(links) if link["bad"]]
    return (marked[0], marked[-1]) if marked else (0, len(links) - 1)


def _called(node: Mapping[str, Any]) -> str:
    """A node in a sentence."""
    name = printable(str(node["name"]))
    if node["kind"] in ("host", "router"):
        return f"{node['kind']} {name}"
    if node["kind"] in _SEGMENTS:
        return f"the {_SEGMENTS[node['kind']]} {name}"
    if node["hops"] is None:
        return "unknown hops"
    return "a hop that did not answer" if node["hops"] == 1 else f"{node['hops']} hops that did not answer"


def words(path: Mapping[str, Any]) -> str:
    """What the drawing shows, in words."""
    first, last = _stretch(path["links"])
    ends = f"{_called(path['nodes'][first])} and {_called(path['nodes'][last + 1])}"
    size = path["links"][first]["carries_bytes"]
    most = "large packets do not pass" if size is None else f"packets of up to {size} bytes pass"
    what = f"The bad link is between {ends}" if path["located"] else f"The bad link is somewhere between {ends}"
    parts = [f"{what}: {most}."]
    if (others := path["other_flows_carry_bytes"]) is not None:
        parts.append(f"Other flows carry {others} bytes, on another path.")
    if any(link["direction"] == "back" and link["carries_bytes"] for link in path["links"]):
        parts.append("← was measured in the other direction.")
    if any(link["carries_bytes"] is None for link in path["links"]) or any(
        node["kind"] == "unknown" for node in path["nodes"]
    ):
        parts.append("? was not measured.")
    ends = f"{_called(path['nodes'][0])} to {_called(path['nodes'][-1])}"
    example = f", one of {path['pairs']} affected pairs" if path["pairs"] > 1 else ""
    return f"{' '.join(parts)} Drawn: {ends}, IPv{path['family']}{example}."


@dataclass(frozen=True)
class _Box:
    """A node in the drawing: its place, and its lines of text."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    lines: tuple[str, ...]

    @property
    def middle(self) -> tuple[float, float]:
        """Where links and text are centred."""
        return self.x + self.width / 2, self.y + self.height / 2


_LETTER, _LINE, _GAP, _DROP, _TOP, _WIDE_NODES = 7.4, 16.0, 104.0, 52.0, 14.0, 6


def _lines(node: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands in a node: for routers the address of each IP version."""
    if node["kind"] == "unknown":
        return ("unknown hops" if node["hops"] is None else "no answer", _hops(node))
    addresses = [_short(address) for address in node["addresses"].values()]
    label = ({"router": "router"} | _SEGMENTS).get(node["kind"])
    return (label, *(addresses or [_short(node["name"])])) if label else (_short(node["name"]),)


def svg(path: Mapping[str, Any], name: str) -> str:
    """The drawing, wide and (for narrow windows and long paths) tall; `name` makes its ids unique."""
    ends = f"Path from {printable(str(path['source']))} to {printable(str(path['destination']))}"
    tall = _svg(path, f"{name}t", ends, True)
    if len(path["nodes"]) > _WIDE_NODES:
        return f'<div class="path">{tall}</div>\n'
    return f'<div class="path both">{_svg(path, f"{name}w", ends, False)}{tall}</div>\n'


def _svg(path: Mapping[str, Any], name: str, title: str, is_tall: bool) -> str:
    boxes = _boxes([_lines(node) for node in path["nodes"]], [node["kind"] for node in path["nodes"]], is_tall)
    width = max(box.x + box.width for box in boxes) + (150 if is_tall else 8)
    has_others = path["other_flows_carry_bytes"] is not None and not is_tall
    height = max(box.y + box.height for box in boxes) + (8 if is_tall or path["located"] else 34) + 30 * has_others
    drawn = [
        _edge(path, link, boxes[index], boxes[index + 1], is_tall) for index, link in enumerate(path["links"])
    ]  # fmt: skip
    drawn += [_bracket(path, boxes, is_tall)] if not path["located"] else []
    drawn += [_parallel(path, boxes)] if has_others else []
    drawn += [_box(box) for box in boxes]
    return (
        f'<svg class="{"tall" if is_tall else "wide"}" role="img" aria-labelledby="{name}a {name}b" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
        f'<title id="{name}a">{_text(title)}</title><desc id="{name}b">{_text(words(path))}</desc>'
        f"{''.join(drawn)}</svg>"
    )


def _boxes(texts: Sequence[tuple[str, ...]], kinds: Sequence[str], is_tall: bool) -> list[_Box]:
    """All nodes in a row (or below one another), their middles in one line."""
    widths = [max(48.0, max(map(cell_len, lines)) * _LETTER + 20) for lines in texts]
    heights = [len(lines) * _LINE + 14 for lines in texts]
    boxes, offset = [], 4.0
    for lines, kind, width, height in zip(texts, kinds, widths, heights, strict=True):
        x, y = (28 + (max(widths) - width) / 2, offset) if is_tall else (offset, _TOP + (max(heights) - height) / 2)
        boxes.append(_Box(x, y, width, height, kind, lines))
        offset += height + _DROP if is_tall else width + _GAP
    return boxes


def _box(box: _Box) -> str:
    middle = box.middle[0]
    first = box.y + box.height / 2 - (len(box.lines) - 1) * _LINE / 2 + 4.5
    texts = "".join(
        f'<text x="{middle:g}" y="{first + index * _LINE:g}"'
        f"{' class=soft' if index == 0 and len(box.lines) > 1 else ''}>{_text(label)}</text>"
        for index, label in enumerate(box.lines)
    )
    size = f'width="{box.width:g}" height="{box.height:g}"'
    return f'<rect class="{box.kind}" x="{box.x:g}" y="{box.y:g}" {size} rx="7"></rect>{texts}'


def _edge(path: Mapping[str, Any], link: Mapping[str, Any], near: _Box, far: _Box, is_tall: bool) -> str:
    """A link, its size, and its mark."""
    if is_tall:
        start, stop = (near.middle[0], near.y + near.height), (far.middle[0], far.y)
    else:
        start, stop = (near.x + near.width, near.middle[1]), (far.x, far.middle[1])
    x, y = (start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2
    look = "bad" if link["bad"] else "none" if link["carries_bytes"] is None else "good"
    look += "" if path["located"] or not link["bad"] else " maybe"
    drawn = f'<line class="{look}" x1="{start[0]:g}" y1="{start[1]:g}" x2="{stop[0]:g}" y2="{stop[1]:g}"></line>'
    arrow = " ←" if link["direction"] == "back" and link["carries_bytes"] else ""
    label = f"max. {_size(link)}" if link["bad"] and link["carries_bytes"] else f"{_size(link)}{arrow}"
    at = f'x="{x + 18:g}" y="{y + 5:g}" class="{look} side"' if is_tall else f'x="{x:g}" y="{y - 14:g}" class="{look}"'
    drawn += f"<text {at}>{_text(label)}</text>"
    if not link["bad"]:
        return drawn
    cross = f'<path class="mark" d="M{x - 4:g} {y - 4:g}l8 8m0 -8l-8 8"></path>'
    doubt = f'<text class="mark" x="{x:g}" y="{y + 5:g}">?</text>'
    drawn += f'<circle class="mark" cx="{x:g}" cy="{y:g}" r="10"></circle>'
    return drawn + (cross if path["located"] else doubt)


def _parallel(path: Mapping[str, Any], boxes: Sequence[_Box]) -> str:
    """The path of other flows, of which nothing is known but its ends and its size."""
    start, stop = boxes[0], boxes[-1]
    y = max(box.y + box.height for box in boxes) + (14 if path["located"] else 40)
    size = _size({"carries_bytes": path["other_flows_carry_bytes"]})
    return (
        f'<path class="good" d="M{start.middle[0]:g} {start.y + start.height:g}V{y:g}H{stop.middle[0]:g}'
        f'V{stop.y + stop.height:g}"></path><text class="good" x="{(start.middle[0] + stop.middle[0]) / 2:g}" '
        f'y="{y + 18:g}">other flows, on another path: {size}</text>'
    )


def _bracket(path: Mapping[str, Any], boxes: Sequence[_Box], is_tall: bool) -> str:
    """Which stretch the bad link must be in."""
    first, last = _stretch(path["links"])
    start, stop = boxes[first].middle, boxes[last + 1].middle
    if is_tall:
        return f'<path class="stretch" d="M16 {start[1]:g}h-8V{stop[1]:g}h8"></path>'
    y = max(box.y + box.height for box in boxes) + 8
    return (
        f'<path class="stretch" d="M{start[0]:g} {y - 4:g}v8H{stop[0]:g}v-8"></path>'
        f'<text class="bad" x="{(start[0] + stop[0]) / 2:g}" y="{y + 20:g}">the bad link is in this stretch</text>'
    )
