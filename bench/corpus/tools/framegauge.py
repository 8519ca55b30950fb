"""`framegauge diagnose`: every finding, as it is named."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.corpus.answers import Answer, end

from framegauge.agents.binary import find_agent

TITLE = "framegauge diagnose"
NEEDS = "framegauge-agent"
MAPPING = "findings as they are named; one that names no connection is of the capture"
END = re.compile(r"\[?(?P<address>[0-9a-fA-F:.]+?)\]?:(?P<port>\d+)")


def output(capture: Path) -> str:
    """What the tool prints."""
    command = [find_agent(), "diagnose", "--thresholds", "{}", str(capture)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def answers(text: str, capture: str) -> Iterator[Answer]:
    """What it says of a capture."""
    for tap in json.loads(text)["taps"]:
        ends = {
            each["connection"]: frozenset(named(each[side]) for side in ("client", "server"))
            for each in tap["connections"]
        }
        for finding in tap["findings"]:
            begin, last = (tap["begin_seconds"] + finding[name] for name in ("begin_seconds", "end_seconds"))
            connection = None if finding["connection"] is None else ends[finding["connection"]]
            yield Answer(capture, connection, finding["kind"], begin, last)


def named(text: str) -> str:
    """An end as answers and truths name it."""
    matched = END.fullmatch(text)
    assert matched is not None, f"found {text}, expected ADDRESS:PORT"
    return end(matched["address"], matched["port"])
