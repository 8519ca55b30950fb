"""The labelled corpus: captures whose true causes are known, made on this machine, and a score for any tool.

    .venv/bin/python -m bench.corpus make FOLDER [--runs 1000]
    .venv/bin/python -m bench.corpus check FOLDER

`make` needs root, for network namespaces. Every finished run stays; an interrupted call, and one with more runs, goes
on there. `check` verifies a corpus against its manifest, its schema and its own books.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.common import say
from bench.corpus import checking, making, manifest
from bench.corpus.splits import FIRST
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
    check = verbs.add_parser("check", help="compare a corpus with its manifest, its schema and its books")
    check.set_defaults(do=_check)
    check.add_argument("folder", type=Path)
    return whole


if __name__ == "__main__":
    sys.exit(main())
