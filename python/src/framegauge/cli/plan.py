"""`framegauge plan`: what a study would do and find; nothing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError, QuantityError

if TYPE_CHECKING:
    from framegauge.statistics.power import Spread

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "what a study would run, and which effects it could find"
_MORE = """\
Nothing that FILE names is run, unless --run-inventory asks for it: the hosts of a study may come from an inventory that
is a program. What would fail at the first run is refused, as by the study itself; what this machine still lacks is
listed, and so is what only your own hosts can tell.

examples:
  framegauge plan study.yaml
  framegauge plan --preset demo --noise goodput="0.3 %"
  framegauge plan study.yaml --pilot results/demo     with the spread that an earlier study saw
  framegauge plan study.yaml --json                   every run in its order
"""


def parser() -> Verb:
    """The arguments."""
    from framegauge.study import file as study_file

    verb = verb_parser(
        "plan", SUMMARY, _MORE,
        "What a study would run, in which order, for how long, and which effects it could find.",
    )  # fmt: skip
    mode = verb.add_mutually_exclusive_group(required=True)
    mode.add_argument("file", nargs="?", metavar="FILE", help="study file")
    mode.add_argument("--preset", metavar="NAME", help=f"one of {', '.join(study_file.presets())}")
    verb.add_argument("--seed", type=int, metavar="N", help="seed of the order, instead of the file's")
    verb.add_argument("--pilot", type=Path, metavar="DIR", help="results folder whose spread is taken")
    verb.add_argument(
        "--noise", action="append", default=[], metavar="METRIC=SHARE",
        help="spread of a metric's ratio from block to block, such as goodput=0.5%% (may be repeated)",
    )  # fmt: skip
    verb.add_argument("--run-inventory", action="store_true", help="run the study's inventory if it is a program")
    verb.add_argument("--json", action="store_true", help="print JSON")
    return verb


def run(words: Sequence[str]) -> None:
    """Print the plan; InputError for what cannot be planned."""
    from framegauge.experiment import forecast, refusals
    from framegauge.study import file as study_file
    from framegauge.summary import judging

    options = parser().parse_args(words)
    running = output.say if options.run_inventory else None
    study = study_file.load_preset(options.preset) if options.preset else study_file.load(options.file, running)
    if options.seed is not None:
        if options.seed < 0:
            raise InputError(f"--seed: found {options.seed}, expected a whole number from 0")
        study = study.model_copy(update={"seed": options.seed})
    refusals.check(study, name=options.file or f"preset {options.preset}")
    pilot: Mapping[str, Sequence[Spread]] = {}
    if options.pilot is not None:
        from framegauge.results.journal import read

        pilot = judging.spreads(read(options.pilot))
    document = forecast.forecast(study, pilot, _noise(options.noise, study.margin()), options.preset is not None)
    if options.json:
        output.show_json({**document, "missing": refusals.missing(study), "unknown": refusals.unknown(study)}, indent=2)
    else:
        output.show(*forecast.lines(document), *refusals.lines(study))


def _noise(texts: Sequence[str], margins: Mapping[str, float]) -> dict[str, float]:
    from framegauge.quantities import parse_share

    noise = {}
    for option in texts:
        metric, _, text = option.partition("=")
        if metric not in margins:
            raise InputError(f'--noise: found "{option}", expected METRIC=SHARE with one of {", ".join(margins)}')
        try:
            noise[metric] = parse_share(text)
        except QuantityError as error:
            raise InputError(f"--noise {metric}: {error}") from None
    return noise
