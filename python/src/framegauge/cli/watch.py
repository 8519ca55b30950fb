"""Arguments and output of `framegauge watch`; no logic."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import FramegaugeError, InputError, QuantityError, failing_as

if TYPE_CHECKING:
    from framegauge.watch.model import Watch
    from framegauge.watch.run import Watched

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "say from Prometheus or agents whether a switch did harm, beside hosts not switched"
_MORE = """\
FILE is YAML: the address of a Prometheus server, when which hosts were switched, and hosts that were not:

  prometheus: http://prometheus:9090
  change: {at: 2026-11-27T10:00:00Z, hosts: [web1, web2, web3]}
  control: [web4, web5, web6]

Without more, metrics of node_exporter are judged, an hour before and after; any PromQL can be (framegauge docs watch).
What all hosts do together cancels. A metric without data never counts as a pass. Nothing is sent to the hosts.

Where there is no Prometheus, framegauge's own agents sample the hosts. With `agents: FOLDER` instead of `prometheus`,
--sample reads their counters once per step into that folder, which is then judged; nothing is changed on the hosts.

examples:
  framegauge watch watch.yaml                          the answer as lines, and as exit code
  framegauge watch watch.yaml --dry-run                what would be asked, and for which times
  framegauge watch watch.yaml --wait --html watch.html          when the time after the switch is over
  framegauge watch watch.yaml --at 2026-11-27T11:00:00Z --switched web4 --control web5 --control web6
  framegauge watch watch.yaml --sample --for 24h                in another terminal, before, while and after
  framegauge rollout apply web.yaml --gate 'framegauge watch watch.yaml --wave --wait'
  framegauge watch watch.yaml --json | jq '.metrics[] | select(.verdict == "worse")'
  framegauge watch watch.yaml --listen 127.0.0.1:9781           for Prometheus, until Ctrl-C
  framegauge watch watch.yaml --textfile /var/lib/node_exporter/framegauge.prom
  framegauge watch --dashboard framegauge.json --alerts framegauge.rules.yaml

exit codes: 0 go on, 1 stop: a metric is worse, 2 cannot say (or bad input), 130 interrupted
"""
CANNOT = 2
WAIT_SECONDS = 15.0
DAY = 86_400.0
WAVE = ("FRAMEGAUGE_SWITCHED_AT", "FRAMEGAUGE_SWITCHED", "FRAMEGAUGE_HELD")  # of a roll-out's gate
LONGEST_SAMPLE = 31 * DAY
QUIET_SECONDS = 2.0  # before progress is told
SHIPPED = {"--dashboard": "grafana.json", "--alerts": "alerts.yaml"}


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("watch", SUMMARY, _MORE, "Did a switch do harm? Before and after, beside hosts not switched.")
    verb.add_argument("file", nargs="?", type=Path, metavar="FILE", help="watch file (framegauge schema watch)")
    verb.add_argument("--at", metavar="WHEN", help="when hosts were switched, instead of the file's change.at")
    verb.add_argument(
        "--switched", action="append", default=[], metavar="HOST",
        help="a host that was switched, instead of the file's; may be repeated",
    )  # fmt: skip
    verb.add_argument(
        "--control", action="append", default=[], metavar="HOST",
        help="a host that was not switched, instead of the file's; may be repeated",
    )  # fmt: skip
    verb.add_argument(
        "--wave", action="store_true",
        help="as the gate of a roll-out: its last wave was switched, and later ones were not, instead of the file's",
    )  # fmt: skip
    verb.add_argument("--dry-run", action="store_true", help="print what would be asked; ask nothing")
    verb.add_argument(
        "--wait", action="store_true",
        help="wait until the time after the switch is over, and sample meanwhile if nobody does",
    )  # fmt: skip
    verb.add_argument(
        "--sample", action="store_true",
        help="with agents: sample the hosts, and judge nothing; Ctrl-C keeps what there is",
    )  # fmt: skip
    verb.add_argument(
        "--for", dest="seconds", metavar="TIME",
        help="with --sample: how long (until the time after the switch is over)",
    )  # fmt: skip
    verb.add_argument("--json", action="store_true", help="print JSON (framegauge schema watched)")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write one offline page, with courses")
    verb.add_argument(
        "--textfile",
        type=output.place,
        metavar="FILE",
        help="write the verdicts as metrics, for node_exporter",
    )
    verb.add_argument(
        "--listen", metavar="HOST:PORT", help="serve the verdicts at /metrics, judged again and again, until Ctrl-C"
    )
    verb.add_argument("--every", default="1 min", metavar="TIME", help="with --listen: how often (1 min)")
    verb.add_argument("--dashboard", type=output.place, metavar="FILE", help="write the Grafana dashboard")
    verb.add_argument("--alerts", type=output.place, metavar="FILE", help="write the alert rules for Prometheus")
    return verb


def run(words: Sequence[str]) -> int:
    """Ask, judge, show, and give the exit code."""
    with failing_as(CANNOT):  # 1 says that something is worse
        return _run(parser().parse_args(words))


def _run(options: argparse.Namespace) -> int:
    shipped = {"--dashboard": options.dashboard, "--alerts": options.alerts}
    places = {"--html": options.html, "--textfile": options.textfile, **shipped}
    printed = output.one_to_standard_output({"--json": options.json, **places})
    for option, path in places.items():
        output.check_file(option, path)
    for option, path in shipped.items():
        if path is not None:
            output.write(option, path, resources.files("framegauge.watch").joinpath(SHIPPED[option]).read_bytes())
    if options.file is None:
        if not any(shipped.values()):
            raise InputError("watch: found no FILE, expected a watch file; for example: framegauge watch watch.yaml")
        return 0
    watch = _asked(options)
    if options.seconds is not None and not options.sample:
        raise InputError("--for: found it without --sample, expected both")
    if options.dry_run:
        _plan(watch)
        return 0
    if options.sample:
        return _sample(watch, options)
    if options.listen is not None:
        if printed is not None:
            raise InputError(f"{printed}: found --listen beside it, expected one of them")
        _serve(watch, options)
    if options.wait:
        _wait(watch)
    return _once(watch, options, printed)


def _asked(options: argparse.Namespace) -> Watch:
    """The file, with what the arguments say instead."""
    from framegauge.watch import model

    if options.at is not None:
        try:
            model.moment(options.at)
        except QuantityError as error:  # no fault of the file
            raise InputError(f"--at: {error}") from None
    if not options.wave:
        return model.load(options.file, options.at, options.switched, options.control)
    if options.at is not None or options.switched or options.control:
        raise InputError("--wave: found --at, --switched or --control beside it, expected the roll-out's alone")
    wave = [os.environ.get(name, "") for name in WAVE]
    if not all(wave):
        raise InputError(
            f"--wave: found no {WAVE[wave.index('')]}, expected it as the gate of framegauge rollout apply"
        )
    return model.load(options.file, wave[0], [wave[1]], [wave[2]])


def _plan(watch: Watch) -> None:
    from framegauge.watch import sampling

    for line in sampling.plan(watch):
        output.show(line)


def _sample(watch: Watch, options: argparse.Namespace) -> int:
    from framegauge.watch import sampler

    if watch.agents is None:
        raise InputError("--sample: found a file that asks Prometheus, expected one with agents")
    if options.seconds is not None:
        # That long, whatever becomes of the time of day.
        seconds = values.seconds("--for", options.seconds, 1, LONGEST_SAMPLE)
        sampler.sample(watch, math.inf, output.say, seconds)
        return 0
    if watch.ends <= time.time():
        raise InputError("--sample: found that the time after the switch is over, expected --for TIME")
    sampler.sample(watch, watch.ends, output.say)
    return 0


def _wait(watch: Watch) -> None:
    from framegauge.experiment.progress import left
    from framegauge.watch import sampler, samples

    if watch.agents is not None and not samples.is_written(Path(watch.agents.folder)) and time.time() < watch.ends:
        sampler.sample(watch, watch.ends, output.say)
        return
    while (seconds := watch.ends - time.time()) > 0:
        output.say(f"about {left(seconds)} until the time after the switch is over")
        time.sleep(min(seconds, WAIT_SECONDS))


def _once(watch: Watch, options: argparse.Namespace, printed: str | None) -> int:
    from framegauge.watch import document as documents, exporter, page, run as watching, terminal

    now = time.time()

    def tell(line: str) -> None:
        if time.time() - now > QUIET_SECONDS:
            output.say(line)

    try:
        result = watching.watch(watch, now, tell)
    except FramegaugeError:
        if options.textfile is not None:  # what was found earlier must not stay as if it still held
            output.write("--textfile", options.textfile, exporter.unanswered(now).encode())
        raise
    document = documents.document(result)
    if options.textfile is not None:
        output.write("--textfile", options.textfile, exporter.exported(document).encode())
    if options.html is not None:
        output.write("--html", options.html, page.page(result).encode())
    if options.json:
        output.show_json(document, indent=2)
    elif printed is None:
        output.show(*terminal.lines(document))
    return result.gate


def _serve(watch: Watch, options: argparse.Namespace) -> NoReturn:
    from framegauge.check.metrics import served

    every = values.seconds("--every", options.every, 1, DAY)
    with served(_address(options.listen)) as (address, publish):
        output.say(f"verdicts at http://{address}/metrics, every {every:g} s; Ctrl-C ends it")
        while True:
            publish(_text(watch, options))
            time.sleep(every)


def _text(watch: Watch, options: argparse.Namespace) -> str:
    """The verdicts now, as they are exported; what goes wrong is said, and asked again later."""
    from framegauge.watch import document as documents, exporter, page, run as watching

    now = time.time()
    result: Watched | None = None
    try:
        result = watching.watch(watch, now)
        text = exporter.exported(documents.document(result))
        output.say(documents.answer(result))
    except FramegaugeError as error:
        output.say(str(error))
        text = exporter.unanswered(now)
    with contextlib.suppress(InputError):
        if options.textfile is not None:
            output.write("--textfile", options.textfile, text.encode())
        if options.html is not None and result is not None:
            output.write("--html", options.html, page.page(result).encode())
    return text


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise InputError(f'--listen: found "{text}", expected HOST:PORT such as 127.0.0.1:9781')
    return host.removeprefix("[").removesuffix("]"), int(port)
