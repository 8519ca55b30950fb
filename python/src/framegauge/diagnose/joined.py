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
    seen: dict[Path, Path] = {}
    for file in files:
        place = file.resolve()
        if place in seen:
            raise InputError(f"{file}: found the same file twice, expected each once")
        seen[place] = file
    named: dict[Path, str] = {}
    for name, file in hosts.items():
        place = file.resolve()
        if str(file) == "-":
            raise InputError(f"--host {name}=-: expected a file: captures are read twice to be joined")
        if place in named:
            raise InputError(f"--host: found {file} for {named[place]} and for {name}, expected a file for each")
        named[place] = name
        seen.setdefault(place, file)
    return list(seen.values())


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
    found: Json | None = ask(json.dumps(sources)) if _shares(document, {each["file"] for each in sources}) else None
    if found is None:
        if len(hosts) > 1:
            raise InputError(f"the captures of {' and '.join(hosts)} share no connection: they cannot be joined")
        return None
    for tap in found["taps"]:
        tap["file"] = sources[tap["file"] - 1]["file"]
        tap["capture"] = _capture(document, tap)
    known = _by_ends(document)
    for number, connection in enumerate(found["connections"], start=1):
        connection["joined"] = number
        for seen in connection["seen"]:
            capture = found["taps"][seen["tap"] - 1]["capture"]
            seen["connection"] = _connection(document, known.get((capture, _ends(connection)), ()), capture, seen)
    return found


def _shares(document: Json, files: set[str]) -> bool:
    """Whether two captures have a connection between the same ends."""
    of = {each["capture"]: each for each in document["captures"]}
    if len(of) < 2:
        return False
    # By their hashes: two that are alike only cost a look more.
    seen: dict[int, int] = {}
    for each in document["connections"]:
        if of[each["capture"]]["file"] not in files:
            continue
        if seen.setdefault(hash(frozenset((each["client"], each["server"]))), each["capture"]) != each["capture"]:
            return True
    return False


def _capture(document: Json, tap: Json) -> int | None:
    """The number of the capture that a tap is, or is a part of."""
    of_file = [each for each in document["captures"] if each["file"] == tap["file"]]
    side = (tap["interface"] or "").rpartition(" ")[2]
    for each in of_file:
        if each["interface"] in (tap["interface"], None, f"switch ports, {side}"):
            return int(each["capture"])
    return None


def _ends(connection: Json) -> tuple[str, str]:
    """Both ends, whichever of them opened it."""
    one, other = sorted((connection["client"], connection["server"]))
    return one, other


def _by_ends(document: Json) -> dict[tuple[int | None, tuple[str, str]], list[tuple[float, int]]]:
    """When the connections of a capture between two ends begin, and their numbers."""
    found: dict[tuple[int | None, tuple[str, str]], list[tuple[float, int]]] = {}
    for each in document["connections"]:
        begun = (each["begin_seconds"], each["connection"])
        found.setdefault((each["capture"], _ends(each)), []).append(begun)
    return found


def _connection(document: Json, known: Sequence[tuple[float, int]], capture: int | None, seen: Json) -> int | None:
    """The number of a connection at one tap: of several between the same ends, the one whose beginning is nearest."""
    begin = next((each["begin_seconds"] for each in document["captures"] if each["capture"] == capture), None)
    if begin is None or not known:
        return None
    return min(known, key=lambda each: abs(begin + each[0] - seen["begin_seconds"]))[1]


def ends(connection: Mapping[str, Any], direction: int) -> str:
    """ "a to b" of a direction: 0 is that from the client."""
    names = (connection["client"], connection["server"])
    return f"{names[direction]} to {names[1 - direction]}"


def hops(joined: Mapping[str, Any]) -> Iterator[tuple[Json, int, Json]]:
    """Every connection, direction and hop."""
    for connection in joined["connections"]:
        for direction, each in enumerate(connection["directions"]):
            for hop in each["hops"]:
                yield connection, direction, hop


def annotate(document: Json) -> None:
    """Tells in the findings where a loss was, and which host kept the other one waiting."""
    joined = document["joined"]
    if joined is None:
        return
    names = {tap["tap"]: tap["name"] for tap in joined["taps"]}
    findings: dict[int | None, list[Json]] = {}
    for each in document["findings"]:
        if each["connection"] is not None:
            findings.setdefault(each["connection"], []).append(each)
    for connection in joined["connections"]:
        said = {OF_LOSS: _lost(connection, names), OF_ANSWERS: _answers(connection, names)}
        said[OF_ACKNOWLEDGEMENTS] = _acknowledgements(connection, names)
        said[OF_WINDOWS] = _beyond(connection, names)
        said[OF_SIZES] = sizes = _sizes(connection, names)
        numbers = {seen["connection"] for seen in connection["seen"]}
        for each in itertools.chain.from_iterable(findings.get(number, ()) for number in numbers):
            each["text"] += "".join(f" {text}" for kinds, text in said.items() if text and each["kind"] in kinds)
            if sizes and each["kind"] in OF_SIZES:
                each["remedy"] = KINDS["pmtu_black_hole"].remedy


def _lost(connection: Json, names: Mapping[int, str]) -> str:
    of = [
        (hop["lost_packets"], direction, hop)
        for direction, each in enumerate(connection["directions"])
        for hop in each["hops"]
        if hop["lost_packets"]
    ]
    told = []
    for count, direction, hop in sorted(of, key=lambda each: -each[0])[:MOST_PLACES]:
        one, other = (names[tap] for tap in hop["between"])
        packets = f"{count} packet{'' if count == 1 else 's'}"
        told.append(f"{packets} between {one} and {other}, from {ends(connection, direction)}")
    return f"Lost in this connection: {'; '.join(told)}." if told else ""


def _beyond(connection: Json, names: Mapping[int, str]) -> str:
    """Where what lies beyond a window without its scale was dropped."""
    passed = ""
    for hop in (hop for each in connection["directions"] for hop in each["hops"]):
        of = hop["unscaled"]
        if of is None or of["beyond_segments"] < LEAST_BEYOND:
            continue
        one, other = (names[tap] for tap in hop["between"])
        beyond, lost = of["beyond_segments"], of["lost_segments"]
        if lost == beyond and not of["others_lost_segments"]:
            return (
                f"That is certain: all {beyond} segments beyond that window were lost between {one} and {other}, and "
                "no other was."
            )
        if not lost:
            passed = f"All {beyond} segments beyond that window came from {one} to {other}: they are dropped behind it."
    return passed


def _sizes(connection: Json, names: Mapping[int, str]) -> str:
    """Between which places all packets above a size were lost."""
    for direction, each in enumerate(connection["directions"]):
        for hop in each["hops"]:
            of = hop["sizes"]
            if of is None:
                continue
            one, other = (names[tap] for tap in hop["between"])
            largest = f"the largest has {of['passed_bytes']} bytes" if of["passed_bytes"] else "none of them has data"
            fallen = of["before_bytes"] >= of["lost_bytes"]
            passed = of["passed_packets"]
            smaller = "the only smaller one" if passed == 1 else f"all {passed} smaller ones"
            until = f" Until then {of['before_bytes']} bytes passed: the path MTU has fallen." if fallen else ""
            return (
                f"Sizes tell why: from the first of them on all {of['lost_packets']} packets of {of['lost_bytes']} "
                f"bytes or more were lost between {one} and {other}, from {ends(connection, direction)}, and "
                f"{smaller} arrived; {largest}.{until}"
            )
    return ""


def waits(connection: Mapping[str, Any]) -> Iterator[tuple[int, Json]]:
    """Each direction that waited for answers, with how long."""
    for direction, each in enumerate(connection["directions"]):
        if each["wait"] is not None:
            yield direction, each["wait"]


def _answers(connection: Json, names: Mapping[int, str]) -> str:
    told = [
        f"{names[wait['between'][1]]} held answers back for {print_seconds(wait['held_seconds'], 3)} of the "
        f"{print_seconds(wait['waited_seconds'], 3)} that {names[wait['between'][0]]} waited for them"
        for _, wait in waits(connection)
        if wait["held_seconds"] >= WORTH_SECONDS
    ]
    return f"{'; '.join(told)}." if told else ""


def _acknowledgements(connection: Json, names: Mapping[int, str]) -> str:
    told = [
        f"{names[wait['between'][1]]} held {wait['acknowledgements']['count']} acknowledgements back, "
        f"{print_seconds(wait['acknowledgements']['seconds'], 3)} in all"
        for _, wait in waits(connection)
        if wait["acknowledgements"]["count"]
    ]
    return f"{'; '.join(told)}." if told else ""
