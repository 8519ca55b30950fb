"""The published study's figures next to ours, and what explains the differences: docs/measured/reproduction.md.

    .venv/bin/python -m bench.reproduction --run --dry-run
    .venv/bin/python -m bench.reproduction --run --write docs/measured/reproduction.md
    .venv/bin/python -m bench.reproduction --run --only short --only many
    .venv/bin/python -m bench.reproduction results/published-short results/published-many …

With --run it first runs the studies of bench/published/ into results/, or what is left of them, and says how long that
takes; with --dry-run it says no more than that. Rows of studies that were not run are "not measured". Hadoop's is among
them only with --hadoop, because it takes ten hours; without it, its figures are left out. A published figure is a range
as wide as its rounding; it agrees with ours if our 95 % interval touches that range. Where they differ, arms isolate
candidates: a difference is explained by an arm that moves our figure by more than chance, and into that range.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import published_arms, published_conclusion, published_hadoop, published_rows, published_web
from bench.published_rows import PUBLISHED, Published

from framegauge.experiment.planning import total_seconds
from framegauge.quantities import print_seconds
from framegauge.report import causes
from framegauge.results.journal import Saved, read
from framegauge.study import file as study_file
from framegauge.study.blocks import order
from framegauge.summary import words
from framegauge.summary.document import summarise

# The folders in results/, and the studies that fill them.
STUDIES = {f"published-{name}": f"bench/published/{name}.yaml" for name in published_rows.STUDIES}
# What a study needs of the whole machine, where no study may set it: files of the kernel, and what they say meanwhile.
MACHINE = {"published-ten-ms-hystart": (Path("/sys/module/tcp_cubic/parameters/hystart"), "0")}
COMMAND = "python -m bench.reproduction --run --write docs/measured/reproduction.md"
Summaries = Mapping[str, Mapping[str, Any]]  # by the name of the study


def rows(summaries: Summaries) -> Iterator[tuple[Published, Mapping[str, Any] | None, list[str]]]:
    """The table's rows with the figure and verdict that each is of: case, published, ours, interval, verdict, whether
    they agree, and why not."""
    for asked in (*PUBLISHED, *(Published(**each) for each in published_hadoop.figures())):
        there = list(published_arms.answers(summaries, asked))
        if not there and not asked.optional:
            yield asked, None, [_case(asked), asked.said, "not measured", "", "", "", ""]
        for verdict in there:
            interval = verdict["ci95"]
            agree = published_arms.agrees(asked, verdict)
            why = ""
            if agree == "no":
                arms = published_arms.judged(summaries, asked, verdict)
                why = next((f"explained: {each.said}" for each in arms if each.explains), "")
                why = why or next((f"in part: {each.said}" for each in arms if each.helps), "unexplained")
            yield (
                asked,
                verdict,
                [
                    f"{_case(asked, verdict)}, {words.levels(verdict['treatment'])}",
                    asked.said,
                    "-" if verdict["ratio"] is None else _values(verdict),
                    words.change_interval(interval),
                    verdict["verdict"],
                    agree,
                    why,
                ],
            )


def _values(verdict: Mapping[str, Any]) -> str:
    before, after = (words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment"))
    return f"{before} → {after}, {words.change(verdict['ratio'], verdict['ci95'])}"


def _case(asked: Published, verdict: Mapping[str, Any] | None = None) -> str:
    own = verdict["workload"] if verdict is not None and verdict["workload"] != "stream" else ""
    said = words.conditions(verdict["conditions"] if verdict and own else asked.conditions)
    one = "one-to-one, " if asked.conditions.get("pattern") == "one-to-one" else f"{own}, ".lstrip(", ")
    return ", ".join(part for part in (f"{one}{said}", words.metric(asked.metric), asked.remark) if part)


def page(studies: Sequence[Saved], summaries: Sequence[Mapping[str, Any]], source: str) -> str:
    """The document."""
    by_name = {_name(saved): summary for saved, summary in zip(studies, summaries, strict=True)}
    found = list(rows(by_name))
    sites = list(published_web.lines(studies))
    has_hadoop = any(each["workload"] == "mapreduce" for summary in summaries for each in summary["verdicts"])
    hadoop, last = published_hadoop.remarks(has_hadoop)
    site = "the web site at a smaller load" if sites else "the web site only as requests of its size"
    lines = [
        *_head([row for _, _, row in found], source),
        *published_arms.section(by_name, found),
        *_made_of(studies, summaries),
        *sites,
        "## What was not carried at full rate",
        "",
        "Six senders and six receivers at the same time are more than one thread of the fabric carries at 1 Gb/s",
        "on two CPUs without losing fidelity. That case runs at 100 Mb/s per link, with sizes to match; whether",
        f"that was carried is stated above. {hadoop}, and {site}.",
        "CPU cost is that of a virtual NIC, in time, where the study counted cycles.",
        *last,
        "",
        "Two arms are less than they are called. A core for each host and its interrupts (`short-cores`): each host's",
        "programs and what it receives (RPS) have their own CPU, but with two CPUs the receiver shares its with the",
        "fabric. CUBIC without HyStart (`ten-ms-hystart`): a setting of the whole machine, which no study changes; the",
        "script that runs the studies turns HyStart off before this one and on again after it.",
        "",
        *published_conclusion.lines(found, by_name),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _name(saved: Saved) -> str:
    return saved.folder.name.removeprefix("published-")


def _head(table: Sequence[Sequence[str]], source: str) -> list[str]:
    counts = {word: sum(row[5] == word for row in table) for word in ("yes", "no")}
    why = {word: sum(row[6].startswith(word) for row in table) for word in ("explained", "in part", "unexplained")}
    return [
        "# A published study, run again",
        "",
        f"Written by `{source}`",
        "([how](../how-to/reproduce-a-paper.md)) from the studies in `bench/published/`, on",
        f"{platform.machine()}, Linux {_kernel()}, two CPUs. Published: *Jumbo Frames or Not: That is the Question!*",
        "(Purdue TR 13-006, 2013): twelve servers on one switch, 1 Gb/s, Linux 3.0, real NICs with TSO, LRO and",
        "interrupt coalescing, FTP. Ours: the same design on the emulated rack, with one new TCP connection per",
        "transfer instead of FTP, a virtual NIC, and this kernel.",
        "",
        f"**{counts['yes']} of {len(table)} figures agree, {counts['no']} differ.** Of these, an arm explains",
        f"{why['explained']}, {why['in part']} in part, and {why['unexplained']} stay unexplained. A figure agrees if",
        'our 95 % interval overlaps the published one with its rounding. An interval that also contains "no effect"',
        "cannot tell, nor can one that reaches beyond 20 % where the published figures are equal; a suspect one is no",
        "evidence.",
        "",
        "| case | published | ours | 95 % interval | verdict | agree | why not |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in table),
        "",
    ]


def _made_of(studies: Sequence[Saved], summaries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("## What our own changes are made of", "")
    yield from ("Each change of goodput as the product of its parts ([statistics.md](../why/statistics.md)).", "")
    for saved, summary in zip(studies, summaries, strict=True):
        said = [line for line in causes.lines(summary) if "MTU 9000" in line]
        blocks, excluded = summary["stopping"]["blocks"], len(summary["excluded"])
        yield f"`{_name(saved)}`: {len(saved.runs)} runs in {blocks} blocks, {excluded} excluded; {_faith(summary)}."
        yield from ("", *(_item(line) for line in said), *([""] if said else []))


def _item(line: str) -> str:
    return textwrap.fill(line, 120, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _kernel() -> str:
    return platform.release().split("-")[0]


def _faith(summary: Mapping[str, Any]) -> str:
    if summary["suspect"]:
        more = len(summary["suspect"]) - 1
        return f"suspect: {summary['suspect'][0]}" + (f" (and {more} more)" if more else "")
    return "faithful" if summary["faithful"] else "not faithful"


def left(folder: Path, study: str) -> float:
    """About how long what is left of a study takes at most, in seconds: it may be settled sooner."""
    asked = study_file.load(study)
    if not (folder / "results.json").exists():
        return total_seconds(asked)
    saved = read(folder)
    filled = len({run.key for run in saved.runs if not run.excluded})
    return total_seconds(asked) * max(0.0, 1 - filled / len(order(asked)))


def tell(missing: Mapping[str, float]) -> None:
    """Says how long the studies take that are left."""
    told = ", ".join(f"{name} {print_seconds(round(seconds), 3)}" for name, seconds in missing.items() if seconds)
    print(
        f"left to run: at most about {print_seconds(round(sum(missing.values())), 3)} ({told or 'nothing'})",
        file=sys.stderr,
    )


def run_all(results: Path, studies: Mapping[str, str], missing: Mapping[str, float]) -> list[Path]:
    """Runs what is left of these studies; their folders. Ctrl-C loses nothing: the same command goes on."""
    program = str(Path(sys.executable).with_name("framegauge"))
    for name, study in studies.items():
        folder = results / name
        if not missing[name]:
            continue
        given = ["--resume"] if folder.exists() else [study]
        with machine(name):
            ended = subprocess.run([program, "study", *given, "--out", str(folder)], check=False).returncode
        # 3: not faithful, or nothing judged; the document says so.
        if ended not in (0, 3):
            raise SystemExit(f"{study}: the study failed or was interrupted, see above; the same command goes on")
    return [results / name for name in studies]


@contextmanager
def machine(study: str) -> Iterator[None]:
    """What a study needs of the whole machine is set meanwhile, and put back, also after Ctrl-C."""
    if study not in MACHINE:
        yield
        return
    file, value = MACHINE[study]
    before = file.read_text()
    try:
        file.write_text(value)
    except OSError as error:
        raise SystemExit(f"{file}: {error.strerror}: {study} needs root, and a kernel that has this setting") from None
    print(f"{file}: {value} while {study} runs", file=sys.stderr)
    try:
        yield
    finally:
        file.write_text(before)


def _wanted(name: str, only: Sequence[str] | None) -> bool:
    return only is None or name.removeprefix("published-") in only


def main() -> None:
    """Run if asked to, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="results of the studies")
    parser.add_argument("--run", action="store_true", help="run what is left of the studies first, into results/")
    parser.add_argument("--hadoop", action="store_true", help="with --run: also Hadoop, which takes ten hours")
    parser.add_argument("--only", action="append", metavar="NAME", help="with --run: this study, and others so named")
    parser.add_argument("--dry-run", action="store_true", help="with --run: say what is left to run, and for how long")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the document")
    options = parser.parse_args()
    studies = {**STUDIES, **(published_hadoop.STUDIES if options.hadoop else {})}
    if strange := [name for name in options.only or [] if f"published-{name}" not in studies]:
        known = ", ".join(name.removeprefix("published-") for name in studies)
        parser.error(f"--only: found {strange[0]}, expected one of {known}")
    studies = {name: file for name, file in studies.items() if _wanted(name, options.only)}
    folders = list(options.folders)
    if options.run:
        missing = {name: left(Path("results") / name, study) for name, study in studies.items()}
        tell(missing)
        if options.dry_run:
            return
        folders += run_all(Path("results"), studies, missing)
    if not folders:
        parser.error("expected folders of results, or --run")
    done = [read(folder) for folder in folders]
    text = page(done, [summarise(saved) for saved in done], COMMAND)
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
