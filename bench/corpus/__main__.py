"""The labelled corpus: captures whose true causes are known, made on this machine, and a score for any tool.

    .venv/bin/python -m bench.corpus make FOLDER [--runs 1000]
    .venv/bin/python -m bench.corpus check FOLDER
    .venv/bin/python -m bench.corpus answers FOLDER --tool tshark --write answers.csv
    .venv/bin/python -m bench.corpus score FOLDER answers.csv
    .venv/bin/python -m bench.corpus board FOLDER --write docs/measured/corpus.md
    .venv/bin/python -m bench.corpus reasons FOLDER

`make` needs root, for network namespaces. Every finished run stays; an interrupted call, and one with more runs, goes
on there. `check` verifies a corpus against its manifest, its schema and its own books. `answers` runs one of the tools
that have an adapter, `score` scores the answers of any tool (docs/how-to/corpus.md says in which form), and `board`
does both for all tools that are there. `reasons` compares why segments were sent again with what the kernels traced.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.common import say
from bench.corpus import board, checking, making, manifest, reasons, score
from bench.corpus.answers import AnswersError, read, write
from bench.corpus.splits import FIRST, SPLITS
from bench.corpus.tools import TOOLS, ToolMissing, ask
from bench.diagnosis.staging import SCENES


def main() -> int:
    """Do what is asked; an exit code."""
    options = _parser().parse_args()
    code: int = options.do(options)
    return code


def _make(options: argparse.Namespace) -> int:
    kinds = [kind for kind in options.kind.split(",") if kind]
    scenes = [scene for scene in SCENES if not kinds or scene.kind in kinds or scene.name in kinds]
    if not scenes:
        say(f"--kind: found {options.kind}, expected kinds or names of scenes")
        return 2
    runs = making.wanted(options.runs, options.first, scenes)
    is_done = making.make(options.folder, runs, options.workers, say)
    listed = manifest.write(options.folder)
    say(f"{options.folder}: {listed} files in {manifest.MANIFEST}")
    lacking = sum(not (options.folder / making.RUNS / making.run_name(*run)).exists() for run in runs)
    if lacking:
        say(f"{lacking} of {len(runs)} runs are missing; the same command goes on")
    return 0 if is_done and not lacking else 1


def _check(options: argparse.Namespace) -> int:
    problems = list(checking.problems(options.folder))
    for problem in problems:
        print(problem)
    say(f"{options.folder}: {len(problems) or 'no'} problems")
    return 1 if problems else 0


def _known(options: argparse.Namespace) -> list[score.Truth]:
    known = score.truths(manifest.truths(options.folder))
    return [truth for truth in known if options.split in ("all", truth.split)]


def _answers(options: argparse.Namespace) -> int:
    captures = [truth.capture for truth in _known(options)]
    answers = ask(TOOLS[options.tool], options.folder, captures)
    if options.write is None:
        write(answers, sys.stdout)
    else:
        with options.write.open("w", newline="") as out:
            say(f"{options.write}: {write(answers, out)} answers on {len(captures)} captures")
    return 0


def _score(options: argparse.Namespace) -> int:
    with options.answers.open(newline="") as lines:
        answers = read(lines, str(options.answers))
    known = _known(options)
    if not known:
        say(f"{options.folder}: found no captures of the split {options.split}, expected some")
        return 2
    print("\n".join(board.of_one(score.score(known, answers), len(known))))
    return 0


def _board(options: argparse.Namespace) -> int:
    known = _known(options)
    scored = board.results(options.folder, known, say)
    compared = reasons.compare(reasons.diagnosed(options.folder, options.split))
    text = board.written(scored, known, options.folder, options.split, reasons.section(compared))
    if options.write is None:
        print(text, end="")
    else:
        options.write.write_text(text)
    return 0


def _reasons(options: argparse.Namespace) -> int:
    print("\n".join(reasons.told(reasons.compare(reasons.diagnosed(options.folder, options.split)))))
    return 0


def _parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="python -m bench.corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = whole.add_subparsers(required=True, metavar="VERB")
    make = verbs.add_parser("make", help="make the runs that are not there")
    make.set_defaults(do=_make)
    make.add_argument("folder", type=Path)
    make.add_argument("--runs", type=int, default=1000, help="at least so many, all scenes equally often")
    make.add_argument("--first", type=int, default=FIRST, help="the number of the first of each scene")
    make.add_argument("--kind", default="", help="kinds or names of scenes, with commas; all of them")
    make.add_argument("--workers", type=int, default=4, help="how many are made at once")
    for name, do, what in (
        ("answers", _answers, "run a tool on the captures, and write its answers as CSV"),
        ("score", _score, "score the answers of any tool"),
        ("board", _board, "run and score all tools that are there, and write the page"),
        ("reasons", _reasons, "compare why a diagnosis says that segments were sent again with the kernel's trace"),
    ):
        verb = verbs.add_parser(name, help=what)
        verb.set_defaults(do=do)
        verb.add_argument("folder", type=Path)
        verb.add_argument("--split", choices=[*SPLITS, "all"], default="test", help="which captures")
        if name == "score":
            verb.add_argument("answers", type=Path)
        elif name != "reasons":
            verb.add_argument("--write", type=Path, help="write it here, instead of printing it")
        if name == "answers":
            verb.add_argument("--tool", choices=list(TOOLS), required=True)
    check = verbs.add_parser("check", help="compare a corpus with its manifest, its schema and its books")
    check.set_defaults(do=_check)
    check.add_argument("folder", type=Path)
    return whole


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AnswersError, ToolMissing, OSError) as problem:
        say(str(problem))
        sys.exit(2)
