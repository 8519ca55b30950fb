"""A path MTU check as one HTML page that needs no network: the verdict, the findings, the matrix, the pairs.

Everything that comes from outside is escaped; the page may load nothing and run nothing. No information is in colours
alone: signs and words have it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from framegauge import __version__, quantities
from framegauge.check.judgement.verdict import route_mtu_disagreement
from framegauge.printable import prose as _text
from framegauge.report.check import findings
from framegauge.report.check.matrix import (
    LEGEND,
    NOT_PROBED,
    ONE_ENDED,
    ONE_ENDED_WORDS,
    PARTIAL,
    Cell,
    Matrix,
    caption_of,
    headline,
    matrices,
    plan_text,
)  # fmt: skip
from framegauge.report.page import tables

__all__ = ["matrix", "page"]

MOST_HOSTS = 128
FEW_HOSTS = 12  # on a page of other things
DENSE_ABOVE = 20  # names beyond which cells show signs only
MOST_ROWS, MOST_HOST_ROWS = 400, 200
_CLASSES = {"carries_target": "c", "too_small": "t", "black_hole": "b", "unreachable": "u", "unknown": "q"}
_VERDICTS = {"carries_target": "c", "fault": "b", "could_not_tell": "q"}
_ORDER = ("unreachable", "black_hole", "too_small", "unknown", "carries_target")


def _name(value: object) -> str:
    """A name, kept apart from the direction of the text around it."""
    return f"<bdi>{_text(value)}</bdi>"


def page(document: Mapping[str, Any], when: str = "") -> str:
    """The whole page; `when` is printed as it is given."""
    looks = files("framegauge.report.check")
    style = "".join(looks.joinpath(name).read_text(encoding="utf-8") for name in ("matrix.css", "page.css"))
    drawn = matrices(document, MOST_HOSTS)
    about = " · ".join(
        _text(item) for item in (
            f"target MTU {document['target_mtu']}", f"{len(document['hosts'])} hosts",
            f"{len(document['pairs'])} pairs", f"took {quantities.print_seconds(document['seconds'])}", when,
        ) if item
    )  # fmt: skip
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
        f"<title>Path MTU check: {_text(headline(document))}</title>\n",
        f"<style>\n{style}{tables.style()}</style>\n</head>\n<body>\n",
        '<a class="skip" href="#findings">Skip to the findings</a>\n<header>\n<h1>framegauge check: path MTU</h1>\n',
        f'<p class="verdict {_VERDICTS[document["verdict"]]}">{_text(headline(document))}</p>\n',
        f'<p class="soft">{about}</p>\n</header>\n<main>\n',
        findings.section(document["findings"]),
        '<section aria-labelledby="matrix"><h2 id="matrix">Matrix</h2>\n' if drawn else "",
        *(_matrix(item, number, document["target_mtu"]) for number, item in enumerate(drawn)),
        f"{_legend(drawn)}</section>\n" if drawn else "",
        _pairs(document),
        _hosts(document),
        '<section aria-labelledby="plan"><h2 id="plan">What was probed</h2>\n',
        f"<p>{_text(plan_text(document))}</p></section>\n",
        f'</main>\n<footer class="soft"><p>framegauge {_text(__version__)}, result schema {document["schema"]}. ',
        "Sizes are IP packets in bytes. Interface MTUs are readings, path MTUs measurements.</p></footer>\n",
        "</body>\n</html>\n",
    ])  # fmt: skip


def matrix(document: Mapping[str, Any]) -> str:
    """The matrix that has most to say, with its legend, for a page of other things; empty if none is small enough."""
    drawn = matrices(document, FEW_HOSTS)
    if not drawn:
        return ""
    shown = max(drawn, key=lambda candidate: sum(cell.verdict != "carries_target" for cell in candidate.cells.values()))
    return _matrix(shown, 0, document["target_mtu"]) + _legend([shown])


def _scroll(label: str, inside: str) -> str:
    """A table that may be wider than the page: a region that the keyboard reaches and can scroll."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{_text(label)}">\n{inside}</div>\n'


def _matrix(matrix: Matrix, number: int, target: int) -> str:
    is_dense = len(matrix.names) > DENSE_ABOVE
    caption = caption_of(matrix)
    head = "".join(
        f'<th scope="col" title="{_text(name)}">{index}<i> {_text(name)}</i></th>' if not is_dense
        else f'<th scope="col">{index}</th>'
        for index, name in enumerate(matrix.names, 1)
    )  # fmt: skip
    rows = []
    for index, source in enumerate(matrix.names, 1):
        cells = "".join(_cell(matrix, source, name, is_dense, target) for name in matrix.names)
        rows.append(f'<tr><th scope="row" title="{_text(source)}">{index} {_name(source)}</th>{cells}</tr>\n')
    look = "matrix dense" if is_dense else "matrix"
    return _scroll(
        f"Matrix {number + 1}",
        f'<table class="{look}"><caption>{_text(caption)}</caption>\n<thead><tr><th scope="col">from, to</th>'
        f"{head}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table>\n",
    )


def _cell(matrix: Matrix, source: str, destination: str, is_dense: bool, target: int) -> str:
    cell = matrix.cells.get((source, destination))
    if cell is None:
        return "<td></td>" if source == destination else f"<td>{NOT_PROBED}</td>"
    sign = _text(cell.text(is_dense))
    if cell.verdict == "carries_target":
        return f"<td class=c>{sign}</td>"
    words = cell.words(target) + (f", {cell.bad} of {cell.known} pairs" if matrix.of_subnets else "")
    shown = f'<span aria-hidden="true">{sign}</span><i>{_text(words)}</i>'
    return f'<td class={_CLASSES[cell.verdict]} title="{_text(f"{source} to {destination}: {words}")}">{shown}</td>'


def _legend(drawn: Iterable[Matrix]) -> str:
    grids = list(drawn)
    used = {cell.verdict for grid in grids for cell in grid.cells.values()}
    is_dense = any(len(grid.names) > DENSE_ABOVE for grid in grids)
    items = [
        f'<li><span class="{_CLASSES[name]}">{_text(Cell(name, 1500, False).text(is_dense))}</span>{_text(words)}</li>'
        for name, (_, words) in LEGEND.items() if name in used
    ]  # fmt: skip
    if any(cell.is_partial for grid in grids for cell in grid.cells.values()):
        items.append(f"<li><span>{PARTIAL}</span>only some flows or pairs</li>")
    if any(cell.is_one_ended for grid in grids for cell in grid.cells.values()):
        items.append(f"<li><span>{ONE_ENDED}</span>{ONE_ENDED_WORDS}</li>")
    return f'<ul class="legend">{"".join(items)}</ul>\n'


def _pairs(document: Mapping[str, Any]) -> str:
    """Pairs that are worth a row: with a fault, without a verdict, or whose route MTU differs from the path MTU."""
    numbers: dict[tuple[Any, ...], list[int]] = {}
    for number, finding in enumerate(document["findings"][: findings.MOST_FINDINGS], 1):
        for pair in finding["pairs"]:
            numbers.setdefault(tuple(pair), []).append(number)
    worth = [
        pair for pair in document["pairs"]
        if pair["verdict"] != "carries_target" or route_mtu_disagreement(pair) is not None
    ]  # fmt: skip
    worth.sort(key=lambda pair: _ORDER.index(pair["verdict"]))
    good = len(document["pairs"]) - len(worth)
    parts = ['<section aria-labelledby="pairs"><h2 id="pairs">Pairs</h2>\n']
    if good:
        verb = "pair carries the target and is" if good == 1 else "pairs carry the target and are"
        parts.append(f"<p>{good} {verb} not listed.</p>\n")
    if worth:
        head = ("from", "to", "IP", "verdict", "path MTU", "route MTU", "bad flows", "error from", "findings")
        caption = f"Pairs with a fault or without a verdict, {min(len(worth), MOST_ROWS)} of {len(worth)}"
        parts.append(tables.table(caption, head, (_pair(pair, numbers) for pair in worth[:MOST_ROWS]), "list"))
    if len(worth) > MOST_ROWS:
        parts.append(f"<p>{len(worth) - MOST_ROWS} more are in the JSON document.</p>\n")
    return "".join([*parts, "</section>\n"])


def _pair(pair: Mapping[str, Any], numbers: Mapping[tuple[Any, ...], Sequence[int]]) -> list[str]:
    flows = pair["flows"]
    error_sources = sorted({source["address"] or "the sender's kernel" for source in pair["told_by"]})
    key = (pair["source"], pair["destination"], pair["family"])
    links = ", ".join(f'<a href="#f{number}">{number}</a>' for number in numbers.get(key, ()))
    sizes = ["?" if pair[name] is None else str(pair[name]) for name in ("path_mtu_bytes", "route_mtu_bytes")]
    look, words = _CLASSES[pair["verdict"]], pair["verdict"].replace("_", " ")
    words += ", one-ended" if pair.get("method") == "one_ended" else ""
    return [
        _name(pair["source"]), _name(pair["destination"]), str(pair["family"]),
        f'<span class="tag {look}">{words}</span>', *sizes, f"{flows['bad']} of {flows['probed']}",
        ", ".join(map(_name, error_sources)), links,
    ]  # fmt: skip


def _hosts(document: Mapping[str, Any]) -> str:
    hosts = document["hosts"]
    rows = []
    for host in hosts[:MOST_HOST_ROWS]:
        facts = host["facts"]
        interfaces = facts["interfaces"] if facts else []
        nic_text = "; ".join(
            f"{_name(nic['name'])} {nic['mtu']}" + (f" ({_text(nic['driver'])})" if nic.get("driver") else "")
            for nic in interfaces
        )
        nic_text = nic_text or ("no interface" if facts else "no readings")
        error = f'<br><span class="tag u">error</span>{_text(host["error"])}' if host["error"] else ""
        addresses = ", ".join(map(_name, host["addresses"]))
        rows.append([_name(host["name"]), addresses, f"{nic_text}{error}"])
    more = (
        f"<p>{len(hosts) - MOST_HOST_ROWS} more are in the JSON document.</p>\n" if len(hosts) > MOST_HOST_ROWS else ""
    )
    return (
        '<section aria-labelledby="hosts"><h2 id="hosts">Hosts</h2>\n'
        + tables.table(
            "Readings of the interfaces: name, MTU, driver", ("host", "addresses", "interfaces"), rows, "list"
        )
        + more
        + "</section>\n"
    )
