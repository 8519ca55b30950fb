"""curl: files that it fetches over FTP, and when each of them was confirmed, as it reports itself."""

from __future__ import annotations

import json
import math
import re

from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Json

__all__ = ["command", "completions", "parse", "transfers"]

DAY_SECONDS = 86_400.0
START_SECONDS = 0.3  # for curl to start while others share its CPU
_COMPLETED = re.compile(r"^(\d\d):(\d\d):(\d\d\.\d{6}) < 226 ", re.MULTILINE)

# Starts a program and prints the machine's uptime before that, in hundredths of a second.
UPTIME = ("sh", "-c", 'read up idle < /proc/uptime; echo "$up"; exec "$@"', "sh")


def command(address: str, count: int, within_seconds: float) -> list[str]:
    """The command that logs in with the file `ready`, of one byte, and then fetches `data` so many times."""
    base = f"ftp://{address}" if ":" not in address else f"ftp://[{address}]"
    argv = ["curl", "-q", "--globoff", "--silent", "--show-error", "--noproxy", "*", "--connect-timeout", "10"]
    argv += ["--max-time", str(math.ceil(within_seconds)), "--write-out", "%{json}\\n"]
    # Between two transfers curl may wait for the CPU. Its times do not show that, but its log does.
    argv += ["--verbose", "--trace-time"]
    for name in ("ready", *["data"] * count):
        argv += ["--output", "/dev/null", f"{base}/{name}"]
    return [*UPTIME, *argv]


def transfers(output: str, log: str, size_bytes: int, count: int) -> tuple[float, list[Json]]:
    """When `command` was started, and its transfers, each with the time at which it was confirmed.

    Times are in seconds of the machine's uptime. ProgramFailure if anything is not as expected.
    """
    uptime, _, text = output.partition("\n")
    try:
        start_seconds = float(uptime)
    except ValueError:
        raise ProgramFailure(f"curl: found {uptime[:60]!r}, expected the machine's uptime first") from None
    results = parse(text, size_bytes, count)
    ends = completions(log, start_seconds + START_SECONDS + results[0]["total_seconds"], len(results))
    return start_seconds, [{**result, "ended_seconds": end} for result, end in zip(results, ends, strict=True)]


def parse(text: str, size_bytes: int, count: int) -> list[Json]:
    """The transfers that curl's `--write-out %{json}` reports, one per line: the login's and `count` files.

    ProgramFailure if the output is not as expected, or a transfer has failed.
    """
    lines = text.splitlines()
    results = [_transfer(line, index) for index, line in enumerate(lines)]
    if len(results) != count + 1:
        raise ProgramFailure(f"curl: found {len(results)} transfers, expected {count + 1}")
    for index, result in enumerate(results):
        expected = size_bytes if index else 1
        if result["bytes"] != expected:
            raise ProgramFailure(f"curl: transfer {index}: found {result['bytes']} bytes, expected {expected}")
    return results


def completions(trace: str, first_seconds: float, count: int) -> list[float]:
    """The time at which each transfer was confirmed (FTP's 226, RFC 959), in seconds of the machine's uptime.

    `trace` is the log of `curl --verbose --trace-time`: its times are that clock to the microsecond, plus a whole
    number of seconds that turns it into the time of day (curl's `tool_cb_dbg.c`: the offset is taken once, in seconds).
    `first_seconds`: the time of the first confirmation, to half a second. ProgramFailure if there are not `count`.
    """
    times: list[float] = []
    for hours, minutes, seconds in _COMPLETED.findall(trace):
        of_day = 3600 * int(hours) + 60 * int(minutes) + float(seconds)
        if not times:
            offset = round(of_day - first_seconds)
        moment = of_day - offset
        times.append(moment if not times else times[-1] + (moment - times[-1]) % DAY_SECONDS)
    if len(times) != count:
        raise ProgramFailure(f"curl: found {len(times)} confirmed transfers, expected {count}")
    return times


def _transfer(line: str, index: int) -> Json:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ProgramFailure(f"curl: transfer {index}: found {line[:60]!r}, expected a JSON object")
    if document.get("exitcode") != 0:
        message = str(document.get("errormsg"))[:200]
        raise ProgramFailure(
            f"curl: transfer {index}: found exit code {document.get('exitcode')} ({message}), expected 0"
        )
    names = {"bytes": "size_download", "connected_seconds": "time_connect", "total_seconds": "time_total"}
    values: Json = {name: document.get(key) for name, key in names.items()}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
            raise ProgramFailure(f"curl: transfer {index}: {names[name]}: found {value!r}, expected a number from 0")
    # Only the login's transfer may have a later time, that of the control connection.
    if index and not values["connected_seconds"] < values["total_seconds"]:
        raise ProgramFailure(f"curl: transfer {index}: found an end before its connection, expected it after that")
    return values
