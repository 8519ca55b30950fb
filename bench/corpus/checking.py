"""What must be true of a corpus: of its files, and of the books in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
from bench.corpus import manifest
from bench.corpus.splits import split

SIDES = (("sender", "sender_to_receiver"), ("receiver", "receiver_to_sender"))


def problems(folder: Path) -> Iterator[str]:
    """A line for each."""
    yield from manifest.problems(folder)
    validator = jsonschema.Draft202012Validator(json.loads(manifest.OWN_SCHEMA.read_bytes()))
    for truth in manifest.truths(folder):
        name = truth["run"]
        errors = list(validator.iter_errors(truth))
        yield from (f"{name}: {error.json_path}: {error.message[:200]}" for error in errors)
        if not errors:
            kernel = json.loads((folder / "runs" / name / "kernel.json").read_bytes())
            yield from (f"{name}: {problem}" for problem in (*of_books(truth), *of_kernels(truth, kernel)))


def of_books(truth: Mapping[str, Any]) -> Iterator[str]:
    """The books of the wire balance, and the split follows from the number."""
    if truth["split"] != split(truth["number"]):
        yield f"found the split {truth['split']}, expected {split(truth['number'])}"
    for unit in ("packets", "bytes"):
        came, went = (
            sum(count for name, count in truth["conservation"][column].items() if name.endswith(unit))
            for column in ("came", "went")
        )
        if came != went:
            yield f"found {came} {unit} that came and {went} that went, expected as many"
    for connection in truth["connections"]:
        for _, way in SIDES:
            if connection[way]["arrived_bytes"] > connection[way]["stream_bytes"]:
                yield f"connection {connection['connection']}: found more bytes that arrived than were sent"


def of_kernels(truth: Mapping[str, Any], kernel: Mapping[str, Any]) -> Iterator[str]:
    """Sockets and wire count the same: data packets that were sent, and bytes that were acknowledged did arrive.

    A socket is asked when its program has ended, so packets may follow (an answer to a probe); fewer cannot be.
    """
    by_ends = {
        (side, *connection["ends"]["sender" if side == "sender" else "switch"]): connection
        for connection in truth["connections"]
        for side, _ in SIDES
    }
    for side, way in SIDES:
        for socket in kernel[side]["sockets"]:
            if "kernel" not in socket:
                continue
            account = socket["kernel"]
            own, other = _named(socket["own"]), _named(socket["other"])
            ends = (own, other) if side == "sender" else (other, own)
            connection = by_ends.get((side, *ends))
            if connection is None:
                yield f"found a socket of {own} and {other} on the {side}, expected a connection of the wire"
                continue
            wire, number = connection[way], connection["connection"]
            if account["tcpi_data_segs_out"] > wire["data_packets"]:
                yield (
                    f"connection {number}: found {wire['data_packets']} data packets of the {side} on the wire, "
                    f"expected {account['tcpi_data_segs_out']} or more, as its socket counts"
                )
            # The SYN and the FIN are acknowledged as a byte each.
            if account["tcpi_bytes_acked"] > wire["arrived_bytes"] + 2:
                yield (
                    f"connection {number}: found {wire['arrived_bytes']} bytes of the {side} that arrived, expected "
                    f"{account['tcpi_bytes_acked'] - 2} or more, which were acknowledged"
                )


def _named(end: list[Any]) -> str:
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"
