"""The live page of a study that has not ended. Everything from outside is escaped; nothing is loaded but itself."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from framegauge import __version__
from framegauge.live.state import State
from framegauge.report.page.markup import Cell, hash_of, lines, section, style, table, text
from framegauge.results.journal import Run
from framegauge.summary import words
from framegauge.summary.intervals import CORRECTED, shown

__all__ = ["REFRESH_SECONDS", "message", "page"]

REFRESH_SECONDS = 5  # without JavaScript; with it, live.js asks more often
MOST_RUNS = 200
WIDTH, HEIGHT = 240, 22  # of the drawing of an interval
_STYLE = """\
progress { width: 100%; height: 1.1rem; accent-color: var(--first); }
.interval-drawn { display: block; width: 15rem; max-width: 100%; height: 1.4rem; }
.interval-drawn .band { fill: var(--band); } .interval-drawn .same { stroke: var(--soft); stroke-dasharray: 2 2; }
.interval-drawn .now { stroke: var(--first); stroke-width: 5; } .interval-drawn .then { stroke: var(--soft); }
.interval-drawn circle { fill: var(--first); stroke: var(--page); }
"""


def page(state: State) -> str:
    """The whole page."""
    runs = "".join((_estimates(state), _excluded(state), _runs(state)))
    return _whole(
        f"{state.progress if state.is_running else 'Not running'} · {state.question}",
        f'<p class="soft brand">framegauge study · {text(state.scope)} · live</p>\n',
        f"<h1>{text(state.question)}</h1>\n{_status(state)}{runs}",
    )


def message(said: str) -> str:
    """The page where there is no study to show: why."""
    inside = f'<h1>framegauge study</h1>\n<p class="answer" id="status" role="status">{text(said)}</p>\n'
    return _whole(said, '<p class="soft brand">framegauge study · live</p>\n', inside)


def _whole(title: str, head: str, inside: str) -> str:
    script = files("framegauge.live").joinpath("live.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {hash_of(script)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        f'<noscript><meta http-equiv="refresh" content="{REFRESH_SECONDS}"></noscript>\n',
        f"<title>{text(title)}</title>\n<style>\n{style()}{_STYLE}</style>\n</head>\n",
        f'<body data-live="yes">\n<header>\n{head}</header>\n<main id="live">\n{inside}</main>\n',
        '<p id="gone" class="soft" role="status" hidden>framegauge gives no answer: what is shown may be old.</p>\n',
        f'<footer class="soft"><p>framegauge {text(__version__)}. When the study ends, its report is shown here.</p>',
        f"</footer>\n<script>{script}</script>\n</body>\n</html>\n",
    ])  # fmt: skip


def _status(state: State) -> str:
    status, more = state.progress, ""
    if not state.is_running:
        status = f"Not running, and stopped before {state.progress}"
        command = shlex.join(["framegauge", "study", "--resume", "--out", str(state.folder)])
        more = (
            "<p>No process of this machine writes to the folder. If none on another machine does, it goes on with "
            f"<code>{lines(command)}</code></p>\n"
        )
    return (
        f'<p class="answer" id="status" role="status">{text(status)}</p>\n{more}'
        f'<progress aria-label="share of the planned runs" max="1" value="{state.share:.4f}"></progress>\n'
    )


def _estimates(state: State) -> str:
    """The intervals as they are after the last whole block, beside those of the block before."""
    if not state.verdicts:
        return section("estimates", "Intervals so far", "<p>They are here once every run of a block is over.</p>\n")
    before = {_key(verdict): ends for verdict in state.before if (ends := shown(verdict))}
    cells = words.Cells(state.verdicts)
    rows: list[list[Cell]] = [
        [
            ", ".join(filter(None, (words.metric(verdict["metric"]), cells.of(verdict)))),
            words.levels(verdict["treatment"]) + (" (A/A)" if words.is_control(verdict) else ""),
            "-" if verdict["ratio"] is None else words.change(verdict["ratio"], shown(verdict)),
            words.change_interval(ends) if (ends := shown(verdict)) else "-",
            words.change_interval(previous) if (previous := before.get(_key(verdict))) else "-",
            "-" if verdict.get("margin") is None else words.margin(verdict["margin"]),
            str(verdict["runs"]),
        ]
        for verdict in state.verdicts
    ]
    head = ("metric", "treatment", "change", CORRECTED, "one block before", "margin", "runs")
    blocks = f"{state.blocks} whole block{'' if state.blocks == 1 else 's'}"
    key = (
        f'<p class="soft">After {blocks}. Thick: the {CORRECTED}; thin: that of one block before; grey band: '
        "no practical difference. There are no verdicts before the study ends: who stops when an interval pleases is "
        "wrong more often than the interval says.</p>\n"
    )
    drawn = "".join(_figures(state.verdicts, before, cells))
    return section("estimates", "Intervals so far", key + drawn + table("Comparisons so far", head, rows))


def _key(verdict: Mapping[str, Any]) -> str:
    sides = (verdict["workload"], verdict["conditions"], verdict["metric"], verdict["baseline"], verdict["treatment"])
    return repr([{**side, "estimate": None} if isinstance(side, Mapping) else side for side in sides])


def _figures(
    verdicts: Sequence[Mapping[str, Any]], before: Mapping[str, Sequence[float]], cells: words.Cells
) -> Iterator[str]:
    """One drawing a comparison; all of a metric have one logarithmic axis."""
    yield '<div class="grid">\n'
    for number, entry in enumerate(verdicts):
        if shown(entry) is None or words.is_control(entry):
            continue
        name = ", ".join(filter(None, (
            words.metric(entry["metric"]), cells.of(entry), words.levels(entry["treatment"]),
        )))  # fmt: skip
        yield f"<figure><figcaption>{text(name)}</figcaption>\n"
        yield _interval(number, name, entry, before.get(_key(entry)), _most(verdicts, entry["metric"])) + "</figure>\n"
    yield "</div>\n"


def _most(verdicts: Sequence[Mapping[str, Any]], metric: str) -> float:
    """How far the axis of a metric reaches to either side, as the logarithm of a ratio."""
    entries = [entry for entry in verdicts if entry["metric"] == metric and shown(entry) is not None]
    ends = [abs(math.log(end)) for entry in entries for end in shown(entry) or () if end > 0 and math.isfinite(end)]
    return min(math.log(10), max([1.5 * math.log1p(entries[0].get("margin") or 0.0), 1e-6, *ends]) * 1.05)


def _interval(number: int, name: str, verdict: Mapping[str, Any], before: Sequence[float] | None, most: float) -> str:
    def at(ratio: float) -> float:
        place = math.log(ratio) / most if ratio > 0 else -1.0
        return WIDTH / 2 * (1 + max(-1.0, min(1.0, place)))

    def line(look: str, ends: Sequence[float], y: float) -> str:
        return f'<line class="{look}" x1="{at(ends[0]):.1f}" x2="{at(ends[1]):.1f}" y1="{y}" y2="{y}"/>'

    margin, middle = verdict.get("margin") or 0.0, HEIGHT / 2
    left, right = at(1 / (1 + margin)), at(1 + margin)
    ends = shown(verdict) or (1.0, 1.0)
    note = f"{words.change(verdict['ratio'], ends)}, {words.change_interval(ends)}"
    return "".join([
        f'<svg class="interval-drawn" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="i{number}t" '
        f'aria-describedby="i{number}d"><title id="i{number}t">{text(name)}</title><desc id="i{number}d">{text(note)}',
        f'</desc><rect class="band" x="{left:.1f}" width="{right - left:.1f}" y="0" height="{HEIGHT}"/>',
        f'<line class="same" x1="{WIDTH / 2}" x2="{WIDTH / 2}" y1="0" y2="{HEIGHT}"/>',
        line("then", before, HEIGHT - 3) if before else "", line("now", ends, middle),
        f'<circle cx="{at(verdict["ratio"]):.1f}" cy="{middle}" r="4.5"/></svg>\n',
    ])  # fmt: skip


def _excluded(state: State) -> str:
    rows = [[str(run.number), str(run.block + 1), _of(run, state.treatment), "; ".join(run.excluded)]
            for run in reversed(state.runs) if run.excluded]  # fmt: skip
    run_table = table("Excluded runs, with all reasons", ("run", "block", "of", "reasons"), rows[:MOST_RUNS])
    return section("excluded", "Excluded runs", run_table + _more(rows))


def _runs(state: State) -> str:
    rows = [
        [
            str(run.number),
            str(run.block + 1),
            _of(run, state.treatment),
            f"{run.seconds:.1f} s",
            "excluded" if run.excluded else "counts",
        ]
        for run in reversed(state.runs)
    ]
    run_table = table("Runs, the last one first", ("run", "block", "of", "took", ""), rows[:MOST_RUNS])
    return section("runs", "Runs", (run_table or "<p>No run is over yet.</p>\n") + _more(rows))


def _more(rows: Sequence[object]) -> str:
    return f"<p>{len(rows) - MOST_RUNS} older ones are in the journal.</p>\n" if len(rows) > MOST_RUNS else ""


def _of(run: Run, treatment: str) -> str:
    level = words.condition(treatment, run.level)
    role = "" if run.role == "treatment" else " (A/A)" if run.role == "control" else f" ({run.role})"
    return ", ".join(filter(None, (f"{run.workload}, {level}{role}", words.conditions(run.conditions))))
