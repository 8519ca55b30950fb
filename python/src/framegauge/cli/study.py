"""Arguments and output of `framegauge study`; no logic."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import live, notify, output
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.cli.hurry import hurried
from framegauge.errors import InputError, Interrupted

if TYPE_CHECKING:
    from framegauge.study.model import Study

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "run a controlled experiment and say what follows from it"
_MORE = """\
FILE says what is asked, of which networks and applications: `framegauge schema` has all it may say.

A study of your own hosts (`testbed: {kind: ssh}`) changes their MTUs, offloads, queues and sysctls while it runs, and
puts everything back at the end, or when the connection is lost (framegauge docs hosts); --dry-run lists the changes.

Before its first run, a study on an emulated rack tries whether this machine carries its links beside its other work. If
not, a preset runs at the highest of 500, 200 and 100 Mb/s that is carried, and a file keeps its rate and warns. If
nothing is carried, it ends with exit code 3 and names what is busy (framegauge docs testbeds).

The workload `command` runs your own programs (framegauge docs your-application): as root in a rack, on your own hosts
as the user who logs in; --dry-run lists them.

Run only files that you trust: they may run such programs, an inventory that they name may be a program, `options` of a
host may have ssh run one (ProxyCommand), and `agent` of a host is a program that is copied there and run. --dry-run
runs none of them; with --run-inventory it runs the inventory.

examples:
  framegauge study --list                                   what there is to begin with
  framegauge study --preset demo
  framegauge examples command --copy .                      a file to change, of those that it lists
  framegauge study command.yaml                             your own programs: here Redis
  framegauge study rack.yaml --dry-run                      what it would run, and for how long
  framegauge study rack.yaml --out results/rack --seed 7
  framegauge study --resume --out results/rack              go on after Ctrl-C
  framegauge study --resume --blocks 12 --out results/rack  12 more blocks, if too much is open
  framegauge study rack.yaml --json > summary.json
  framegauge study rack.yaml --notify 'echo "$FRAMEGAUGE_ANSWER" | mail -s "$FRAMEGAUGE_VERDICT" me@example.net'
  framegauge study rack.yaml --live                         with a page of its progress, here and through ssh -L

exit codes: 0 done, 2 bad input, 3 too busy, not faithful or nothing judged, 130 interrupted, 1 anything else
"""


def parser() -> Verb:
    """The arguments."""
    from framegauge.study import file as study_file

    verb = verb_parser("study", SUMMARY, _MORE)
    mode = verb.add_mutually_exclusive_group()
    mode.add_argument("file", nargs="?", metavar="FILE", help="study file (YAML; see `framegauge schema`)")
    mode.add_argument(
        "--list",
        action="store_true",
        help="presets, and the studies in a folder ./examples, with their durations (see framegauge examples)",
    )
    mode.add_argument("--preset", metavar="NAME", help=f"a study that comes with it: {', '.join(study_file.presets())}")
    verb.add_argument("--out", type=output.place, metavar="DIR", help="results folder (default: a new one in results/)")
    verb.add_argument("--seed", type=int, metavar="N", help="seed of the order of runs, instead of the file's")
    verb.add_argument("--resume", action="store_true", help="continue the study in --out")
    verb.add_argument(
        "--blocks", type=int, metavar="N", help="with --resume: extend the study by N blocks, and say what that costs"
    )
    verb.add_argument("--dry-run", action="store_true", help="say what would be run, and stop")
    verb.add_argument("--run-inventory", action="store_true", help="with --dry-run: run an inventory that is a program")
    verb.add_argument("--json", action="store_true", help="print summary.json instead of a table")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write the page there, too")
    live.add(verb)
    notify.add(verb)
    return verb


def run(words: Sequence[str]) -> None:
    """Run the study, print what follows, and say where its results are."""
    with hurried():
        options = parser().parse_args(live.spelt(words))
        if not options.list:
            from framegauge.cli import commands
    if options.live is not None and (options.dry_run or options.list):
        raise InputError("--live: found nothing that runs, expected a study without --dry-run or --list")
    if options.list:
        _list(options.json)
        return
    if options.out == output.STANDARD_OUTPUT:
        raise InputError("--out: found -, expected a folder (./- is one of that name)")
    output.check_file("--html", options.html)
    output.one_to_standard_output({"--json": options.json, "--html": options.html})
    if options.blocks is not None and not options.resume:
        raise InputError("--blocks: found no --resume, expected a study to extend; a new one has `blocks` in its file")
    if options.blocks is not None and options.blocks < 1:
        raise InputError(f"--blocks: found {options.blocks}, expected a whole number from 1")
    study, name = _chosen(options)
    if options.resume:
        if options.out is None:
            raise InputError("--resume: found no --out, expected the folder of the study to continue")
        study = commands.resumed_study(options.out, study, may_adapt=options.preset is not None)
    if study is None:
        raise InputError(
            "study: found neither FILE nor --preset, expected one; for example: framegauge study --preset demo"
        )
    if not options.resume:
        from framegauge.experiment import refusals

        refusals.check(study, name=options.file or f"preset {options.preset}")
    if options.dry_run:
        if options.blocks:
            study = commands.extended_study(study, options.out, options.blocks)
        output.show(*commands.plan_lines(study, options.preset is not None and not options.resume))
        return
    folder = options.out or commands.choose_folder(name)
    with live.beside(folder, options.live), notify.at_end(folder, options.notify):
        _run(study, folder, options)


def _list(as_json: bool) -> None:
    """Prints every study that is at hand: its duration, what to give for it, and its question."""
    from framegauge.experiment.planning import total_seconds
    from framegauge.experiment.progress import at_most
    from framegauge.study import file as study_file

    studies = [(f"--preset {name}", study_file.load_preset(name)) for name in study_file.presets()]
    studies += [(str(path), study_file.load(path)) for path in sorted(Path("examples").glob("*.yaml"))]
    rows = [
        {"study": name, "seconds": round(total_seconds(study)), "question": study.question} for name, study in studies
    ]
    if as_json:
        output.show_json({"studies": rows}, indent=2)
        return
    durations = [at_most(total_seconds(study)) for _, study in studies]
    width, wide = max(len(name) for name, _ in studies), max(map(len, durations))
    for (name, study), duration in zip(studies, durations, strict=True):
        output.show(f"{name:<{width}}  {duration:>{wide}}  {study.question}")


def _chosen(options: argparse.Namespace) -> tuple[Study | None, str]:
    """The study that the arguments name, and a name for its folder."""
    from framegauge.study import file as study_file

    if options.preset is not None:
        study, name = study_file.load_preset(options.preset), options.preset
    elif options.file is not None:
        running = output.say if options.run_inventory or not options.dry_run else None
        study, name = study_file.load(options.file, running), Path(options.file).stem
    else:
        study, name = None, ""
    if study is not None and options.seed is not None:
        if options.seed < 0:
            raise InputError(f"--seed: found {options.seed}, expected a whole number from 0")
        study = study.model_copy(update={"seed": options.seed})
    return study, name


def _run(study: Study, folder: Path, options: argparse.Namespace) -> None:
    if study.testbed.capabilities.is_virtual:
        _simulate(study, folder, options)
        return
    from framegauge.cli import commands, verdicts
    from framegauge.cli.console import console
    from framegauge.cli.progress import Reporter
    from framegauge.experiment import busy
    from framegauge.experiment.progress import so_far
    from framegauge.rack import hand

    if not study.testbed.capabilities.is_invented and (line := hand.sharing()):
        output.say(line)
    with Reporter(console(stderr=True)) as reporter, _without_root():
        finished = commands.run_study(
            study, folder, options.resume, reporter, reporter.say,
            more_blocks=options.blocks or 0, may_adapt=options.preset is not None, waited=busy.age,
        )  # fmt: skip
    if options.html is not None:
        output.write("--html", options.html, finished.page.read_bytes())
    if options.html != output.STANDARD_OUTPUT:
        verdicts.show(finished.summary, options.json)
    output.say_plainly(f"results: {finished.folder}")
    output.say_plainly(f"report: {finished.page}")
    outcome = finished.outcome
    done = so_far(outcome.runs, len(finished.summary["excluded"]), outcome.planned)
    if outcome.interrupted:
        resume = f"framegauge study --resume --out {finished.folder}"
        raise Interrupted(f"interrupted after {done}; continue with: {resume}")
    if outcome.out_of_budget:
        output.say_plainly(f"the budget was spent after {done}")
    verdicts.demand_evidence(finished.summary)


@contextlib.contextmanager
def _without_root() -> Iterator[None]:
    """Of a user who may not build a rack: says what needs no privilege, beside what does."""
    from framegauge.agents.privilege import PRIVILEGE
    from framegauge.errors import MissingRequirement

    try:
        yield
    except MissingRequirement as error:
        if any(requirement.get("name") == PRIVILEGE for requirement in error.missing):
            output.say("a simulation needs no root: framegauge simulate FILE, or --preset simulate to begin with")
        raise


def _simulate(study: Study, folder: Path, options: argparse.Namespace) -> None:
    from framegauge.agents import binary
    from framegauge.cli import simulate, simulations
    from framegauge.errors import MissingRequirement
    from framegauge.experiment.simulated import engines
    from framegauge.study import file as study_file
    from framegauge.study.sweep import Source

    if options.blocks:
        raise InputError("--blocks: found testbed simulator, expected another: simulate again with more --seeds")
    new_request = simulations.Asked(Source(study_file.dump(study), f"{folder.name}.yaml"))
    request = simulations.resumed(folder, None) if options.resume else new_request
    if lacking := binary.lacking():
        raise MissingRequirement([lacking])
    with engines.opened("local") as engine:
        simulate.run_simulation(request, folder, options.resume, engine, options.json, options.html)
