"""Arguments and output of `framegauge simulate`; no logic."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError, Interrupted
from framegauge.shipped import examples

if TYPE_CHECKING:
    from framegauge.cli.simulations import Asked
    from framegauge.experiment.simulated.engines import Engine

__all__ = ["SUMMARY", "parser", "run", "run_simulation"]

SUMMARY = "the same study in virtual time: more hosts, other buffers, other routing, swept and seeded"
_MORE = """\
FILE is a study file. Its network and its workloads are simulated, every packet of them, with the switches of the
emulated rack and hosts whose TCP follows Linux 6.18. It needs no root, no network and no quiet machine. A file for
testbed rack is simulated as it is; what a simulation does not have is one clear line (framegauge docs simulate).
The traffic of applications is simulated for networks of any size: shuffle, users, arrivals, replay, and
incast, which hosts run, too (framegauge docs workloads).

Each seed is a block of the study: all arms of a block have the same seed, so what is compared differs in nothing else.
--sweep tries every combination of the values; KEY is a key of the file as a path with dots, where 0 is the first entry
of a list. Results are the same bytes at any number of --jobs and with any --engine. dask://HOST:PORT is the scheduler
of a Dask cluster that you have; its workers need nothing of framegauge.

--pcap keeps what passed a port or a host in the folders of runs, as runs/N/switch-h1.pcapng or runs/N/h1.pcapng, for
Wireshark and for `framegauge diagnose`: of a port what came, left and was dropped, of a host what it sent and got; 128
bytes of each frame, at most 256 MiB for each run. PORT is FROM>TO, which a shell needs quoted, or FROM:TO. Of all runs,
it takes those of the first block unless --pcap-runs names others.

examples:
  framegauge simulate --preset simulate
  framegauge examples simulate-incast outcast --copy .    files to change, of those that it lists
  framegauge simulate rack.yaml --seeds 20 --out results/simulated
  framegauge simulate simulate-incast.yaml --sweep testbed.link.buffer=64KiB,256KiB
  framegauge simulate rack.yaml --sweep testbed.link.buffer=64KiB,256KiB,1MiB --sweep factors.queue=taildrop,sfq
  framegauge simulate rack.yaml --sweep workloads.0.stream.size=100kB,1MB --html sizes.html
  framegauge simulate --preset simulate --pcap switch:h9 --out results/incast
  framegauge diagnose results/incast/runs/1/switch-h9.pcapng
  framegauge simulate outcast.yaml --pcap h16 --out results/outcast
  framegauge simulate --resume --out results/simulated      go on after Ctrl-C
  framegauge compare results/rack results/simulated         is the model right?

exit codes: 0 done, 2 bad input, 3 nothing judged, 130 interrupted, 1 anything else
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("simulate", SUMMARY, _MORE, "What if? The network and the hosts of a study, in virtual time.")
    mode = verb.add_mutually_exclusive_group()
    mode.add_argument("file", nargs="?", metavar="FILE", help="study file (YAML; see `framegauge schema`)")
    mode.add_argument(
        "--preset", metavar="NAME", help=f"an example that comes with it: {', '.join(examples.simulations())}"
    )
    verb.add_argument("--seeds", type=int, metavar="N", help="run N blocks, each with a seed of its own, and no fewer")
    verb.add_argument("--seed", type=int, metavar="N", help="the first seed, instead of the file's")
    verb.add_argument(
        "--sweep", action="append", default=[], metavar="KEY=VALUE,...",
        help="values of a key of the file to try in turn; may be repeated, for every combination",
    )  # fmt: skip
    verb.add_argument(
        "--engine", default="local", metavar="ENGINE",
        help="where simulations run: local, on all cores (default), or dask://HOST:PORT, on a Dask cluster",
    )  # fmt: skip
    verb.add_argument(
        "--pcap", action="append", default=[], metavar="PORT|HOST",
        help="keep a capture (pcapng) of this port or host, such as switch:h1 or h1; may be repeated",
    )  # fmt: skip
    verb.add_argument(
        "--pcap-runs", metavar="N,...", help="numbers of the runs to capture (default: those of the first block)"
    )
    verb.add_argument("--jobs", type=int, metavar="N", help="simulations at a time (default: as many as CPUs)")
    verb.add_argument("--out", type=output.place, metavar="DIR", help="results folder (default: a new one in results/)")
    verb.add_argument("--resume", action="store_true", help="continue the simulation in --out")
    verb.add_argument("--json", action="store_true", help="print summary.json instead of a table")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write the page there, too")
    return verb


def run(words: Sequence[str]) -> None:
    """Simulate, print what follows, and say where its results are."""
    options = parser().parse_args(words)
    if options.out == output.STANDARD_OUTPUT:
        raise InputError("--out: found -, expected a folder (./- is one of that name)")
    output.check_file("--html", options.html)
    output.one_to_standard_output({"--json": options.json, "--html": options.html})
    for name, least in (("seeds", 1), ("seed", 0), ("jobs", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise InputError(f"--{name}: found {value}, expected a whole number from {least}")
    request = _asked(options)
    if options.resume:
        if options.out is None:
            raise InputError("--resume: found no --out, expected the folder of the simulation to continue")
        from framegauge.cli import simulations

        request = simulations.resumed(options.out, request)
    if request is None:
        raise InputError(
            "simulate: found neither FILE nor --preset, expected one; for example: "
            "framegauge simulate --preset simulate"
        )
    from framegauge.agents import binary
    from framegauge.errors import MissingRequirement
    from framegauge.experiment.simulated import engines

    if lacking := binary.lacking():
        raise MissingRequirement([lacking])
    with engines.opened(options.engine, options.jobs) as engine:
        run_simulation(request, options.out, options.resume, engine, options.json, options.html)


def _asked(options: argparse.Namespace) -> Asked | None:
    """What the arguments ask for; None without a file."""
    path = options.file if options.preset is None else _preset(options.preset)
    if path is None:
        if not options.resume:
            return None
        for name in ("seeds", "seed", "sweep", "pcap", "pcap_runs"):
            if getattr(options, name) not in (None, []):
                raise InputError(
                    f"--{name.replace('_', '-')}: found no FILE, expected one: what is resumed has its own"
                )
        return None
    from framegauge.cli.simulations import Asked
    from framegauge.experiment.simulated import captures
    from framegauge.files import yaml as yaml_file
    from framegauge.study.sweep import Source, axes

    text = yaml_file.read(path, "a study file")
    source = Source(text, str(path), options.seeds, seed=options.seed)
    return Asked(source, axes(options.sweep), captures.asked(options.pcap, options.pcap_runs))


def _preset(name: str) -> Path:
    """The file of an example, also without what all their names begin with; InputError lists them if there is none."""
    names = examples.simulations()
    candidates = (examples.named(item) for item in (name, f"simulate-{name}"))
    example = next((item for item in candidates if item is not None and item.name in names), None)
    if example is None:
        raise InputError(f'--preset: found "{name}", expected one of {", ".join(names)}')
    return example.path


def run_simulation(
    asked: Asked, out: Path | None, resume: bool, engine: Engine, as_json: bool, page: Path | None
) -> None:
    """The same from what the verb `study` has, too."""
    from framegauge.cli import commands, simulations, verdicts
    from framegauge.cli.console import console
    from framegauge.cli.progress import Reporter
    from framegauge.experiment.progress import so_far

    folder = out or commands.choose_folder(Path(asked.source.name).stem)
    with Reporter(console(stderr=True)) as reporter:
        finished = simulations.run(asked, folder, resume, engine, reporter, reporter.say)
    if page is not None:
        output.write("--html", page, finished.page.read_bytes())
    if page != output.STANDARD_OUTPUT:
        verdicts.show(finished.summary, as_json)
    output.say_plainly(f"results: {finished.folder}")
    output.say_plainly(f"report: {finished.page}")
    outcome = finished.outcome
    done = so_far(outcome.runs, len(finished.summary["excluded"]), outcome.planned)
    if outcome.interrupted:
        resume_with = shlex.join(["framegauge", "simulate", "--resume", "--out", str(finished.folder)])
        raise Interrupted(f"interrupted after {done}; continue with: {resume_with}")
    verdicts.demand_evidence(finished.summary)
