"""A diagnosis as one HTML page that needs no network: what is worth fixing, all findings, and pictures of connections.

Everything that comes from outside is escaped. The page's policy allows no loading, and no scripts but those that the
page carries, named by their hashes. Without scripts everything but the pictures is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from framegauge import __version__
from framegauge.diagnose import terminal
from framegauge.diagnose.kinds import KINDS, QUALITY, WORTH_NOTHING
from framegauge.diagnose.page import parts, places
from framegauge.diagnose.page.groups import group_of
from framegauge.diagnose.page.parts import ends, interval, lost, seconds, section, spoken, text, to_picture, whole
from framegauge.diagnose.run import connections_in_words, is_judgeable, worth_fixing
from framegauge.quantities import print_bytes
from framegauge.report.page import tables
from framegauge.report.page.tables import table

__all__ = ["page"]

FIRST = 3
MOST_PACKETS = 8  # in the first findings; the table has all
MOST_FINDINGS, MOST_CONNECTIONS = 400, 100
WITHOUT_BANDS = (*QUALITY, *WORTH_NOTHING)
SCRIPTS = ("plot.js", "hover.js", "picture.js", "pictures.js")
Json = Mapping[str, Any]


def page(document: Json, pictures: Mapping[int, Json], notes: Sequence[str] = ()) -> str:
    """The whole page. `notes`: what there is to say of the pictures, such as why some are missing."""
    worth = worth_fixing(document)
    scripts = [_asset(name) for name in SCRIPTS] if pictures else []
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts) or "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; base-uri 'none'; form-action 'none'"
    shared = files("framegauge.report.page").joinpath("assets", "study_page.css").read_text(encoding="utf-8")
    data = f'<script type="application/json" id="pictures-data">{_packed(document, pictures)}</script>\n'
    answer = _answer(document, worth)
    names = ", ".join(dict.fromkeys(str(item["file"]) for item in document["captures"]))
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        f"<title>Why is TCP slow here? {text(answer)}</title>\n",
        f"<style>\n{_asset('colours.css')}{shared}{tables.style()}{_asset('diagnosis.css')}</style>\n</head>\n<body>\n",
        '<a class="skip" href="#main">Skip to the answer</a>\n<header>\n',
        f'<p class="soft brand">framegauge diagnose · {text(names)}</p>\n</header>\n',
        '<main id="main" tabindex="-1">\n<h1>Why is TCP slow here?</h1>\n',
        f'<p class="answer {"worse" if worth else "better"}"><span class="sign" aria-hidden="true">'
        f"{'!' if worth else '✓'}</span><span>{text(answer)}</span></p>\n",
        section("first", "Worth fixing first", "".join(_card(*item) for item in _first(document, worth, pictures))),
        section("pictures", "Pictures", _pictures(document, pictures, notes)),
        section("findings", "All findings", _findings(document, pictures)),
        places.between(document["joined"]),
        section("connections", "Connections", _connections(document, worth, pictures)),
        section("captures", "Captures", _captures(document)),
        f'</main>\n<footer class="soft"><p>framegauge {text(__version__)}, result schema {document["schema"]}. Times '
        "are seconds since the first TCP packet of the capture; packet numbers are those that Wireshark shows. What "
        "each finding means: framegauge docs diagnose.</p></footer>\n",
        data if scripts else "",
        *(f"<script>{script}</script>\n" for script in scripts),
        "</body>\n</html>\n",
    ])  # fmt: skip


def _asset(name: str) -> str:
    return files("framegauge.diagnose.page").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _answer(document: Json, worth: Sequence[Json]) -> str:
    connections = connections_in_words(document)
    if not is_judgeable(document):
        return terminal.nothing_judged(document)
    if not worth:
        return f"Nothing worth fixing was found in {connections}."
    kind = worth[0]["kind"]  # that which cost most
    sentence = f"{KINDS[kind].headline}; {_count(len(worth), 'finding')} worth fixing in {connections}"
    all_of_it, of_kind = (
        sum(finding["lost_seconds"] for finding in worth if only in (None, finding["kind"])) for only in (None, kind)
    )
    if not all_of_it:
        return f"{sentence}."
    share = "all of it by this" if of_kind == all_of_it else f"{seconds(of_kind)} of it by this"
    return f"{sentence}; {seconds(all_of_it)} lost, {share}."


def _first(document: Json, worth: Sequence[Json], pictures: Mapping[int, Json]) -> Iterator[tuple[int, Json, str, str]]:
    connections = {entry["connection"]: entry for entry in document["connections"]}
    for place, finding in enumerate(worth[:FIRST], 1):
        connection = connections.get(finding["connection"])
        where = f"connection {connection['connection']}, {ends(connection)}, " if connection else ""
        link = to_picture(finding, pictures, "See it in the picture")
        yield place, finding, where, link if finding["connection"] in pictures else ""


def _card(place: int, finding: Json, where: str, link: str) -> str:
    cost = f", {lost(finding)} lost" if finding["lost_seconds"] else ""
    packets = ", ".join(str(part) for part in finding["packets"][:MOST_PACKETS])
    packets += " …" if len(finding["packets"]) > MOST_PACKETS else ""
    shown = " · ".join(part for part in (link, f"packets {packets}" if packets else "") if part)
    return (
        f'<article class="finding g-{group_of(finding["kind"])}"><h3>{place}. {text(finding["kind"])}{cost}</h3>\n'
        f'<p class="soft">{where}{interval(finding)}</p>\n<p>{spoken(finding["text"])}</p>\n'
        f"<p><strong>Do:</strong> {spoken(finding['remedy'])}</p>\n"
        + (f'<p class="soft">{shown}</p>\n' if shown else "")
        + "</article>\n"
    )


def _findings(document: Json, pictures: Mapping[int, Json]) -> str:
    findings = sorted(document["findings"], key=lambda finding: finding["kind"] in WITHOUT_BANDS)
    head = ("finding", "connection", "when", "times", "lost", "packets", "what happened, and what helps")
    rows = (
        [
            whole(
                f'<span class="swatch g-{group_of(finding["kind"])}" aria-hidden="true"></span>'
                + to_picture(finding, pictures, text(finding["kind"]))
            ),
            "-" if finding["connection"] is None else f"{finding['connection']}",
            whole(interval(finding)),
            str(finding["count"]),
            whole(lost(finding)),
            ", ".join(map(str, finding["packets"])) or "-",
            f"{spoken(finding['text'])} <strong>Do:</strong> {spoken(finding['remedy'])}",
        ]
        for finding in findings[:MOST_FINDINGS]
    )
    shown = table(f"Findings, {min(len(findings), MOST_FINDINGS)} of {len(findings)}", head, rows, "wide")
    return shown + (f"<p>{_more(len(findings) - MOST_FINDINGS)}</p>\n" if len(findings) > MOST_FINDINGS else "")


def _more(count: int) -> str:
    return f"{count} more {'is' if count == 1 else 'are'} in the JSON document."


def _connections(document: Json, worth: Sequence[Json], pictures: Mapping[int, Json]) -> str:
    cost: dict[int, float] = {}
    for entry in worth:
        cost[entry["connection"]] = cost.get(entry["connection"], 0.0) + entry["lost_seconds"]
    ranked = sorted(
        document["connections"], key=lambda entry: (-cost.get(entry["connection"], -1.0), entry["connection"])
    )
    rows = []
    for entry in ranked[:MOST_CONNECTIONS]:
        number = entry["connection"]
        name = f'<a href="#picture-{number}">{number}</a>' if number in pictures else str(number)
        sent, received = (print_bytes(count) for count in entry["bytes"])
        life = seconds(entry["end_seconds"] - entry["begin_seconds"])
        spent = seconds(cost[number]) if cost.get(number) else "-"
        rows.append([name, ends(entry), *map(whole, (life, spent, sent, received)), parts.bar(entry)])
    head = ("connection", "client → server", "life", "lost", "sent", "received", "time by cause")
    shown = table(f"Connections, {len(rows)} of {len(ranked)}", head, rows, "wide")
    more = f"<p>{_more(len(ranked) - len(rows))}</p>\n" if len(ranked) > len(rows) else ""
    return shown and parts.legend() + shown + more


def _pictures(document: Json, pictures: Mapping[int, Json], notes: Sequence[str]) -> str:
    connections = {connection["connection"]: connection for connection in document["connections"]}
    remarks = "".join(f'<p class="soft">{text(note)}</p>\n' for note in notes)
    if not pictures:
        return remarks
    shown = "".join(_picture(document, connections[number], pictures) for number in pictures)
    return (
        f'{remarks}<p class="soft without-script">The pictures need JavaScript; all else on this page does not.</p>\n'
        '<p class="soft needs-script" hidden>Drag to zoom into a time, double-click for the whole; after a click the '
        "wheel zooms, too. Keys: + and -, arrows, 0 for the whole, N and P for the next and previous finding.</p>\n"
        f"{shown}"
    )


def _mss(connection: Json) -> list[str | None]:
    """What each SYN announced, or at least, by the largest segment of the other end; `None`: nobody knows."""
    largest = reversed(connection["largest_segment_bytes"])
    return [
        f"at least {least}" if announced is None and least else announced
        for announced, least in zip(connection["mss"], largest, strict=True)
    ]


def _picture(document: Json, connection: Json, pictures: Mapping[int, Json]) -> str:
    number = connection["connection"]
    findings = [
        item for item in document["findings"] if item["connection"] == number and item["kind"] not in WITHOUT_BANDS
    ]
    items = "".join(
        f"<li>{to_picture(item, pictures, text(item['kind']))}"
        f"{f', {lost(item)} lost' if item['lost_seconds'] else ''}</li>"
        for item in findings
    )
    mss, scales = (
        " and ".join("none" if item is None else str(item) for item in values)
        for values in (_mss(connection), connection["window_scale"])
    )
    facts = (
        f"RTT {seconds(connection['rtt_seconds'])}, MSS {mss}, window scale {scales}, "
        f"SACK {'on' if connection['sack'] else 'off'}, timestamps {'on' if connection['timestamps'] else 'off'}; "
        + "; ".join(_sent(connection, side) for side in (0, 1))
    )
    return (
        f'<section class="picture" aria-labelledby="picture-{number}"><h3 id="picture-{number}" tabindex="-1">'
        f'Connection {number}: {ends(connection)}</h3>\n<p class="soft">{text(facts)}.</p>\n'
        f"{f'<ul class=found>{items}</ul>' if items else ''}\n"
        f'<div class="plot" data-connection="{number}" hidden></div></section>\n'
    )


def _sent(connection: Json, side: int) -> str:
    """What one end sent, in words."""
    end, resent = ("client", "server")[side], connection["resent_segments"][side]
    count = connection["data_segments"][side]
    if not count:
        return f"the {end} sent no data"
    resent_text = f" ({resent} of them again)" if resent else ""
    return f"the {end} sent {print_bytes(connection['bytes'][side])} in {_count(count, 'segment')}{resent_text}"


def _packed(document: Json, pictures: Mapping[int, Json]) -> str:
    """For each picture what the scripts need, with its marks compressed."""
    connections = {entry["connection"]: entry for entry in document["connections"]}
    packed = {}
    for number, picture in pictures.items():
        connection = connections[number]
        marks = json.dumps(picture["directions"], separators=(",", ":")).encode()
        packed[number] = {
            "ends": [connection["client"], connection["server"]],
            "begin": picture["begin_seconds"],
            "end": connection["end_seconds"],
            "rtt": connection["rtt_seconds"],
            "bands": list(_bands(document, number, picture)),
            "marks": base64.b64encode(zlib.compress(marks, 6)).decode(),
        }
    # No text in it may end the script.
    return json.dumps(packed, separators=(",", ":")).replace("<", "\\u003c")


def _bands(document: Json, number: int, picture: Json) -> Iterator[Json]:
    """The stretches of each finding; where the picture has none of its kind, all of its time."""
    stretches = {entry["kind"]: entry for entry in picture["stretches"]}
    for entry in document["findings"]:
        kind = entry["kind"]
        if entry["connection"] != number or kind in WITHOUT_BANDS:
            continue
        spans = [[entry["begin_seconds"], entry["end_seconds"]]]
        if kind in stretches:
            first = picture["begin_seconds"]
            pairs = zip(*(_summed(stretches[kind][name]) for name in ("begin", "end")), strict=True)
            spans = [[first + nanoseconds / 1e9 for nanoseconds in pair] for pair in pairs]
        yield {"kind": kind, "group": group_of(kind), "costs": entry["lost_seconds"] > 0, "spans": spans}


def _summed(differences: Sequence[int]) -> Iterator[int]:
    value = 0
    for difference in differences:
        value += difference
        yield value


def _captures(document: Json) -> str:
    rows = (
        [
            text(capture["file"]) + (f" ({text(capture['interface'])})" if capture["interface"] else ""),
            str(capture["packets"]),
            str(capture["segments"]),
            seconds(capture["seconds"]),
            "-" if capture["missed_packets"] is None else str(capture["missed_packets"]),
            text(capture["broken"]) if capture["broken"] else "-",
        ]
        for capture in document["captures"]
    )
    head = ("capture", "packets", "TCP segments here", "length", "packets that it lacks", "read up to here only")
    return table("What was read", head, rows)
