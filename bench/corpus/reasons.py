"""Why segments were sent again: what a diagnosis says beside what the kernels traced.

The unit is a segment with data as the tap at the sender saw it, an aggregate being one.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.corpus import manifest
from bench.corpus.tools import framegauge

REASONS = ("fast", "probe", "timeout")
UNCLEAR = "unclear"
SENDER = "sender"


@dataclass
class Difference:
    """Where a diagnosis differs in one direction of a connection. Counts by reason."""

    run: str
    scene: str
    direction: str
    kernel: Counter[str]
    told: Counter[str]

    @property
    def wrong(self) -> int:
        """Segments of which the diagnosis gives another reason, or none, or that nobody sent again."""
        over = sum((self.told - self.kernel).values()) - self.told[UNCLEAR]
        under = sum((self.kernel - self.told).values()) - self.told[UNCLEAR]
        return max(over, under, 0)


@dataclass
class Compared:
    """`right`: segments whose reason is that of the kernel; `unclear`: of which the diagnosis says that it cannot tell.

    `runs`: those that sent anything again. `needless`: runs by whether a repeat was needless, and whether the diagnosis
    says so.
    """

    segments: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    unclear: int = 0
    runs: int = 0
    differences: list[Difference] = field(default_factory=list)
    needless: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    needless_runs: dict[tuple[bool, bool], list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def share(self) -> float:
        """Of the segments for which the diagnosis gives a reason, those for which it is the kernel's."""
        said = sum(self.segments.values()) - self.unclear
        return sum(self.right.values()) / said if said else 1.0


def of_kernel(truth: Mapping[str, Any]) -> dict[tuple[int, str], Counter[str]]:
    """Segments that were sent again, by connection and the end that did."""
    seen: dict[tuple[int, str], dict[int, str]] = defaultdict(dict)
    for line in truth["retransmissions"]:
        reason = line["why"] or "none"
        seen[line["connection"], line["from"]].setdefault(line["aggregate"], reason)
    return {key: Counter(reasons.values()) for key, reasons in seen.items()}


def of_diagnosis(tap: Mapping[str, Any], truth: Mapping[str, Any]) -> dict[tuple[int, str], Counter[str]]:
    """The same by a diagnosis of the capture at the sender."""
    numbers = {}
    for connection in truth["connections"]:
        for end, name in zip(connection["ends"][SENDER], (SENDER, "receiver"), strict=True):
            numbers[frozenset(connection["ends"][SENDER]), end] = connection["connection"], name
    told = {}
    for connection in tap["connections"]:
        ends = [framegauge.named(connection[side]) for side in ("client", "server")]
        for end, reasons in zip(ends, connection["resends"], strict=True):
            counts = Counter({name: count for name, count in reasons.items() if count})
            if counts and (frozenset(ends), end) in numbers:
                told[numbers[frozenset(ends), end]] = counts
    return told


def compare(pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Compared:
    """Truths of runs, each with the tap at the sender as it was diagnosed."""
    compared = Compared()
    for truth, tap in pairs:
        kernel, told = of_kernel(truth), of_diagnosis(tap, truth)
        compared.runs += bool(kernel)
        for key in sorted(kernel | told):
            difference = Difference(
                truth["run"], truth["scene"], f"connection {key[0]}, {key[1]}",
                kernel.get(key, Counter()), told.get(key, Counter()),
            )  # fmt: skip
            compared.segments += difference.kernel
            compared.right += difference.kernel & difference.told
            compared.unclear += difference.told[UNCLEAR]
            if difference.wrong:
                compared.differences.append(difference)
        was_needless = any(line["needless"] for line in truth["retransmissions"])
        both = was_needless, any(finding["kind"] == "spurious_retransmit" for finding in tap["findings"])
        compared.needless[both] += 1
        compared.needless_runs[both].append(truth["run"])
    return compared


def diagnosed(folder: Path, split: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The runs whose captures are whole, and whose kernel had trace points."""
    for truth in manifest.truths(folder):
        if (
            truth["kernel_retransmissions"] is None
            or truth["conditions"]["flaws"]
            or split not in ("all", truth["split"])
        ):
            continue
        text = framegauge.output(folder / "runs" / truth["run"] / f"{SENDER}.pcapng.gz")
        yield truth, json.loads(text)["taps"][0]


def told(compared: Compared) -> Iterator[str]:
    """Lines for people, each difference among them."""
    total, right = sum(compared.segments.values()), sum(compared.right.values())
    yield f"{total} segments sent again in {compared.runs} runs; the reason is the kernel's for {right}, unclear for"
    yield f"{compared.unclear}: {100 * compared.share:.2f} % of those that have one"
    for reason in (*REASONS, *sorted(set(compared.segments) - set(REASONS))):
        yield f"  {reason:8} {compared.segments[reason]:6} by the kernel, {compared.right[reason]:6} likewise"
    for difference in compared.differences:
        both = f"kernel {_listed(difference.kernel)}, told {_listed(difference.told)}"
        yield f"  {difference.run}, {difference.direction}: {both}"
    yield "needless repeats, runs: " + ", ".join(
        f"{words} {compared.needless[both]}"
        for both, words in (
            ((True, True), "so and told"), ((False, False), "neither"),
            ((True, False), "so only"), ((False, True), "told only"),
        )
    )  # fmt: skip
    for both in ((True, False), (False, True)):
        if compared.needless_runs[both]:
            yield f"  {'not told' if both[0] else 'only told'}: {', '.join(compared.needless_runs[both])}"


SECTION = """\
`framegauge diagnose` says in `connections[].resends` why each end sent segments again. Beside it the kernel's own
trace (`tcp:tcp_retransmit_skb` in the state of `tcp:tcp_cong_state_set`), at the tap at the sender, on captures
without flaws: {total} segments in {runs} runs. For {unclear} the diagnosis says that it cannot tell; of the others,
{share:.2f} % are those of the kernel.
"""


def section(compared: Compared) -> Iterator[str]:
    """The same for a page."""
    total = sum(compared.segments.values())
    yield (
        SECTION.format(total=total, runs=compared.runs, unclear=compared.unclear, share=100 * compared.share)
        .replace("\n", " ")
        .strip()
    )
    yield from ("", "| reason | by the kernel | likewise |", "| --- | --- | --- |")
    for reason in (*REASONS, *sorted(set(compared.segments) - set(REASONS))):
        yield f"| {reason} | {compared.segments[reason]} | {compared.right[reason]} |"
    if compared.differences:
        yield from ("", "Where they differ:", "")
    for difference in compared.differences:
        both = f"kernel {_listed(difference.kernel)}, told {_listed(difference.told)}"
        yield f"- {difference.run}, {difference.direction}: {both}."
    cells = compared.needless
    yield ""
    yield (
        f"Runs with a needless repeat (an earlier copy arrived) and with `spurious_retransmit`: {cells[True, True]}; "
        f"with neither: {cells[False, False]}; with a needless repeat only: {cells[True, False]}; with the finding "
        f"only: {cells[False, True]}."
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {counts[name]}" for name in sorted(counts)) or "nothing"
