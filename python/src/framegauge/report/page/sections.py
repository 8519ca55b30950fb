"""The sections of a study's page, each a string of HTML, empty if there is nothing to show."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from framegauge.report import causes, evidence, method
from framegauge.report.page import (
    changes as changes_page,
    decision as decision_page,
    few as few_page,
    flows as contention_page,
    network as network_page,
    web as web_page,
)
from framegauge.report.page.markup import Cell, figure, items, lines, section, table, text
from framegauge.report.pictures import records
from framegauge.report.pictures.material import Material
from framegauge.report.pictures.series import SERIES, Cell as Courses
from framegauge.results.journal import Run
from framegauge.summary import big_tcp, intervals, levels, lost_time, units, words
from framegauge.summary.interactions import ALONE, sentences
from framegauge.summary.intervals import CORRECTED
from framegauge.summary.units import unit_scale

__all__ = ["SECTIONS", "courses_json"]

MOST_OPEN = 4  # with more cells than this, the courses of each have to be opened
_SERIES_TITLES = {"goodput": "goodput", "srtt": "srtt", "cwnd": "cwnd_bytes"}


def _grid(material: Material, kind: str) -> str:
    pictures = material.of(kind)
    return f'<div class="grid">\n{"".join(map(figure, pictures))}</div>\n' if pictures else ""


def _effects(material: Material) -> str:
    has_controls = any(map(words.is_control, material.summary["verdicts"]))
    controls = "Hollow diamond: A/A, the baseline against itself. " if has_controls else ""
    key = (
        f'<p class="soft">Each row is one comparison with the baseline. Line: the {text(CORRECTED)}, which decides the '
        f"verdict: all comparisons are judged together. Grey band: no practical difference. {controls}Logarithmic "
        "axis.</p>\n"
    )
    common = f"<p>{text(common_text)}</p>\n" if (common_text := method.common(material)) else ""
    rows: list[list[Cell]] = []
    for row in method.verdicts(material):
        kind = row[-1].split(" [")[0].replace(" ", "-")
        rows.append([*row[:-1], (row[-1], f"v {kind}")])
    notes = "".join(f"<li>{text(line)}</li>" for line in method.warnings(material))
    note_list = f"<p>Notes:</p>\n<ol>{notes}</ol>\n" if notes else ""
    verdicts = table("All comparisons and their verdicts", method.verdict_head(material), rows)
    return section("effects", "Effects", common + key * bool(rows) + _grid(material, "effects") + verdicts + note_list)


def _levels(material: Material) -> str:
    notes = list(levels.lines(material.summary))
    if not notes:
        return ""
    key = (
        '<p class="soft">A level is enough if it is not worse than the largest by more than the margin (grey band). '
        "Levels are tested from the largest down, and the first that is not enough ends the test; at most "
        f"{text(units.error(material.summary['family']['error']))} of such studies call a level enough that is not. "
        f"Bars: against the baseline, {text(CORRECTED)}. Dashed: what the headers "
        "alone would give, from the goodput ceilings.</p>\n"
    )
    inside = items(notes) + _grid(material, "levels") + key
    return section("levels", "The smallest level that is enough", inside)


def _big_tcp(material: Material) -> str:
    notes = list(big_tcp.lines(material.summary))
    intro = (
        '<p class="soft">Shares are of the logarithm of the effect (Fieller\'s intervals). These figures are '
        "descriptive, and hold all together; verdicts apply to comparisons only.</p>\n"
    )
    return section("big-tcp", "What larger aggregates give", items(notes) + intro) if notes else ""


def _interactions(material: Material) -> str:
    entries = material.summary.get("interactions", ())
    notes = list(sentences(entries)) if material.summary["faithful"] else []
    if not any(interaction["factors"] for interaction in entries):
        return ""
    lead = (
        f"<p>How the effect depends on what else was varied: {text(ALONE)}.</p>\n"
        if notes
        else "<p>This study is no evidence, so nothing follows from these figures.</p>\n"
        if not material.summary["faithful"]
        else "<p>Nothing else that was varied changes the effect by more than chance.</p>\n"
    )
    rows = [
        [
            words.metric(entry["metric"]),
            f"{entry['workload']}, {words.levels(entry['treatment'])}",
            ", ".join(words.condition(name, level) for name, level in effect["levels"].items()),
            label,
            words.change(effect["ratio"], effect["ci95"]),
            words.change_interval(effect["ci95"]),
        ]
        for entry in entries
        if entry["factors"]
        for label, effects in (("effect", entry["at"]), ("differs from the first by", entry["contrasts"]))
        for effect in effects
    ]
    head = ("metric", "of", "with", "", "change", f"interval ({intervals.label(material.summary)})")
    return section(
        "interactions", "What the effect depends on",
        lead + items(notes) + _grid(material, "interactions") + table("Effects by level, and interactions", head, rows),
    )  # fmt: skip


def _why(material: Material) -> str:
    intro = (
        "<p>Each change of goodput as the product of its parts. Header overhead: the two goodput ceilings, exact. "
        "Window growth: what a short transfer gains from slow start with larger segments. CPU: only where the hosts’ "
        "CPUs, or one core of simulated ones, were busy. The rest is unexplained until an arm isolates its cause.</p>\n"
    )
    parts = table("Parts of each change of goodput", causes.head(material.summary), causes.rows(material.summary))
    return section("why", "Why", parts and intro + parts)


def _lost_time(material: Material) -> str:
    notes = list(lost_time.lines(material.summary)) if material.summary["faithful"] else []
    intro = (
        '<p class="soft">The packets of every run were captured and diagnosed: each gap of a connection has one cause '
        "(<code>framegauge docs diagnose</code> has their meanings). Shares are of the connections’ time. A change is "
        "that of the time for each byte, as a share of the baseline’s, and the causes’ changes add up to the whole. "
        "These figures describe; verdicts do not rest on them.</p>\n"
    )
    time_table = table("Time of connections, by cause", lost_time.HEAD, lost_time.rows(material.summary))
    return section("lost", "Where the time of connections went", time_table and items(notes) + intro + time_table)


def _runs(material: Material) -> str:
    figures = _grid(material, "runs")
    key = (
        '<p class="soft">Each mark is one run, the first block at the top of its row; the stroke is the median. Hollow '
        "crosses are excluded runs, which do not count.</p>\n"
    )
    return section("runs", "Every run", figures and key + figures)


def _ceiling(material: Material) -> str:
    figures = _grid(material, "ceiling")
    key = (
        '<p class="soft">The ceiling is what one link leaves for application bytes after every header, gap and option: '
        "the highest possible goodput at that MTU.</p>\n"
    )
    return section("ceiling", "Goodput against its ceiling", figures and key + figures)


def _over_time(material: Material) -> str:
    if not material.courses:
        return ""
    key = (
        '<p class="soft">One run of each arm: the one nearest to its median. goodput counts acknowledged bytes; '
        "srtt and cwnd_bytes are means over the run’s flows.</p>\n"
        '<p class="soft needs-script" hidden>Drag over a chart to zoom in, or use the buttons; double-click shows all.'
        "</p>\n"
        '<p class="without-script">The charts of this section need JavaScript; the tables have their medians.</p>\n'
    )
    folded = len(material.courses) > MOST_OPEN
    parts = []
    for index, group in enumerate(material.courses):
        title = text(material.title_of(group.cell))
        inside = f'<div class="courses" data-cell="{index}" hidden></div>\n{_courses_table(material, group)}'
        parts.append(
            f"<details><summary><h3>{title}</h3></summary>\n{inside}</details>\n"
            if folded
            else f"<h3>{title}</h3>\n{inside}"
        )
    return section("time", "Over time", key + "".join(parts))


def _courses_table(material: Material, group: Courses) -> str:
    trims = _trims(material, group)
    rule = "<p>Left out of goodput as warm-up and cool-down by MSER-5, shaded in the charts:</p>\n" if trims else ""
    rows = []
    for course in group.courses:
        row = [material.looks[course.run.arm].label, str(course.run.number)]
        for name, unit in SERIES.items():
            values = [value for value in course.values[name] if value is not None]
            factor, scaled = unit_scale(unit, _most(group, name))
            row.append(f"{statistics.median(values) / factor:.4g} {scaled}" if values else "-")
        rows.append(row)
    head = ("arm", "run", *(f"{title}, median" for title in _SERIES_TITLES.values()))
    return rule + items(trims) + table(f"Medians over time, {material.title_of(group.cell)}", head, rows)


def _most(group: Courses, name: str) -> float:
    """The largest value of a series in any arm, which sets the unit for all of them."""
    return max((value for course in group.courses for value in course.values[name] if value is not None), default=1)


def courses_json(material: Material) -> str:
    """The data of the charts over time for the page's script, escaped for a script element."""
    cells: list[dict[str, Any]] = []
    for group in material.courses:
        charts = []
        for name, unit in SERIES.items():
            factor, scaled = unit_scale(unit, _most(group, name))
            rows = [
                [None if value is None else float(f"{value / factor:.4g}") for value in course.values[name]]
                for course in group.courses
            ]
            charts.append({"title": f"{_SERIES_TITLES[name]} ({scaled})", "rows": rows})
        arms = [material.looks[course.run.arm] for course in group.courses]
        cells.append({
            "title": material.title_of(group.cell), "seconds": list(group.seconds), "charts": charts,
            "trimmed": [_trimmed(course.run) for course in group.courses],
            "arms": [{"label": look.label, "role": look.role} for look in arms],
        })  # fmt: skip
    document = json.dumps(cells, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return document.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _trimmed(run: Run) -> list[tuple[float, float]]:
    """The parts of a run that do not count towards goodput, in seconds from its start."""
    steady = run.readings.get("steady")
    if not steady:
        return []
    parts = [(0.0, steady["begin_seconds"]), (steady["end_seconds"], steady["of_seconds"])]
    return [part for part in parts if part[1] - part[0] > 1e-3]


def _trims(material: Material, group: Courses) -> list[str]:
    """The same in words, for the arms that are shown."""
    trims = []
    for course in group.courses:
        steady = course.run.readings.get("steady")
        if steady:
            begin, end, span = (steady[f"{name}_seconds"] for name in ("begin", "end", "of"))
            label = material.looks[course.run.arm].label
            trims.append(f"{label}: {begin:.3g} s at the beginning and {span - end:.3g} s at the end, of {span:.3g} s")
    return trims


def _cpu(material: Material) -> str:
    intro = ""
    if cpu := material.summary.get("cpu"):
        shares = ", ".join(f"{name} {100 * cpu[name]:.0f} %" for name in records.USERS.values())
        intro = (
            f"<p>CPU time of the whole system in the median run: {text(shares)}. Reading the CPU meter took "
            f"{cpu['meter_seconds'] * 1e3:.1f}&nbsp;ms per run.</p>\n"
        )
    heads = {**records.USERS, **records.STATES}
    tables = _medians(material, "CPU time, core-seconds per gigabyte delivered, by user and by state", heads)
    title, caption = ("CPU and packets", "Packets, softirqs and queues, median run")
    if evidence.is_simulated(material.summary):
        title, caption = ("Packets", "Packets and queues, median run")
    return section("cpu", title, intro + _grid(material, "cpu") + tables + _medians(material, caption, records.PACKETS))


def _medians(material: Material, caption: str, heads: dict[str, str]) -> str:
    """A table with one row per arm and cell; columns without any value are left out."""
    cells = sorted({run.cell for run in material.saved.runs})
    medians = records.medians(material.readings)
    stats = [(cell, look.label, medians.get((cell, arm), {})) for cell in cells for arm, look in material.looks.items()]
    columns = {name: title for name, title in heads.items() if any(name in figures for *_, figures in stats)}
    rows = [
        [material.title_of(cell), arm, *(words.figure(figures[name]) if name in figures else "-" for name in columns)]
        for cell, arm, figures in stats
    ]
    return table(caption, ("comparison", "arm", *columns.values()), rows if columns else ())


def _method(material: Material) -> str:
    inside = items(method.design(material))
    inside += "<h3>Proof of the treatment</h3>\n<p>What was seen on the hosts, in packets and in live sockets.</p>\n"
    inside += table("Proof of the treatment, by arm", method.PROOF_HEAD, method.proof(material))
    inside += "<h3>Excluded runs</h3>\n"
    head = ("run", "block", "of", "arm", "reasons")
    inside += table("Excluded runs, with all reasons", head, method.excluded(material)) or "<p>None.</p>\n"
    inside += "<h3>Environment</h3>\n" + table("Environment", ("name", "value"), method.environment(material))
    return section("method", "Method", inside)


def _repeat(material: Material) -> str:
    study = (
        '<details class="data"><summary>The whole study.yaml</summary>'
        f"<pre><code>{lines(material.study)}</code></pre></details>\n"
        if material.study
        else ""
    )
    return section(
        "repeat", "How to repeat it",
        f"<pre><code>{lines(method.repeat(material))}</code></pre>\n"
        f"<p>The order of runs is the same on every machine.</p>\n{study}",
    )  # fmt: skip


SECTIONS: Sequence[Callable[[Material], str]] = (
    _effects, _levels, _big_tcp, _interactions, network_page.maps, _why, _lost_time, _runs, network_page.flow_times,
    few_page.section_of, contention_page.flows, contention_page.drops, network_page.ports,
    changes_page.section_of, web_page.section_of, _ceiling, _over_time, _cpu, _method, _repeat,
    decision_page.section_of,
)  # fmt: skip
