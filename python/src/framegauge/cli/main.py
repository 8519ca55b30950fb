"""Arguments, exit codes, progress; no logic."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge import __version__
from framegauge.cli.arguments import Verb, add_verb
from framegauge.errors import FramegaugeError, InputError, Interrupted, NothingJudged

if TYPE_CHECKING:
    from framegauge.study.model import Study

# Statistics and tables take most of a second to import, which `framegauge rack exec` must not wait for: each verb
# imports what it uses.

__all__ = ["main"]

_EPILOG = """\
examples:
  framegauge check local netns:blue         does every path carry 9000 bytes? (see framegauge check --help)
  framegauge study --preset demo            a verdict on an emulated 1 Gb/s pair, in about two minutes
  framegauge study rack.yaml --out results/rack --seed 7
  framegauge study --resume --out results/rack
  framegauge report results/rack --html rack.html    the same again, as a page (--json, --markdown, --pictures)
  framegauge compare results/before results/after   is it worse now? (see framegauge compare --help)
  framegauge plan rack.yaml                 how long, and which effects it could find (see framegauge plan --help)
  framegauge hosts inventory.ini            NICs, MTUs and TCP settings of your own hosts (see framegauge hosts --help)
  framegauge rack up rack.yaml              the same hosts, for your own hands (see framegauge rack --help)
  framegauge wire --mtu 9000 --encap vxlan  what an overlay takes (see framegauge wire --help)
  framegauge requirements                   what this machine lacks for the emulated rack
  framegauge schema > study.schema.json     for your editor; schema summary, check and compare are of what is printed

planned, not there yet: diagnose, simulate, rollout, watch

exit codes: 0 done, 2 bad input, 3 not faithful or nothing judged, 130 interrupted, 1 anything else
"""

_STUDY = """\
FILE says what is asked, of which networks and applications: `framegauge schema` has all it may say.

examples:
  framegauge study --preset demo
  framegauge study rack.yaml --dry-run                      what it would run, and for how long
  framegauge study rack.yaml --out results/rack --seed 7
  framegauge study --resume --out results/rack              go on after Ctrl-C
  framegauge study rack.yaml --json > summary.json

exit codes: 0 done, 2 bad input, 3 not faithful or nothing judged, 130 interrupted, 1 anything else
"""
_REPORT = """\
examples:
  framegauge report results/rack
  framegauge report results/rack --html rack.html --pictures pictures
  framegauge report results/rack --json | jq .verdicts
"""
_SCHEMA = """\
examples:
  framegauge schema > study.schema.json
  framegauge schema summary
"""
_REQUIREMENTS = """\
examples:
  framegauge requirements
  framegauge requirements --testbed veth --rate unshaped
  framegauge requirements --rate '10 Gb/s' --json
"""


def _parser() -> argparse.ArgumentParser:
    from framegauge.study import file as study_file

    parser = argparse.ArgumentParser(
        prog="framegauge",
        description="Should this network run jumbo frames? An answer with evidence.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"framegauge {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=Verb)
    study = add_verb(verbs, "study", "run a controlled experiment and say what follows from it", _STUDY)
    what = study.add_mutually_exclusive_group()
    what.add_argument("file", nargs="?", metavar="FILE", help="study file (YAML; see `framegauge schema`)")
    what.add_argument("--preset", metavar="NAME", help=f"a study that comes with it: {', '.join(study_file.presets())}")
    study.add_argument("--out", type=Path, metavar="DIR", help="results folder (default: a new one in results/)")
    study.add_argument("--seed", type=int, metavar="N", help="seed of the order of runs, instead of the file's")
    study.add_argument("--resume", action="store_true", help="continue the study in --out")
    study.add_argument("--dry-run", action="store_true", help="say what would be run, and stop")
    study.add_argument("--json", action="store_true", help="print summary.json instead of a table")
    report = add_verb(verbs, "report", "judge the runs of a results folder again; print it, or write a page", _REPORT)
    report.add_argument("folder", type=Path, metavar="DIR")
    report.add_argument("--json", action="store_true", help="print summary.json instead of a table")
    report.add_argument("--html", type=Path, metavar="FILE", help="write one offline page")
    report.add_argument("--markdown", type=Path, metavar="FILE", help="write the answer and the tables as Markdown")
    report.add_argument("--pictures", type=Path, metavar="DIR", help="write every chart as SVG and PNG")
    verbs.add_parser("compare", help="say whether one folder of runs is worse than another", add_help=False)
    verbs.add_parser("rack", help="build a rack and keep it, for use by hand", add_help=False)
    verbs.add_parser("check", help="find the path MTU of every pair, and the link to blame", add_help=False)
    verbs.add_parser("hosts", help="what the hosts of an inventory are, and what a firewall must allow", add_help=False)
    verbs.add_parser("plan", help="what a study would run, and which effects it could find", add_help=False)
    verbs.add_parser("wire", help="what encapsulations take from an MTU, and what is left for TCP", add_help=False)
    schema = add_verb(verbs, "schema", "print the JSON Schema of a study file, or of what --json prints", _SCHEMA)
    schema.add_argument("what", nargs="?", choices=("study", "summary", "check", "compare"), default="study")
    needs = add_verb(verbs, "requirements", "say what this machine lacks for a testbed", _REQUIREMENTS)
    needs.add_argument("--testbed", choices=("rack", "veth"), default="rack")
    needs.add_argument("--rate", default="1 Gb/s", help='link rate, such as "1 Gb/s", or unshaped')
    needs.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # SIGTERM ends a study as Ctrl-C does: in order, with what there is.
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    then = None
    try:
        then = _run(words)
        sys.stdout.flush()
    except FramegaugeError as error:
        print(f"framegauge: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("framegauge: interrupted", file=sys.stderr)
        return Interrupted.exit_code
    except BrokenPipeError:
        # The reader of our output has left; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if isinstance(then, int):
        return then
    if then is not None:
        from framegauge.rack import hand

        hand.become(then)
    return 0


def _run(words: list[str]) -> list[str] | int | None:
    """Run one verb; the command that this process is to become afterwards, or an exit code, if any."""
    if words[:1] == ["rack"]:
        from framegauge.cli import rack as cli_rack

        return cli_rack.run(words[1:])
    if words[:1] == ["check"]:
        from framegauge.cli import check as cli_check

        return cli_check.run(words[1:])
    if words[:1] == ["hosts"]:
        from framegauge.cli import hosts as cli_hosts

        return cli_hosts.run(words[1:])
    if words[:1] == ["compare"]:
        from framegauge.cli import compare as cli_compare

        return cli_compare.run(words[1:])
    if words[:1] == ["plan"]:
        from framegauge.cli import plan as cli_plan

        cli_plan.run(words[1:])
        return None
    if words[:1] == ["wire"]:
        from framegauge.cli import wire as cli_wire

        cli_wire.run(words[1:])
        return None
    options = _parser().parse_args(words)
    verbs = {"study": _study, "report": _report, "schema": _schema, "requirements": _requirements}
    verbs[options.verb](options)
    return None


def _interrupt(*_: object) -> None:
    """Once: a second Ctrl-C would interrupt the putting back, which ends by itself within seconds."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _chosen(options: argparse.Namespace) -> tuple[Study | None, str]:
    """The study that the arguments name, and a name for its folder."""
    from framegauge.study import file as study_file

    if options.preset is not None:
        study, name = study_file.load_preset(options.preset), options.preset
    elif options.file is not None:
        study, name = study_file.load(options.file), Path(options.file).stem
    else:
        study, name = None, ""
    if study is not None and options.seed is not None:
        if options.seed < 0:
            raise InputError(f"--seed: found {options.seed}, expected a whole number from 0")
        study = study.model_copy(update={"seed": options.seed})
    return study, name


def _study(options: argparse.Namespace) -> None:
    from rich.console import Console

    from framegauge.cli import commands
    from framegauge.cli.progress import Reporter
    from framegauge.rack import hand

    study, name = _chosen(options)
    if options.resume:
        if options.out is None:
            raise InputError("--resume: found no --out, expected the folder of the study to continue")
        study = commands.resumed_study(options.out, study)
    if study is None:
        raise InputError(
            "study: found neither FILE nor --preset, expected one; for example: framegauge study --preset demo"
        )
    if options.dry_run:
        print("\n".join(commands.plan_lines(study)))
        return
    if study.testbed.kind != "fake" and (line := hand.sharing()):
        print(f"framegauge: {line}", file=sys.stderr)
    folder = options.out or commands.choose_folder(name)
    with Reporter(Console(stderr=True)) as reporter:
        finished = commands.run_study(study, folder, options.resume, reporter, reporter.say)
    _print(finished.summary, options.json)
    print(f"results: {finished.folder}", file=sys.stderr)
    print(f"report: {finished.page}", file=sys.stderr)
    outcome = finished.outcome
    if outcome.interrupted:
        resume = f"framegauge study --resume --out {finished.folder}"
        raise Interrupted(f"interrupted after {outcome.runs} of {outcome.planned} runs; continue with: {resume}")
    if outcome.out_of_budget:
        print(f"the budget was spent after {outcome.runs} of {outcome.planned} runs", file=sys.stderr)
    _demand_evidence(finished.summary)


def _report(options: argparse.Namespace) -> None:
    from framegauge.cli import commands
    from framegauge.cli.documents import Wanted

    found, written = commands.report(options.folder, Wanted(options.html, options.markdown, options.pictures))
    _print(found, options.json)
    for path in written:
        print(f"written: {path}", file=sys.stderr)
    _demand_evidence(found)


def _print(found: dict[str, object], as_json: bool) -> None:
    from rich.console import Console

    from framegauge.report import terminal
    from framegauge.summary import document as summary

    if as_json:
        sys.stdout.write(summary.text(found))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, terminal.LEAST_COLUMNS))
    terminal.show(found, console)


def _demand_evidence(found: dict[str, object]) -> None:
    from framegauge.summary import judging

    if not judging.is_evidence(found):
        raise NothingJudged("no evidence: not faithful, or nothing could be judged; the reasons are above")


def _schema(options: argparse.Namespace) -> None:
    from framegauge.check.judgement import schema
    from framegauge.study import file as study_file
    from framegauge.summary.schema import comparison_schema, summary_schema

    makers = {
        "study": study_file.json_schema,
        "summary": summary_schema,
        "check": schema.json_schema,
        "compare": comparison_schema,
    }
    print(json.dumps(makers[options.what](), indent=2))


def _requirements(options: argparse.Namespace) -> None:
    from framegauge.cli import commands
    from framegauge.quantities import parse_bits_per_second

    rate = None if options.rate == "unshaped" else parse_bits_per_second(options.rate)
    found = commands.requirements(options.testbed, rate, lambda text: print(text, file=sys.stderr))
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for kind in ("missing", "degraded"):
            for item in found[kind]:
                line = (
                    f"{kind} {item['name']}: needed for {item['needed_for']}; found {item['found']}; {item['remedy']}"
                )
                print(line)
        if not found["missing"]:
            print(f"testbed {options.testbed} can be built here")
    if found["missing"]:
        raise FramegaugeError(f"{len(found['missing'])} requirements are missing")
