"""A change ticket as one HTML page that needs no network. It may load nothing and run nothing; all text is escaped."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from framegauge.printable import escaped, prose as text
from framegauge.report.page import tables
from framegauge.rollout.model import Json

__all__ = ["page"]

_STYLE = """\
:root { color-scheme: light dark; --page: #fff; --text: #1a1d21; --soft: #5a6370; --line: #d5dae1; --box: #f5f7f9;
  --good: #14602b; --bad: #8a1210; --between: #6b4500; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --text: #e8eaed; --soft: #a2acb8; --line: #363d45;
  --box: #1d2226; --good: #97dbac; --bad: #ffb9b3; --between: #f3cf7d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.25rem; margin: 0; color: var(--soft); font-weight: 600; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
.verdict { font-size: 1.4rem; font-weight: 650; padding: .6rem 1rem; border-left: .5rem solid; border-radius: .3rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .between { color: var(--between); }
.soft { color: var(--soft); }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 3px solid var(--soft); }
table { border-collapse: collapse; font-size: .93rem; margin: .3rem 0 1.2rem; }
caption { text-align: left; color: var(--soft); }
th, td { text-align: left; vertical-align: top; border: 1px solid var(--line); padding: .25rem .5rem; }
thead th { background: var(--box); overflow-wrap: normal; }
time { white-space: nowrap; }
code, pre { font: .88rem/1.45 ui-monospace, monospace; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: .3rem; padding: .6rem .75rem;
  overflow-x: auto; white-space: pre; overflow-wrap: normal; }
@media print { pre { white-space: pre-wrap; } }
"""
_AT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00:00|Z)")  # as the journal has times
_LOOKS = {"finished": ("good", "✓"), "undone": ("good", "✓"), "put_back": ("bad", "✗")}
_STAGES = {"hold": "hold routes", "link": "change interfaces", "release": "release routes"}


def page(ticket: Json, digest: str) -> str:
    """The whole page; `digest`: SHA-256 of the journal from which it was made."""
    runs: Sequence[Json] = ticket["runs"]
    last = runs[-1]
    look, sign = _LOOKS.get(last["outcome"], ("between", "!"))
    hosts = ", ".join(last["hosts"])
    title = f"MTU {last['asked']['target_mtu']} on {hosts}: {last['sentence']}"
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
        f"<title>Change ticket: {text(title)}</title>\n",
        f"<style>\n{_STYLE}{tables.style()}</style>\n</head>\n<body>\n<header>\n",
        f'<h1>Change ticket</h1>\n<p class="verdict {look}"><span aria-hidden="true">{sign}</span> {text(title)}</p>\n',
        f"<p>{text(last['question'])}</p>\n</header>\n<main>\n",
        *(_run(number, run, len(runs)) for number, run in reversed(list(enumerate(runs, 1)))),
        '</main>\n<footer>\n<h2>To audit it</h2>\n<p>Made from the journal beside it alone, whose SHA-256 is ',
        f"<code>{text(digest)}</code>. <code>framegauge rollout ticket --check FOLDER</code> makes it again and ",
        "compares every byte; <code>framegauge rollout undo FILE --journal FOLDER</code> takes the change back.</p>\n",
        "</footer>\n</body>\n</html>\n",
    ])  # fmt: skip


def _run(number: int, run: Json, runs: int) -> str:
    """All of one use of `apply` or `undo`."""
    request = run["asked"]
    waves = "; ".join(", ".join(wave) for wave in request["waves"])
    scope = "the subnets of the interface" if request["scope"] == "subnets" else "every route"
    rows = [
        ("verdict", run["sentence"]), ("who", f"{run['by']['user']} on {run['by']['machine']}"),
        ("began", run["began"]), ("ended", run["ended"] or "no end in the journal"),
        ("new MTU", f"{request['target_mtu']} bytes, for {scope}"), ("waves", waves),
        ("lease", f"{request['lease_seconds']:g} s"), ("forced", ", ".join(request.get("forced", ())) or "nothing"),
        ("framegauge", run["framegauge"]),
    ]  # fmt: skip
    name = f"run-{number}"
    head = f"{number} of {runs}: {run['kind']}" if runs > 1 else str(run["kind"])
    return "".join([
        f'<section aria-labelledby="{name}"><h2 id="{name}">{text(head)}</h2>\n',
        _table("What was asked, and how it ended", ("", ""), rows),
        _list("Why", run["why"]),
        _findings(run["findings"]),
        "".join(_proofs(run["proofs"])),
        _steps(run),
        "".join(_changes(run["changes"])),
        _afterwards(run["afterwards"]),
        _table("Course", ("when", "what"), [(entry["at"], entry["what"]) for entry in run["course"]]),
        "</section>\n",
    ])  # fmt: skip


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return tables.table(caption, head, (list(map(_shown, row)) for row in rows))


def _shown(value: object) -> str:
    """A cell: a time as people read it, and on one line."""
    at = _AT.fullmatch(str(value))
    return text(value) if at is None else f'<time datetime="{at[0]}">{at[1]} {at[2]} UTC</time>'


def _list(title: str, lines: Sequence[str]) -> str:
    inside = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<h3>{text(title)}</h3>\n<ul>{inside}</ul>\n" if inside else ""


def _findings(findings: Sequence[Json]) -> str:
    rows = [(row["severity"], row["where"], row["what"], row["found"], row["expected"], row["remedy"])
            for row in findings]  # fmt: skip
    head = ("severity", "where", "kind", "found", "expected", "remedy")
    return _table("Preflight: what stood against it", head, rows)


def _proofs(proofs: Sequence[Json]) -> Iterator[str]:
    """The first and the last proof as matrices; the others are in the course."""
    chosen = proofs if len(proofs) < 3 else [proofs[0], proofs[-1]]
    for place, proof in enumerate(chosen):
        name = "Before" if place == 0 else "After"
        for family, rows in sorted(proof["matrices"].items()):
            at = _AT.sub(r"\2 UTC", proof["at"])  # the day is that of the whole
            caption = f"{name}: packets of {proof['mtu']} bytes over IPv{family}, {at} ({proof['when']})"
            head = ("from, to", *proof["hosts"])
            yield _table(caption, head, [_matrix_row(source, proof, rows) for source in proof["hosts"]])
        yield _list("What did not pass", proof["faults"])


def _matrix_row(source: str, proof: Json, rows: Json) -> list[str]:
    cells = [source]
    for destination in proof["hosts"]:
        pair = rows.get(source, {}).get(destination)
        cells.append("" if source == destination else "not probed" if pair is None else _cell(pair))
    return cells


def _cell(pair: Json) -> str:
    mss = "" if pair["mss_bytes"] is None else f", MSS {pair['mss_bytes']}"
    if pair["verdict"] == "carries_target":
        return f"✓ passes{mss}"
    size = pair["path_mtu_bytes"]
    return f"✗ {str(pair['verdict']).replace('_', ' ')}{'' if size is None else f' above {size}'}{mss}"


def _steps(run: Json) -> str:
    rows = [
        [
            str(number), text(step["host"]), text(_STAGES.get(step["kind"], step["kind"])), _typed(step["ip"]),
            _typed(step["ip_undo"]),
        ]
        for number, step in enumerate(run["steps"], 1)
    ]  # fmt: skip
    caption = "Every change with its undo, as ip has it; what framegauge ran is in ticket.json"
    return tables.table(caption, ("", "host", "stage", "change", "undo"), rows)


def _typed(lines: Sequence[str]) -> str:
    return "<br>".join(f"<code>{escaped(line)}</code>" for line in lines)


def _changes(changes: Sequence[Json]) -> Iterator[str]:
    """Files by which owners keep the MTU."""
    for change in changes:
        reloads = "".join(f"# then: {shlex.join(command)}\n" for command in change["reload"])
        what = f"What has {change['owner']} on {change['host']} keep it: {change['path']}"
        yield f"<h3>{text(what)}</h3>\n"
        yield _block(change["diff"] + reloads)
        back = "".join(f"# then: {shlex.join(command)}\n" for command in change["undo"]["reload"])
        yield f"<details><summary>Its undo</summary>\n{_block(change['undo']['diff'] + back)}</details>\n"


def _afterwards(containers: Sequence[Json]) -> str:
    """What containers are to have; nothing where there are none."""
    rows = [
        [row["host"], row["what"], str(row["now"] or "not told"), str(row["mtu"]), row["how"]] for row in containers
    ]
    return _table("Containers, afterwards", ("host", "what", "now", "then", "how"), rows) if rows else ""


def _block(value: Any) -> str:
    """Lines as they are."""
    return f"<pre>{chr(10).join(map(escaped, str(value).splitlines()))}</pre>\n"
