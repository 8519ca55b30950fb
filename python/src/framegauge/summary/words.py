"""The names and values of a summary in words: one place, so that terminal, page and Markdown agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from framegauge import quantities
from framegauge.networks import disciplines
from framegauge.summary import amounts
from framegauge.summary.intervals import usable
from framegauge.summary.units import figure, quantity, signed

__all__ = [
    "Cells", "alternatives", "arms", "change", "change_interval", "change_range", "condition", "conditions",
    "factor", "figure", "is_control", "joined", "level", "levels", "margin", "metric", "notes", "of_all",
    "of_workload", "quantity", "shares", "span", "subject", "verdict", "word",
]  # fmt: skip

USUAL_MODERATION_SECONDS = 50e-6  # shown only if it differs
_WORDS = {
    "mtu": "MTU", "rtt_seconds": "RTT", "congestion_control": "", "tso": "TSO", "lro": "LRO", "gro": "GRO",
    "hw_gro": "hardware GRO",
    "checksum": "checksum offload", "moderation_seconds": "moderation", "nagle": "Nagle",
    "qdisc": "queue discipline", "buffer_bytes": "buffer", "skew_ppm": "skew", "ecn": "ECN", "topology": "",
    "nics": "NICs", "changes": "", "gso_size_bytes": "GSO size", "gro_size_bytes": "GRO size",
    "mtu_probing": "MTU probing", "receiver": "to", "mptcp": "MPTCP", "plpmtud": "path MTU discovery",
}  # fmt: skip
_AGGREGATES = ("gso_size_bytes", "gro_size_bytes")
_SIZES = {"socket_buffer_bytes", "message_bytes"}
# Conditions that make one phrase together.
_PHRASES = (
    ("request_bytes", "response_bytes"), ("rate_per_second", "arrivals"), ("direction", "bidir"),
    ("bulk_flows", "bulk_hosts", "bulk_bits_per_second"),
)  # fmt: skip
_SAID_ANYWAY = ("bits_per_second", "offloads")  # of what all cells share, also the usual values of these are said


def word(name: str) -> str:
    """The common name of a factor or condition: "rtt_seconds" is "RTT"."""
    return _WORDS.get(name, name)


def factor(name: str) -> str:
    """The name of a factor in words: "size", "RTT", "congestion control"."""
    return (word(name) or name).removesuffix("_bytes").removesuffix("_seconds").replace("_", " ")


def metric(name: str) -> str:
    """A metric's name in words."""
    return name.replace("_", " ").replace("cpu", "CPU")


def of_workload(entries: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], str]:
    """The name of an entry's metric, with its workload where several of these entries' workloads have that metric."""
    workloads: dict[str, set[str]] = {}
    for candidate in entries:
        workloads.setdefault(candidate["metric"], set()).add(str(candidate["workload"]))

    def named(entry: Mapping[str, Any]) -> str:
        return metric(entry["metric"]) + (f" of {entry['workload']}" if len(workloads[entry["metric"]]) > 1 else "")

    return named


def level(value: Any) -> str:
    """A factor's level in words. Floats are taken as seconds; `levels` and `condition` know factors in other units."""
    if isinstance(value, Mapping) and "kind" in value:
        return disciplines.text(value)
    if isinstance(value, Mapping) and (
        _SIZES & value.keys() or any(isinstance(inner, Mapping) for inner in value.values())
    ):
        return _sizes(value)
    if isinstance(value, Mapping):
        return amounts.mtus(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return quantities.print_seconds(value) if isinstance(value, float) else str(value)


def _sizes(value: Mapping[str, Any]) -> str:
    """Sizes of socket buffers and messages: "57344/16384", or in the order of MTUs: "by MTU (57344/16384, …)"."""
    if not _SIZES & value.keys():
        texts = [_sizes(value[mtu]) for mtu in sorted(value, key=int)]
        return f"by MTU ({', '.join(texts)})"
    buffer, message = value.get("socket_buffer_bytes"), value.get("message_bytes")
    if buffer is None:
        return f"of messages {message}"
    return f"of socket buffers {buffer}" if message is None else f"{buffer}/{message}"


def levels(side: Mapping[str, Any]) -> str:
    """The levels of a verdict's `baseline` or `treatment`, without the estimate: "MTU 9000"."""
    return ", ".join(
        amounts.counted(name, value) or f"{word(name)} {_of(name, value)}".strip()
        for name, value in side.items()
        if name != "estimate"
    )


def subject(side: Mapping[str, Any]) -> str:
    """The same as the subject of a sentence: "red" and not "queue red"."""
    return levels(side).removeprefix("queue ")


def _of(name: str, value: Any) -> str:
    """The level of a factor in words; the unit follows from the factor's name where the value does not show it."""
    if value is not None and name == "buffer_bytes":
        return quantities.exact_bytes(value)
    if value is not None and name.endswith("_ppm"):
        return f"{value:g} ppm"
    return level(value)


def is_control(verdict: Mapping[str, Any]) -> bool:
    """Whether a verdict of the summary compares the baseline with itself (A/A)."""
    sides = [
        {name: value for name, value in verdict[side].items() if name != "estimate"}
        for side in ("baseline", "treatment")
    ]
    return sides[0] == sides[1]


def verdict(found: Mapping[str, Any]) -> str:
    """A verdict in words. An A/A control that is undecided differs from nothing: too few blocks show that it is alike,
    which is no fault."""
    interval = found["ci95"]
    is_alike = interval is not None and interval[0] <= 1 <= interval[1]
    return (
        "no difference seen" if is_alike and found["verdict"] == "undecided" and is_control(found) else found["verdict"]
    )


def notes(found: Mapping[str, Any]) -> list[str]:
    """The warnings of a verdict. What would settle it is left out where it would not: of an A/A control that differs
    from nothing, and of a comparison that is suspect, or was not judged, for another reason than too few blocks."""
    is_open = verdict(found) == "undecided"
    return [line for line in found["warnings"] if is_open or not line.startswith("undecided: ")]


def arms(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The treatment's level of each verdict: "MTU 9000", "MTU 1500 (A/A)"; empty if all have the same."""
    labels = [levels(entry["treatment"]) + (" (A/A)" if is_control(entry) else "") for entry in verdicts]
    return labels if len(set(labels)) > 1 else [""] * len(labels)


def of_all(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """What all verdicts of a study have in common: "All rows: stream, 10 MB, rate 1 Gb/s; baseline MTU 1500"."""
    if not verdicts:
        return ""
    parts = [Cells(verdicts).common, f"baseline {levels(verdicts[0]['baseline'])}"]
    if not any(arms(verdicts)):
        parts.append(f"treatment {levels(verdicts[0]['treatment'])}")
    return f"All rows: {'; '.join(filter(None, parts))}"


def joined(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def alternatives(names: Sequence[str], last: str = "or") -> str:
    """The same, with what all names begin with said once: "RTT 200 us or 1.2 ms"."""
    parts = [name.split(" ") for name in names]
    same = 0 if len(names) > 1 else len(parts[0]) - 1
    while same < min(map(len, parts)) - 1 and len({part[same] for part in parts}) == 1:
        same += 1
    return " ".join([*parts[0][:same], joined([" ".join(part[same:]) for part in parts], last)])


def _digits(values: Sequence[float]) -> int:
    """The decimals of percentages shown together: none from 20 %, two below 1 %; more for a narrow interval."""
    size = 100 * min((abs(value) for value in values), default=0)
    width = 100 * (max(values, default=0) - min(values, default=0))
    most = 2 if 100 * max(map(abs, values), default=0) < 9.95 else 1
    by_width = 0 if width in (0, float("inf")) else min(most, max(0, math.ceil(-math.log10(width / 4))))
    return max(by_width, 2 if size < 0.995 else 1 if size < 19.95 else 0)


def shares(values: Sequence[float]) -> list[str]:
    """Shares as percentages, all with the decimals of the finest: 0.053 is "5.3 %"."""
    return [f"{abs(100 * value):.{_digits(values)}f} %" for value in values]


def span(ends: Sequence[str]) -> str:
    """From the first to the last, or what both are: "5.3 %", "5.3 % to 19 %"."""
    return ends[0] if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}"


def margin(value: float) -> str:
    """A declared share as a percentage, without rounding: 0.01 is "1 %"."""
    return f"{100 * value:g} %"


def change(ratio: float, beside: Sequence[float] | None = None) -> str:
    """A ratio as a change: 1.053 is "+5.3 %"; with the decimals of the interval `beside` it, if there is one."""
    ends = usable(beside)
    digits = _digits([end - 1 for end in ends] if ends else [ratio - 1])
    return f"{signed(100 * (ratio - 1), digits)} %"


def change_interval(interval: Sequence[float] | None) -> str:
    """An interval of ratios as changes: "+5.1 % to +5.5 %"."""
    ends = usable(interval)
    return "no usable interval" if ends is None else " to ".join(change(end, ends) for end in ends)


def change_range(low: float, high: float) -> str:
    """From the lowest to the highest of several changes: "+5.1 % to +5.5 %". They are no ends of one interval, so they
    may be as far apart as what they are of."""
    return f"{change(low, (low, high))} to {change(high, (low, high))}"


def condition(name: str, value: Any) -> str:
    """One condition at one level: "RTT 1.2 ms", "size 1 MB", "TSO off"."""
    if name in ("buffer_bytes", "skew_ppm", *_AGGREGATES):
        return f"{word(name)} {'-' if value is None else _of(name, value)}"
    if name in amounts.OF_TRAFFIC:
        return amounts.of_traffic(name, value)
    if name == "users":
        return amounts.users(value)
    if name == "rate_per_second":
        return amounts.rate(value)
    if name == "senders" and isinstance(value, Mapping):
        return amounts.senders(value)
    if name == "receivers" and isinstance(value, Mapping):
        return ", ".join(f"{sender} to {receiver}" for sender, receiver in value.items())
    if (counted := amounts.counted(name, value)) is not None:
        return counted
    if name == "sizes" and value is None:
        return "the kernel's sizes"
    if name.endswith("_bytes"):
        text = name.removesuffix("_bytes").replace("_", " ")
        return text + " " + ("-" if value is None else quantities.print_bytes(value))
    if name.endswith("_seconds"):
        text = _WORDS.get(name, name.removesuffix("_seconds").replace("_", " "))
        return text + " " + ("-" if value is None else quantities.print_seconds(value))
    if name.endswith("bits_per_second"):
        text = (name.removesuffix("bits_per_second").replace("_", " ") + "rate").strip()
        return text + " " + ("unshaped" if value is None else quantities.print_bits_per_second(value))
    return f"{_WORDS.get(name, name.replace('_', ' '))} {'-' if value is None else level(value)}".strip()


def conditions(given: Mapping[str, Any]) -> str:
    """The conditions that both sides shared, without the usual values; the summary lists all of them."""
    return ", ".join(text for part in (amounts.amounts, _shape, _surroundings) for text in part(given))


def _shape(settings: Mapping[str, Any]) -> Iterator[str]:
    for name in ("flows", "connections"):
        if settings.get(name, 1) != 1:
            yield f"x{settings[name]}"
    if settings.get("nics", 1) != 1:
        yield condition("nics", settings["nics"])
    yield from amounts.storage(settings)
    if settings.get("sizes") is not None:
        yield condition("sizes", settings["sizes"])
    if settings.get("pattern", "one-to-one") != "one-to-one":
        yield str(settings["pattern"])
    for name in ("senders", "receiver", "receivers", "few"):
        if settings.get(name) is not None:
            yield condition(name, settings[name])
    if settings.get("offered_bits_per_second") is not None:
        yield f"{quantities.print_bits_per_second(settings['offered_bits_per_second'])} offered"
    if "direction" in settings:  # from files of other tools
        yield settings["direction"] + (" of both" if settings.get("bidir") else "")
    else:
        yield from (text for name, text in (("reverse", "reverse"), ("bidir", "both ways")) if settings.get(name))
    for way in ("upload", "download"):
        if settings.get(f"{way}_flows", 1) != 1:
            yield f"{way} x{settings[f'{way}_flows']}"
    if "target_bits_per_second" in settings:
        yield f"at {quantities.print_bits_per_second(settings['target_bits_per_second'])} per flow"
    if "bulk_flows" in settings:
        hosts, rate = settings.get("bulk_hosts"), settings.get("bulk_bits_per_second")
        parts = [f"bulk x{settings['bulk_flows']}", f"from {hosts} hosts" if hosts else ""]
        parts.append("" if rate is None else f"at {quantities.print_bits_per_second(rate)} each")
        yield " ".join(text for text in parts if text)


def _surroundings(settings: Mapping[str, Any]) -> Iterator[str]:
    if "hosts" in settings:
        yield f"{settings['hosts']} hosts"
    if "topology" in settings:
        yield str(settings["topology"])
    if "changes" in settings:
        yield str(settings["changes"])
    if settings.get("rtt_seconds"):
        yield f"RTT {quantities.print_seconds(settings['rtt_seconds'])}"
    if settings.get("offloads"):
        yield condition("offloads", True)
    for name in ("tso", "lro", "gro", "hw_gro", "checksum", "nagle"):
        if settings.get(name) is not None:
            yield f"{word(name)} {level(settings[name])}"
    if settings.get("moderation_seconds", USUAL_MODERATION_SECONDS) != USUAL_MODERATION_SECONDS:
        yield f"moderation {quantities.print_seconds(settings['moderation_seconds'])}"
    if settings.get("congestion_control", "cubic") != "cubic":
        yield str(settings["congestion_control"])
    if settings.get("qdisc") is not None:
        yield f"queue discipline {settings['qdisc']}"
    network = ("queue", "routing", "buffer_bytes", "skew_ppm", "shaping", "ecn", "overlay")
    for name in (*network, *_AGGREGATES, "mtu_probing", "pacing", "mptcp", "plpmtud", "tuning"):
        if settings.get(name) is not None:
            yield condition(name, settings[name])
    if "mtu" in settings:
        yield f"MTU {level(settings['mtu'])}"


class Cells:
    """How the cells of one study are named: what all have in common is said once, and a name has what differs.

    `entries` are verdicts, or whatever else has a workload and conditions. Workloads have conditions of their own: what
    all cells of a workload have in common goes with it.
    """

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        cells = [(str(entry["workload"]), entry["conditions"]) for entry in entries]
        self.workloads = list(dict.fromkeys(workload for workload, _ in cells))
        self._shared = _alike([settings for _, settings in cells])
        self._own = {
            name: _alike([settings for workload, settings in cells if workload == name]) for name in self.workloads
        }  # fmt: skip

    @property
    def common(self) -> str:
        """What all cells share: "stream, 10 MB, rate 1 Gb/s"; of each workload, if there are several."""
        extras = [
            condition(name, value)
            for name, value in self._shared.items()
            if name in _SAID_ANYWAY and not conditions({name: value})
        ]
        shared = [conditions(self._shared), *extras]
        if len(self.workloads) == 1:
            return ", ".join(text for text in (self.workloads[0], *shared) if text)
        own = [
            f"{name}: {text}"
            for name, settings in self._own.items()
            if (text := conditions({key: value for key, value in settings.items() if key not in self._shared}))
        ]
        return "; ".join(text for text in (", ".join(filter(None, shared)), *own) if text)

    def of(self, entry: Mapping[str, Any]) -> str:
        """What tells a cell from the others: "1 MB, RTT 1.2 ms", "stream, RTT 1.2 ms"; empty if nothing does."""
        workload, settings, names = str(entry["workload"]), entry["conditions"], self._apart(entry)
        parts = [] if self.workloads == [workload] else [workload]
        for phrase in dict.fromkeys(_phrase(name) for name in settings if name in names):
            phrase_settings = {name: settings[name] for name in phrase if name in settings}
            parts.append(
                conditions(phrase_settings)
                or ", ".join(filter(None, (_usual(name, settings) for name in phrase_settings)))
            )
        return ", ".join(part for part in parts if part)

    def whole(self, entry: Mapping[str, Any]) -> str:
        """All conditions of a cell: those that tell it from others also where they are usual."""
        settings, names = entry["conditions"], self._apart(entry)
        usual = (
            _usual(name, settings) for name in settings if name in names and not conditions({name: settings[name]})
        )
        return ", ".join(text for text in (conditions(settings), *usual) if text)

    def _apart(self, entry: Mapping[str, Any]) -> set[str]:
        """The names of the conditions that not all cells of its workload have alike."""
        shared = self._own.get(str(entry["workload"]), self._shared)
        return {name for name, value in entry["conditions"].items() if name not in shared or shared[name] != value}

    def name(self, entry: Mapping[str, Any]) -> str:
        """The same, or the workload if nothing tells a cell from the others."""
        return self.of(entry) or str(entry["workload"])


def _alike(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The conditions that are there, with the same value, in all."""
    first = cells[0] if cells else {}
    return {
        name: value for name, value in first.items() if all(name in cell and cell[name] == value for cell in cells)
    }  # fmt: skip


def _phrase(name: str) -> tuple[str, ...]:
    return next((phrase for phrase in _PHRASES if name in phrase), (name,))


def _usual(name: str, settings: Mapping[str, Any]) -> str:
    """A condition of which `conditions` is silent, in words; empty if another one says it."""
    value = settings[name]
    if name in ("flows", "connections"):
        return f"x{value}"
    if name == "reverse":
        return "" if settings.get("bidir") else "forward"
    if name == "bidir":
        return "" if "reverse" in settings else "one way"
    if name == "pattern":
        return str(value)
    if name == "offered_bits_per_second":
        return "as fast as possible"
    return "" if value is None and name == "arrivals" else condition(name, value)
