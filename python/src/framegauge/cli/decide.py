"""Arguments and output of `framegauge decide`; no logic."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError, Interrupted, failing_as

if TYPE_CHECKING:
    from framegauge.decide.folder import Folder
    from framegauge.decide.question import Question
    from framegauge.decide.steps import Hands
    from framegauge.study.model import Study

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "jumbo frames here, or not: facts, check and study in one command, and one page"
_MORE = """\
A HOST is what framegauge check takes: a name that ssh knows, HOST%IFACE, local, or netns:NAME. Steps, in this order:
facts (what the hosts are), check (every pair, at the present MTU and at the target), estimate (what the load as it is
can gain at most) and study (do the frames help?). Each leaves its result in DIR and is not run again: Ctrl-C at any
time, and --resume goes on.

Hosts that are there are only read and probed, unless --allow-changes is given: then the check and the study raise their
MTU by leases, which are put back at the end or when the connection is lost (framegauge docs hosts). --dry-run lists
every change. A rack is built for the purpose, so all steps are done there.

FILE of --workload is a study file, or the part of one with `workloads` (and `margins`, `blocks`, `budget`): the
question, the treatment, the MTUs and, on your hosts, the testbed are those of the decision. Run only files that you
trust.

examples:
  framegauge decide --rack                            the whole of it, without a network
  framegauge decide db1 db2 db3                       read and probed, nothing is changed
  framegauge decide --hosts inventory.ini --group storage --out results/storage
  framegauge decide --resume --out results/storage --allow-changes --dry-run
  framegauge decide --resume --out results/storage --allow-changes
  framegauge decide --resume --out results/storage --again check         after a switch port was mended
  framegauge decide db1 db2 --workload my-database.yaml --allow-changes
  framegauge examples switch-port-1500 --copy .       a lab of faults to try it on, of those that it lists
  framegauge decide --testbed faults/switch-port-1500.yaml

exit codes: 0 do it (perhaps for a subnet only), 1 don't, 2 can't tell (or bad input), 130 interrupted
"""
LEAST_MTU, MOST_MTU = 1501, 65_535
TARGET_MTU = "9000"
CANNOT_TELL = 2
SHORTEST_SECONDS, LONGEST_SECONDS = 1.0, 3600.0


def parser() -> Verb:
    """The arguments."""
    from framegauge.decide.folder import STEPS

    verb = verb_parser(
        "decide",
        SUMMARY,
        _MORE,
        "Should these hosts run jumbo frames? The whole question in one command, and one page.",
    )
    verb.add_argument("hosts", nargs="*", metavar="HOST", help="what ssh knows, local or netns:NAME")
    verb.add_argument("--hosts", dest="inventory", metavar="FILE", help="hosts of an inventory, over ssh")
    verb.add_argument("--group", default="all", metavar="NAME", help="of an Ansible inventory (all)")
    verb.add_argument("--rack", action="store_true", help="build an emulated rack for it")
    verb.add_argument("--testbed", type=Path, metavar="FILE", help="build the network of a study or lab file for it")
    verb.add_argument("--mtu", metavar="BYTES", help=f"the MTU to decide about ({TARGET_MTU})")
    verb.add_former("--target-mtu", "--mtu")
    verb.add_argument("--workload", type=Path, metavar="FILE", help="what to study (streams, and small requests)")
    verb.add_argument("--for", dest="seconds", metavar="TIME", help="how long the load is read (10s)")
    verb.add_argument("--allow-changes", action="store_true", help="let hosts be raised, by leases")
    verb.add_argument(
        "--out", type=output.place, metavar="DIR", help="folder of the results (default: a new one in results/)"
    )
    verb.add_argument("--resume", action="store_true", help="go on with the decision in --out")
    verb.add_argument(
        "--again", choices=STEPS, metavar="STEP",
        help=f"with --resume: forget the result of a step and of those after it ({', '.join(STEPS)})",
    )  # fmt: skip
    verb.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    verb.add_argument("--run-inventory", action="store_true", help="with --dry-run: run an inventory that is a program")
    verb.add_argument("--json", action="store_true", help="print the decision as a document (framegauge schema decide)")
    return verb


def run(words: Sequence[str]) -> int:
    """Decide, print the answer, and say where the page is."""
    with failing_as(CANNOT_TELL):  # 1 is an answer
        return _run(words)


def _run(words: Sequence[str]) -> int:
    options = parser().parse_args(words)
    if options.out == output.STANDARD_OUTPUT:
        raise InputError("--out: found -, expected a folder (./- is one of that name)")
    from framegauge.cli import commands
    from framegauge.decide.folder import Folder

    if options.resume and options.out is None:
        raise InputError("--resume: found no --out, expected the folder of the decision to go on with")
    if options.again is not None and not options.resume:
        raise InputError("--again: found no --resume, expected a decision whose step is to be forgotten")
    choose = commands.free_folder if options.dry_run else commands.choose_folder
    # What cannot be asked leaves no folder behind.
    question, seconds = None if options.resume else _asked(options), _seconds(options)
    if options.resume:
        _demand_nothing_else(options)
    folder = Folder(options.out or choose("decide"))
    if options.dry_run:
        output.show(*_plan(folder, question, options, seconds))
        return 0
    with folder.held(options.resume):
        return _decide(folder, question, options, seconds)


def _asked(options: argparse.Namespace) -> Question:
    from framegauge.decide import question

    target = values.mtu("--mtu", options.mtu or TARGET_MTU, LEAST_MTU, MOST_MTU)
    machines = []
    if options.inventory is not None:
        from framegauge.files import inventory

        running = output.say if options.run_inventory or not options.dry_run else None
        machines = inventory.load(options.inventory, options.group, running)
    base_question = question.asked(options.hosts, machines, options.rack, options.testbed, target, options.workload)
    return replace(base_question, load_seconds=_seconds(options) or question.LOAD_SECONDS)


def _seconds(options: argparse.Namespace) -> float | None:
    """What --for says; None leaves it to the question."""
    if options.seconds is None:
        return None
    return values.seconds("--for", options.seconds, SHORTEST_SECONDS, LONGEST_SECONDS)


def _demand_nothing_else(options: argparse.Namespace) -> None:
    arguments = {
        "HOST": options.hosts, "--hosts": options.inventory, "--rack": options.rack, "--testbed": options.testbed,
        "--mtu": options.mtu, "--workload": options.workload,
    }  # fmt: skip
    for name, value in arguments.items():
        if value:
            raise InputError(f"--resume: found {name}, too, expected none: the folder says what was asked")


def _kept(folder: Folder) -> Question:
    from framegauge.decide import question

    saved = folder.load("asked")
    if saved is None:
        raise InputError(f"{folder.path}: found no asked.json, expected the folder of a decision to go on with")
    return question.kept(saved, folder.path / "asked.json")


def _decide(folder: Folder, request: Question | None, options: argparse.Namespace, seconds: float | None) -> int:
    from framegauge.cli.console import console
    from framegauge.decide import answer
    from framegauge.report import terminal
    from framegauge.report.decision import terminal as decision_terminal

    if request is not None:
        folder.keep("asked", request.as_json())
    question = _kept(folder)
    if options.again is not None:
        folder.forget(options.again)
    again = shlex.join(["framegauge", "decide", "--resume", "--out", str(folder.path)])
    try:
        hands = _hands(folder, again, seconds or question.load_seconds)
        answered = answer.answer(question, options.allow_changes, folder, hands)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; continue with: {again}") from None
    if options.json:
        output.show_json(answered.document, indent=1)
    else:
        decision_terminal.show(answered.page, console(terminal.LEAST_COLUMNS))
    output.say_plainly(f"results: {folder.path}")
    output.say_plainly(f"page: {answered.place}")
    return answered.exit_code


def _hands(folder: Folder, again: str, seconds: float) -> Hands:
    from framegauge.cli import commands
    from framegauge.cli.console import console
    from framegauge.cli.progress import Reporter
    from framegauge.decide.steps import Hands
    from framegauge.experiment.progress import so_far

    began, last = time.monotonic(), [0.0]

    def progress(share: float, text: str) -> None:
        now = time.monotonic()
        if now - began > 2 and now - last[0] >= 2:
            last[0] = now
            output.say(f"{text}: {share:.0%}")

    def study(next_study: Study) -> None:
        resumes = (folder.study / "results.json").exists()
        if resumes:
            next_study = commands.resumed_study(folder.study, next_study)
        with Reporter(console(stderr=True)) as reporter:
            finished = commands.run_study(next_study, folder.study, resumes, reporter, reporter.say)
        if finished.outcome.interrupted:
            outcome = finished.outcome
            done = so_far(outcome.runs, len(finished.summary["excluded"]), outcome.planned)
            raise Interrupted(f"interrupted after {done}; continue with: {again}")

    return Hands(output.say, progress, study, seconds)


def _plan(folder: Folder, request: Question | None, options: argparse.Namespace, seconds: float | None) -> list[str]:
    """What would be done, for --dry-run; nothing is asked of a host, and nothing is written."""
    from framegauge.cli import commands
    from framegauge.decide import answer

    question = request or _kept(folder)
    read = seconds or question.load_seconds
    lines, study = answer.plan(question, options.allow_changes, folder, options.again, read)
    return [*lines, *(f"     {line}" for line in (commands.plan_lines(study) if study is not None else []))]
