"""Arguments and output of `framegauge diagnose`; no logic."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.cli import output
from framegauge.cli.arguments import Verb, nearest, verb_parser
from framegauge.errors import InputError, failing_as

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "name what makes TCP slow, from captures, with the packets that prove it"
_MORE = """\
CAPTURE is a file of tcpdump, Wireshark or any other program: pcap or pcapng, also compressed with gzip or zstd, and
with xz, bzip2 or lz4 where these programs are installed; - is standard input, and a folder, such as that of
framegauge capture, stands for all captures in it. Headers are enough: tcpdump -s 128. Nothing is sent, and no root is
needed.

The time of each connection's life is divided among causes, so that what was lost adds up. Packet numbers are those
that Wireshark shows. What each finding means, and from which limits it follows: framegauge docs diagnose

--html writes one offline page with the time-sequence pictures of the connections that lost most time: segments,
resends, ACKs, SACKs, the window, and the findings as bands; bytes in flight and RTT below. --pcapng writes the packets
that prove the findings, with comments that Wireshark shows. Both read the captures a second time, which a pipe does not
allow. FILE may be -, which is standard output; nothing else is printed there then.

--engine dask://HOST:PORT, the address of a scheduler, spreads many captures over a Dask cluster that you have. Its
workers need nothing of framegauge; captures that they do not find at the same path are sent to them. What several
captures say together, pictures and evidence are made here.

examples:
  framegauge diagnose slow.pcapng
  framegauge diagnose client.pcap.gz server.pcap.gz --json | jq '.findings[] | select(.lost_seconds > 1)'
  framegauge diagnose --host web=client.pcap.gz --host db=server.pcap.gz    # where between the two is it lost?
  framegauge diagnose slow.pcap --only rto_stall,pmtu_black_hole
  framegauge diagnose slow.pcapng --html slow.html --pcapng evidence.pcapng
  framegauge capture db1 db2 --for 30s --out slow && framegauge diagnose slow
  framegauge diagnose slow.pcapng --flows flows.csv                         # to replay it: framegauge simulate
  framegauge diagnose /captures --engine dask://scheduler:8786
  tcpdump -i eth0 -s 128 -w - -c 100000 tcp | framegauge diagnose -

exit codes: 0 nothing worth fixing, 1 findings, 2 cannot tell (no TCP, bad input), 130 interrupted
"""
CANNOT = 2


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("diagnose", SUMMARY, _MORE, "Why is TCP slow here? Named problems, from captures.")
    verb.add_argument(
        "captures", nargs="*", type=Path, metavar="CAPTURE", help="a capture file, a folder of them, or -"
    )
    verb.add_argument(
        "--host", action="append", default=[], metavar="NAME=FILE",
        help="a capture and the name of the place where it was made; may be repeated",
    )  # fmt: skip
    verb.add_argument("--only", metavar="KIND,...", default="", help="findings of these kinds only")
    verb.add_argument(
        "--threshold", action="append", default=[], metavar="NAME=VALUE",
        help="another limit than that of the table in framegauge docs diagnose; may be repeated",
    )  # fmt: skip
    verb.add_argument(
        "--engine", default="local", metavar="ENGINE",
        help="where captures are read: local, on all cores (default), or dask://HOST:PORT, on a Dask cluster",
    )  # fmt: skip
    verb.add_argument("--json", action="store_true", help="print JSON (framegauge schema diagnose)")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write one offline page, with pictures")
    verb.add_argument(
        "--pcapng", type=output.place, metavar="FILE", help="write the packets that prove it, with comments"
    )
    verb.add_argument(
        "--flows", type=output.place, metavar="FILE",
        help="write the connections as CSV, which a simulation can replay (workload replay)",
    )  # fmt: skip
    return verb


def run(words: Sequence[str]) -> int:
    """Diagnose, show, and give the exit code."""
    with failing_as(CANNOT):  # 1 says that something was found
        return _run(words)


def _run(words: Sequence[str]) -> int:
    options = parser().parse_args(words)
    from framegauge.diagnose import engines, flows, folders, joined, run as diagnosis, terminal
    from framegauge.diagnose.kinds import KINDS
    from framegauge.files import recordings

    captures = folders.captures(options.captures)
    only = [word.strip() for word in options.only.split(",") if word.strip()]
    for kind in only:
        if kind not in KINDS:
            raise InputError(f'--only: found "{kind}", expected one of {", ".join(KINDS)}')
    limits = dict(_threshold(text) for text in options.threshold)
    hosts = _hosts(options.host)
    files = joined.unique_files(captures, hosts)
    if not files:
        raise InputError("found no capture, expected CAPTURE or --host NAME=FILE")
    places = {"--html": options.html, "--pcapng": options.pcapng, "--flows": options.flows}
    stdout_option = output.one_to_standard_output({"--json": options.json, **places})
    _check_places(places, files)
    _check_kinds(files)
    left = iter(range(1, len(files) + 1))

    def done(file: Path) -> None:
        if len(files) > 1:
            output.say(f"{next(left)} of {len(files)} read: {file}")

    with engines.opened(options.engine) as engine:
        document = diagnosis.diagnose(files, only, limits, done, hosts, engine)
    if options.html is not None:
        _write_page(options.html, files, document, limits)
    if options.pcapng is not None:
        _write_evidence(options.pcapng, files, document)
    if options.flows is not None:
        output.write("--flows", options.flows, recordings.to_csv(flows.recorded(document)).encode())
    if options.json:
        output.show_json_rows(document)
    elif stdout_option is None:
        output.show(*terminal.lines(document))
    if not diagnosis.is_judgeable(document):
        return 2
    return 1 if any(True for _ in diagnosis.each_worth_fixing(document)) else 0


def _check_places(places: Mapping[str, Path | None], captures: Sequence[Path]) -> None:
    for option, path in places.items():
        _check_place(option, path, captures)
    option_paths = [
        (option, path.absolute()) for option, path in places.items() if path not in (None, output.STANDARD_OUTPUT)
    ]
    for (one, path), (other, same) in itertools.combinations(option_paths, 2):
        if path == same:
            raise InputError(f"{one} and {other}: found {places[one]} for both, expected two files")
    if places["--pcapng"] is not None:
        _check_twice(captures)


def _check_place(option: str, path: Path | None, captures: Sequence[Path]) -> None:
    """InputError, before anything is read, if a file cannot be written or is one of the captures."""
    output.check_file(option, path)
    if path is None or path == output.STANDARD_OUTPUT:
        return
    for capture in captures:
        if any(target.exists() and capture.exists() and target.samefile(capture) for target in output.touched(path)):
            raise InputError(f"{option}: found {path}, which is a capture to read, expected another file")


def _check_kinds(captures: Sequence[Path]) -> None:
    """InputError for a file of another verb, which says more than that its first bytes are not those of a capture."""
    from framegauge.files import yaml as yaml_file

    for path in captures:
        if path.suffix in (".yaml", ".yml") and path.is_file():
            other = yaml_file.expected(yaml_file.read(path, "a capture"), str(path), "capture")
            if other is not None:
                raise InputError(other)


def _check_twice(captures: Sequence[Path]) -> None:
    from framegauge.diagnose.sources import is_read_once

    for capture in captures:
        if is_read_once(capture):
            raise InputError(f"--pcapng: found {capture}, which can be read once only, expected a file")


def _write_page(path: Path, captures: Sequence[Path], document: Mapping[str, Any], limits: Mapping[str, float]) -> None:
    from framegauge.diagnose import pictures, sources
    from framegauge.diagnose.page import html

    once = ", ".join(str(capture) for capture in captures if sources.is_read_once(capture))
    notes = [f"What was read from {once} can be read once only, so its connections have no pictures."] if once else []
    for note in notes:
        output.say(f"--html: {note}")
    charts = pictures.draw(captures, document, sources.chosen(document), limits)
    output.write("--html", path, html.page(document, charts, notes).encode())


def _write_evidence(path: Path, captures: Sequence[Path], document: Mapping[str, Any]) -> None:
    from framegauge.diagnose import evidence

    if path == output.STANDARD_OUTPUT:
        with tempfile.TemporaryFile() as file:
            evidence.write(document, captures, file)
            file.seek(0)
            output.write("--pcapng", path, file.read())
        return
    with output.replacing("--pcapng", path) as file:
        count = evidence.write(document, captures, file)
    output.say(f"--pcapng: {count} packet{'' if count == 1 else 's'} in {path}")


def _threshold(text: str) -> tuple[str, float]:
    from framegauge.diagnose.kinds import LIMITS

    name, _, value = text.partition("=")
    try:
        limit = int(value) if value.isdecimal() else float(value)
    except ValueError:
        raise InputError(f'--threshold: found "{text}", expected NAME=VALUE, such as pause_rtts=3') from None
    if name not in LIMITS:
        expected = nearest(name, LIMITS) or f", expected one of {', '.join(LIMITS)}"
        raise InputError(f'--threshold: found "{name}"{expected}')
    return name, limit


def _hosts(texts: Sequence[str]) -> dict[str, Path]:
    hosts: dict[str, Path] = {}
    for text in texts:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InputError(f'--host: found "{text}", expected NAME=FILE, such as web=client.pcap')
        if name in hosts:
            raise InputError(f'--host: found the name "{name}" twice, expected a name for each capture')
        hosts[name] = Path(file)
    return hosts
