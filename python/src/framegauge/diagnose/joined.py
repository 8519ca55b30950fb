"""Several captures of the same connections, joined by the agent: where packets were lost, and who kept whom waiting."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.diagnose.kinds import KINDS
from framegauge.errors import InputError
from framegauge.quantities import print_seconds

__all__ = ["annotate", "ends", "hops", "join", "labelled", "unique_files", "waits"]

# Findings that begin with a loss.
OF_LOSS = (
    "rto_stall", "tail_loss", "fast_retransmit", "double_loss", "syn_loss", "retransmit_storm", "pmtu_black_hole",
    "cwnd_collapse", "unscaled_window",
)  # fmt: skip
# Findings of what lies beyond a window without its scale.
OF_WINDOWS = ("unscaled_window",)
# Findings that sizes may explain; a timeout that they do is mended as a black hole is.
OF_SIZES = ("pmtu_black_hole", "rto_stall")
# Findings that a late answer, or a late acknowledgement, may explain.
OF_ANSWERS = ("application_limited", "network_limited", "sender_stall", "unexplained")
OF_ACKNOWLEDGEMENTS = ("nagle_delayed_ack",)
MOST_PLACES = 3
# Fewer segments may be lost by chance.
LEAST_BEYOND = 3
WORTH_SECONDS = 0.001
Json = dict[str, Any]


def unique_files(files: Sequence[Path], hosts: Mapping[str, Path]) -> list[Path]:
    """The files in the order in which they are read: those without a name, and those of hosts that are not among them.

    InputError if a file is given twice, or for two hosts.
    """
    unique: dict[Path, Path] = {}
    for file in files:
        path = file.resolve()
        if path in unique:
            raise InputError(f"{file}: found the same file twice, expected each once")
        unique[path] = file
    named: dict[Path, str] = {}
    for name, file in hosts.items():
        path = file.resolve()
        if str(file) == "-":
            raise InputError(f"--host {name}=-: expected a file: captures are read twice to be joined")
        if path in named:
            raise InputError(f"--host: found {file} for {named[path]} and for {name}, expected a file for each")
        named[path] = name
        unique.setdefault(path, file)
    return list(unique.values())


def labelled(files: Sequence[Path], hosts: Mapping[str, Path]) -> list[Json]:
    """The name of each file that can be read again: its host's, or else its own."""
    names = {file.resolve(): name for name, file in hosts.items()}
    stems = [file.name.split(".")[0] or file.name for file in files]
    return [
        {
            "name": names.get(file.resolve(), stem if stems.count(stem) == 1 else str(file)),
            "file": str(file),
        }
        for file, stem in zip(files, stems, strict=True)
        if str(file) != "-"
    ]


def join(document: Json, sources: Sequence[Json], hosts: Mapping[str, Path], ask: Callable[[str], Any]) -> Json | None:
    """The part `joined` of a document: what the captures say together, by the numbers of the document's captures and
    connections. None if they share nothing, which is an InputError if hosts were named.

    `ask` gives the agent's answer for the sources, in JSON.
    """
    answer: Json | None = (
        ask(json.dumps(sources)) if _shares(document, {source["file"] for source in sources}) else None
    )
    if answer is None:
        if len(hosts) > 1:
            raise InputError(f"the captures of {' and '.join(hosts)} share no connection: they cannot be joined")
        return None
    for tap in answer["taps"]:
        tap["file"] = sources[tap["file"] - 1]["file"]
        tap["capture"] = _capture(document, tap)
    by_ends = _by_ends(document)
    for number, connection in enumerate(answer["connections"], start=1):
        connection["joined"] = number
        for seen in connection["seen"]:
            capture = answer["taps"][seen["tap"] - 1]["capture"]
            seen["connection"] = _connection(document, by_ends.get((capture, _ends(connection)), ()), capture, seen)
    return answer


def _shares(document: Json, files: set[str]) -> bool:
    """Whether two captures have a connection between the same ends."""
    captures = {entry["capture"]: entry for entry in document["captures"]}
    if len(captures) < 2:
        return False
    # By their hashes: two that are alike only cost a look more.
    first_captures: dict[int, int] = {}
    for entry in document["connections"]:
        if captures[entry["capture"]]["file"] not in files:
            continue
        if (
            first_captures.setdefault(hash(frozenset((entry["client"], entry["server"]))), entry["capture"])
            != entry["capture"]
        ):
            return True
    return False


def _capture(document: Json, tap: Json) -> int | None:
    """The number of the capture that a tap is, or is a part of."""
    file_captures = [capture for capture in document["captures"] if capture["file"] == tap["file"]]
    side = (tap["interface"] or "").rpartition(" ")[2]
    for capture in file_captures:
        if capture["interface"] in (tap["interface"], None, f"switch ports, {side}"):
            return int(capture["capture"])
    return None


def _ends(connection: Json) -> tuple[str, str]:
    """Both ends, whichever of them opened it."""
    first, second = sorted((connection["client"], connection["server"]))
    return first, second


def _by_ends(document: Json) -> dict[tuple[int | None, tuple[str, str]], list[tuple[float, int]]]:
    """When the connections of a capture between two ends begin, and their numbers."""
    begins: dict[tuple[int | None, tuple[str, str]], list[tuple[float, int]]] = {}
    for connection in document["connections"]:
        begun = (connection["begin_seconds"], connection["connection"])
        begins.setdefault((connection["capture"], _ends(connection)), []).append(begun)
    return begins


def _connection(document: Json, candidates: Sequence[tuple[float, int]], capture: int | None, seen: Json) -> int | None:
    """The number of a connection at one tap: of several between the same ends, the one whose beginning is nearest."""
    begin = next((entry["begin_seconds"] for entry in document["captures"] if entry["capture"] == capture), None)
    if begin is None or not candidates:
        return None
    return min(candidates, key=lambda entry: abs(begin + entry[0] - seen["begin_seconds"]))[1]


def ends(connection: Mapping[str, Any], direction: int) -> str:
    """ "a to b" of a direction: 0 is that from the client."""
    names = (connection["client"], connection["server"])
    return f"{names[direction]} to {names[1 - direction]}"


def hops(joined: Mapping[str, Any]) -> Iterator[tuple[Json, int, Json]]:
    """Every connection, direction and hop."""
    for connection in joined["connections"]:
        for direction, path in enumerate(connection["directions"]):
            for hop in path["hops"]:
                yield connection, direction, hop


def annotate(document: Json) -> None:
    """Tells in the findings where a loss was, and which host kept the other one waiting."""
    joined = document["joined"]
    if joined is None:
        return
    names = {tap["tap"]: tap["name"] for tap in joined["taps"]}
    findings: dict[int | None, list[Json]] = {}
    for finding in document["findings"]:
        if finding["connection"] is not None:
            findings.setdefault(finding["connection"], []).append(finding)
    for connection in joined["connections"]:
        texts = {OF_LOSS: _lost(connection, names), OF_ANSWERS: _answers(connection, names)}
        texts[OF_ACKNOWLEDGEMENTS] = _acknowledgements(connection, names)
        texts[OF_WINDOWS] = _beyond(connection, names)
        texts[OF_SIZES] = sizes = _sizes(connection, names)
        numbers = {seen["connection"] for seen in connection["seen"]}
        for finding in itertools.chain.from_iterable(findings.get(number, ()) for number in numbers):
            finding["text"] += "".join(f" {text}" for kinds, text in texts.items() if text and finding["kind"] in kinds)
            if sizes and finding["kind"] in OF_SIZES:
                finding["remedy"] = KINDS["pmtu_black_hole"].remedy


def _lost(connection: Json, names: Mapping[int, str]) -> str:
    losses = [
        (hop["lost_packets"], direction, hop)
        for direction, item in enumerate(connection["directions"])
        for hop in item["hops"]
        if hop["lost_packets"]
    ]
    texts = []
    for count, direction, hop in sorted(losses, key=lambda item: -item[0])[:MOST_PLACES]:
        near, far = (names[tap] for tap in hop["between"])
        packets = f"{count} packet{'' if count == 1 else 's'}"
        texts.append(f"{packets} between {near} and {far}, from {ends(connection, direction)}")
    return f"Lost in this connection: {'; '.join(texts)}." if texts else ""


def _beyond(connection: Json, names: Mapping[int, str]) -> str:
    """Where what lies beyond a window without its scale was dropped."""
    passed = ""
    for hop in (hop for path in connection["directions"] for hop in path["hops"]):
        unscaled = hop["unscaled"]
        if unscaled is None or unscaled["beyond_segments"] < LEAST_BEYOND:
            continue
        near, far = (names[tap] for tap in hop["between"])
        beyond, lost = unscaled["beyond_segments"], unscaled["lost_segments"]
        if lost == beyond and not unscaled["others_lost_segments"]:
            return (
                f"That is certain: all {beyond} segments beyond that window were lost between {near} and {far}, and "
                "no other was."
            )
        if not lost:
            passed = f"All {beyond} segments beyond that window came from {near} to {far}: they are dropped behind it."
    return passed


def _sizes(connection: Json, names: Mapping[int, str]) -> str:
    """Between which places all packets above a size were lost."""
    for direction, path in enumerate(connection["directions"]):
        for hop in path["hops"]:
            size = hop["sizes"]
            if size is None:
                continue
            near, far = (names[tap] for tap in hop["between"])
            largest = (
                f"the largest has {size['passed_bytes']} bytes" if size["passed_bytes"] else "none of them has data"
            )
            has_fallen = size["before_bytes"] >= size["lost_bytes"]
            passed = size["passed_packets"]
            smaller = "the only smaller one" if passed == 1 else f"all {passed} smaller ones"
            until = f" Until then {size['before_bytes']} bytes passed: the path MTU has fallen." if has_fallen else ""
            return (
                f"Sizes tell why: from the first of them on all {size['lost_packets']} packets of {size['lost_bytes']} "
                f"bytes or more were lost between {near} and {far}, from {ends(connection, direction)}, and "
                f"{smaller} arrived; {largest}.{until}"
            )
    return ""


def waits(connection: Mapping[str, Any]) -> Iterator[tuple[int, Json]]:
    """Each direction that waited for answers, with how long."""
    for direction, path in enumerate(connection["directions"]):
        if path["wait"] is not None:
            yield direction, path["wait"]


def _answers(connection: Json, names: Mapping[int, str]) -> str:
    texts = [
        f"{names[wait['between'][1]]} held answers back for {print_seconds(wait['held_seconds'], 3)} of the "
        f"{print_seconds(wait['waited_seconds'], 3)} that {names[wait['between'][0]]} waited for them"
        for _, wait in waits(connection)
        if wait["held_seconds"] >= WORTH_SECONDS
    ]
    return f"{'; '.join(texts)}." if texts else ""


def _acknowledgements(connection: Json, names: Mapping[int, str]) -> str:
    texts = [
        f"{names[wait['between'][1]]} held {wait['acknowledgements']['count']} acknowledgements back, "
        f"{print_seconds(wait['acknowledgements']['seconds'], 3)} in all"
        for _, wait in waits(connection)
        if wait["acknowledgements"]["count"]
    ]
    return f"{'; '.join(texts)}." if texts else ""
