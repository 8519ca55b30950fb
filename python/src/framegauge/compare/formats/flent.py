"""Flent's data files (`.flent`, as they are or packed by gzip or bzip2): one file is one run.

Goodput is the mean of a direction's total over the points that have one: "TCP upload sum" and "TCP download sum"; or
that direction's single stream; or "TCP totals", for both ways. Latency is the median over the file of "Ping (ms) avg",
or of the single ping; for several pings without an average it is the mean of their medians.

Formats 1 to 4 (tohojo/flent, `resultset.py`); all series have one value per point in time, null if it is missing.
"""

from __future__ import annotations

import io
import math
import re
import statistics
import zlib
from bz2 import BZ2File
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from gzip import GzipFile
from typing import Any

from framegauge.compare.formats.samples import CutOff, Sample, Unreadable, as_number, load_json, one_line
from framegauge.foreign import MOST_BYTES

__all__ = ["parse"]

NEWEST = 4
UNANSWERED = "no ping was answered"
WHAT = "a data file of flent"
PING = re.compile(r"Ping \(ms\)(?: |::)[^:]*")
STREAM = re.compile(r"TCP [^:]*(?:::\d+)?")  # "::" and a name stands for the state of a stream: tcp_cwnd, tcp_rtt
DERIVED = (" avg", " sum", " total", " totals", " fairness")


def parse(name: str, data: bytes) -> list[Sample]:
    """The samples of one file: goodput per direction, and latency; Unreadable if there are none."""
    document = load_json(_unpacked(data), WHAT)
    version = document.get("version", 1)
    if isinstance(version, int) and version > NEWEST:
        raise Unreadable(f"found format {version} of flent, expected at most {NEWEST}")
    series, metadata = document.get("results"), document.get("metadata")
    if not isinstance(series, dict) or not isinstance(metadata, dict):
        raise Unreadable(f"found no results or no metadata, expected {WHAT}")
    streams = [key for key in series if STREAM.fullmatch(key) and not key.endswith(DERIVED)]
    conditions = _conditions(metadata, streams)
    goodputs, latency = _goodputs(series, streams), _latency(series)
    silent = [way for way in ("upload", "download") if way not in goodputs and _is_silent(series, streams, way)]
    if not goodputs and not silent and latency is None:
        raise Unreadable("found neither a total of TCP nor a single stream nor a ping with values, expected one")
    began, facts = _began(metadata.get("TIME")), _facts(metadata)
    nothing = "found no value above 0 in any stream of TCP, expected some"
    samples = [
        Sample(
            name, "flent", {"direction": way, **conditions}, {}, excluded=[f"{way}: {nothing}"], moved_nothing=True,
            began=began, facts=facts,
        )
        for way in silent
    ]  # fmt: skip
    notes = list(_gaps(series, streams))
    samples += [
        Sample(
            name, "flent", {"direction": way, **conditions}, {"goodput": value}, began=began, facts=facts,
            notes=notes if position == 0 else [], stalled=_stalled(document, streams, way, conditions),
        )
        for position, (way, value) in enumerate(goodputs.items())
    ]  # fmt: skip
    if latency is not None:
        samples.append(Sample(name, "flent", conditions, {"latency_p50": latency}, began=began, facts=facts))
    elif any(PING.fullmatch(key) for key in series):
        lost: dict[str, Any] = {"excluded": [UNANSWERED], "lost": False, "stalled": UNANSWERED}
        samples.append(Sample(name, "flent", conditions, {}, **lost, began=began, facts=facts))
    return samples


def _unpacked(data: bytes) -> bytes:
    """The text of a file, by what it begins with: its name may be wrong."""
    if data.lstrip().startswith(b"{"):
        return data
    name = "bzip2" if data.startswith(b"BZh") else "gzip"
    try:
        with BZ2File(io.BytesIO(data)) if name == "bzip2" else GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(MOST_BYTES + 1)
    except EOFError:
        raise CutOff(f"found a {name} file that is cut off, expected a whole one") from None
    except (OSError, zlib.error):
        raise Unreadable(f"found no {name} file, expected {WHAT}") from None
    if len(text) > MOST_BYTES:
        raise Unreadable(f"found more than {MOST_BYTES} bytes unpacked, expected at most that many")
    return text


def _conditions(metadata: Mapping[str, Any], streams: Sequence[str]) -> dict[str, Any]:
    conditions: dict[str, Any] = {"test": one_line(metadata.get("NAME", "unnamed"), 60)}
    if (length := as_number(metadata.get("LENGTH"))) is not None:
        conditions["duration_seconds"] = length
    for way in ("upload", "download"):
        if count := sum(way in key for key in streams):
            conditions[f"{way}_flows"] = count
    return conditions


def _goodputs(series: Mapping[str, Any], streams: Sequence[str]) -> dict[str, float]:
    """Goodput in bits per second, by direction."""
    goodputs = {}
    for way in ("upload", "download"):
        way_streams = [key for key in streams if way in key]
        names = [f"TCP {way} sum", *(way_streams if len(way_streams) == 1 else [])]
        if (value := _first_mean(series, names)) is not None:
            goodputs[way] = value
    if not goodputs:
        names = ["TCP totals", *(streams if len(streams) == 1 else [])]
        if (value := _first_mean(series, names)) is not None:
            goodputs["both ways" if "TCP totals" in series else "one way"] = value
    return goodputs


def _gaps(series: Mapping[str, Any], streams: Sequence[str]) -> Iterator[str]:
    """The streams that lack half of their values or more: their means stand for the rest."""
    for key in streams:
        points = series[key] if isinstance(series[key], list) else []
        values = len(_values(points))
        if 0 < values <= len(points) / 2:
            yield f"{one_line(key, 60)} has values at {values} of {len(points)} points in time: the mean is of these"


def _is_silent(series: Mapping[str, Any], streams: Sequence[str], way: str) -> bool:
    """Whether there are streams of a direction, and not one has a value above 0."""
    way_streams = [key for key in streams if way in key]
    return bool(way_streams) and not any(value > 0 for key in way_streams for value in _values(series.get(key)))


def _stalled(data: Mapping[str, Any], streams: Sequence[str], way: str, conditions: Mapping[str, Any]) -> str:
    """How transfers of a direction moved nothing in a part of the run: one of several streams, or all of them for more
    than half of the time that was asked for."""
    series = data["results"]
    keys = [key for key in streams if way in key] or list(streams)
    silent = sum(not any(value > 0 for value in _values(series.get(key))) for key in keys)
    if 0 < silent < len(keys):
        return f"{silent} of {len(keys)} streams moved nothing"
    duration, times = conditions.get("duration_seconds"), data.get("x_values")
    if not duration or not isinstance(times, list):
        return ""
    moving = {
        index for key in keys if isinstance(series.get(key), list) for index, point in enumerate(series[key])
        if (as_number(point) or 0.0) > 0
    }  # fmt: skip
    stamps = [number for index in moving if index < len(times) and (number := as_number(times[index])) is not None]
    moving_seconds = max(stamps) - min(stamps) if stamps else 0.0
    return f"data moved in {moving_seconds:.3g} s of {duration:g} s" if moving_seconds < duration / 2 else ""


def _first_mean(series: Mapping[str, Any], names: Sequence[str]) -> float | None:
    for name in names:
        if (values := _values(series.get(name))) and (mean := math.fsum(values) / len(values)) > 0:
            return mean * 1e6
    return None


def _latency(series: Mapping[str, Any]) -> float | None:
    """The latency in seconds, None without a ping."""
    pings = [key for key in series if PING.fullmatch(key)]
    if "Ping (ms) avg" in pings:
        pings = ["Ping (ms) avg"]
    medians = [statistics.median(values) for key in pings if (values := _values(series[key]))]
    mean = math.fsum(medians) / len(medians) if medians else 0.0
    return mean / 1e3 if mean > 0 else None


def _values(points: object) -> list[float]:
    return [number for point in points if (number := as_number(point)) is not None] if isinstance(points, list) else []


def _began(text: object) -> datetime | None:
    """The start of the test, if it is in UTC: older files have local time without a time zone."""
    if not isinstance(text, str) or not text.endswith("Z"):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _facts(metadata: Mapping[str, Any]) -> dict[str, str]:
    names = {
        "flent": "FLENT_VERSION",
        "kernel": "KERNEL_RELEASE",
        "host": "HOST",
        "IP version": "IP_VERSION",
        "step (s)": "STEP_SIZE",
        "title": "TITLE",
    }
    return {
        name: one_line(metadata[key])
        for name, key in names.items()
        if isinstance(metadata.get(key), str | int | float) and metadata[key] != ""
    }
