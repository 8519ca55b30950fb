"""The page docs/measured/diagnosis.md."""

from __future__ import annotations

import os
import platform
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from bench.diagnosis import scoring
from bench.diagnosis.judging import Chronograph, of_diagnosis, of_kernel
from bench.diagnosis.run import Ran

HEAD = """\
# How often a diagnosis is right

Written by `python -m bench.diagnosis {words}`, on Linux {kernel}, with a
load average of {load:.1f} on {cpus} CPUs at the end. A program that gets no CPU is late, too.

Each scene provokes one kind of trouble on purpose: two hosts in network namespaces, their kernels' own TCP, and a wire
between them that loses, holds, reorders or refuses packets as it is told, and logs it. Sizes, RTTs, MTUs, IP versions,
offloads and the end that opens the connection are drawn for each variant. Three taps see every run: at the sender, in
the middle and at the receiver; each is diagnosed by itself. {samples} taps of {runs} runs; runs in which the wire was
more than 4 ms late were repeated.

What a tap cannot know it need not tell: a packet that was lost before the tap, if neither a hole nor the identification
of IPv4 betrays it, and a SYN that never came there.

These figures are not held out: the detectors were developed on scenes of these kinds, and mended for what they told
wrong of them, so that what each mending gained shows here in full. A variant that is drawn anew has other sizes, times
and offloads, but no other kind of trouble. What the detectors tell of runs that nobody had seen is
[measured apart](diagnose.md#new-runs).
"""

Judged = Any


def written(judged: Sequence[Judged], words: str) -> str:
    """The page."""
    samples = of_own(judged)
    own = [each for each in judged if not each[0][0].source]
    table = scoring.scores(samples)
    warnings, flows = scoring.false_warnings(samples)
    head = HEAD.format(
        words=words,
        load=os.getloadavg()[0],
        cpus=os.cpu_count(),
        kernel=platform.release().split("-")[0],
        samples=len(samples),
        runs=len(own),
    )
    lines = [
        head,
        f"Macro-F1: **{scoring.macro_f1(table):.3f}**. False warnings: {warnings} in {flows} clean flows.",
        "",
    ]
    lines += [*_scores(table), "", *_confusion(samples), "", *_of_others(judged), *_kernel(own)]
    return "\n".join(lines) + "\n"


def of_own(judged: Sequence[Judged]) -> list[scoring.Sample]:
    """The samples of the scenes that are no other project's."""
    return [sample for (scene, _, _), _, _, some in judged for sample in some if not scene.source]


def _of_others(judged: Sequence[Judged]) -> Iterator[str]:
    """Scenarios of other projects, scene by scene."""
    by_scene: dict[str, list[scoring.Sample]] = {}
    sources = {}
    for (scene, _, _), _, _, some in judged:
        if scene.source:
            by_scene.setdefault(scene.name, []).extend(some)
            sources[scene.name] = scene.source
    if not by_scene:
        return
    others = [sample for some in by_scene.values() for sample in some]
    yield from ("## Scenarios of other projects", "")
    yield "Rebuilt as scenes from what the projects say of them (`bench/diagnosis/others.py`), not among the figures"
    yield f"above. Macro-F1: **{scoring.macro_f1(scoring.scores(others)):.3f}**."
    yield from (
        "",
        "| scenario | of | taps | had to be found | missed | wrong |",
        "| --- | --- | --- | --- | --- | --- |",
    )
    for name, some in by_scene.items():
        must = ", ".join(sorted({kind for sample in some for kind in sample.must}))
        missed, wrong = (
            ", ".join(f"{kind} {count}" for kind, count in Counter(chain.from_iterable(kinds)).most_common(4))
            for kinds in ([sample.missed for sample in some], [sample.wrong for sample in some])
        )
        yield f"| {name} | {sources[name]} | {len(some)} | {must} | {missed} | {wrong} |"
    yield ""


def _scores(table: dict[str, scoring.Score]) -> Iterator[str]:
    yield "## By kind"
    yield ""
    yield "| kind | taps | recall | precision | F1 | missed: found instead |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for kind, score in table.items():
        instead = ", ".join(f"{name} {count}" for name, count in score.instead.most_common(3))
        taps = score.right + score.missed
        recall = f"{score.recall:.3f}" if taps else "-"
        yield f"| `{kind}` | {taps} | {recall} | {score.precision:.3f} | {score.f1:.3f} | {instead} |"


def _confusion(samples: Sequence[scoring.Sample]) -> Iterator[str]:
    yield "## What was found in each kind of scene"
    yield ""
    yield "Shares of taps in per cent, where 1 or more; what is true besides is among them, too."
    yield ""
    yield "| scene of | taps | found |"
    yield "| --- | --- | --- |"
    for kind, found in sorted(scoring.confusion(samples).items()):
        taps = found.pop("taps")
        listed = [(name, 100 * count / taps) for name, count in found.most_common() if 100 * count >= taps]
        listed.sort(key=lambda each: (each[0] != kind, -each[1], each[0]))
        for number in range(0, max(1, len(listed)), 4):
            part = ", ".join(f"{name} {share:.0f}" for name, share in listed[number : number + 4])
            yield f"| {f'`{kind}`' if number == 0 else ''} | {taps if number == 0 else ''} | {part} |"


COUNTED = (
    ("TCPTimeouts and TCPLossProbes", ("TCPTimeouts", "TCPLossProbes"), ("rto_stall", "tail_loss", "pmtu_black_hole")),
    ("TCPLostRetransmit", ("TCPLostRetransmit",), ("double_loss",)),
    ("TCPSackRecovery and TCPRenoRecovery", ("TCPSackRecovery", "TCPRenoRecovery"), ("fast_retransmit",)),
    ("TCPDSACKRecv", ("TCPDSACKRecv",), ("spurious_retransmit",)),
)  # fmt: skip


ONE_ONLY = {(True, False): "kernel only", (False, True): "findings only"}
WHY = {
    (
        "TCPTimeouts and TCPLossProbes",
        "kernel only",
    ): "Nothing was lost: a timer that ran out because answers were late is "
    "told as `spurious_retransmit` or by what made them late, that of a SYN as `syn_loss`, that of a closed window as "
    "`zero_window`.",
    ("TCPTimeouts and TCPLossProbes", "findings only"): "RACK has a timer of its own (RFC 8985 section 6.2.1.2), which "
    "these counters lack.",
    ("TCPLostRetransmit", "kernel only"): "The kernel counts repeats that it takes for lost, also those that a timeout "
    "sends again: these are told as `rto_stall`.",
    (
        "TCPLostRetransmit",
        "findings only",
    ): "After a timeout the kernel takes all for lost, and counts no single repeat; "
    "probes of a tail are repeats as well.",
    ("TCPSackRecovery and TCPRenoRecovery", "kernel only"): "What the kernel repaired in vain, and undid, is told as "
    "`spurious_retransmit` or `reordering`; what it repaired after a timer had run out, as `rto_stall` or `tail_loss`.",
    (
        "TCPSackRecovery and TCPRenoRecovery",
        "findings only",
    ): "After a timeout, and after ICMP has told of a smaller MTU, "
    "the kernel repairs in another state (loss), in which SACK may show further holes.",
    ("TCPDSACKRecv", "kernel only"): "D-SACKs for probes of a closed window tell of nothing that was sent again for a "
    "loss.",
    (
        "TCPDSACKRecv",
        "findings only",
    ): "The other end had sent again, whose counters these are not; or timestamps tell it "
    "(RFC 3522), where the D-SACK was lost.",
}


def _kernel(judged: Sequence[Judged]) -> Iterator[str]:
    yield "## The kernel's own verdicts"
    yield ""
    yield "The sender's counters (`TcpExt`) against the findings' counts at the tap beside it: runs in which both"
    yield "are 0, both are not, and only one is."
    yield ""
    yield "| counters | findings | neither | both | kernel only | findings only |"
    yield "| --- | --- | --- | --- | --- | --- |"
    where: dict[tuple[str, str], Counter[str]] = {}
    for label, names, kinds in COUNTED:
        cells: Counter[tuple[bool, bool]] = Counter()
        for (scene, _, _), ran, taps, _ in judged:
            both = _agree(ran, taps, names, kinds)
            cells[both] += 1
            if both in ONE_ONLY:
                where.setdefault((label, ONE_ONLY[both]), Counter())[scene.name] += 1
        row = [cells[False, False], cells[True, True], cells[True, False], cells[False, True]]
        yield f"| {label} | {', '.join(kinds)} | {' | '.join(map(str, row))} |"
    yield from ("", "Where only one of them is, and why:", "")
    for (label, side), scenes in where.items():
        listed = ", ".join(f"{name} {count}" for name, count in scenes.most_common(6))
        more = sum(scenes.values()) - sum(count for _, count in scenes.most_common(6))
        yield f"- {label}, {side}: {listed}{f' and {more} in others' if more else ''}. {WHY[label, side]}"
    yield ""
    yield "Time by limit, by `TCP_INFO` of the sender's socket (its life without `busy_time`; `rwnd_limited`)"
    yield "against `time` of the diagnosis: the median and the largest difference, as a share of the life, in per cent."
    yield ""
    yield "| tap | idle | receiver's window |"
    yield "| --- | --- | --- |"
    for tap, pairs in sorted(_chronographs(judged).items()):
        idle = [100 * abs(one.idle - other.idle) / one.life for one, other in pairs]
        window = [100 * abs(one.receiver - other.receiver) / one.life for one, other in pairs]
        yield f"| {tap} | {_spread(idle)} | {_spread(window)} |"


def _agree(ran: Ran, taps: Sequence[dict[str, Any]], names: Sequence[str], kinds: Sequence[str]) -> tuple[bool, bool]:
    counters = ran.sender["counters"]
    (tap,) = (each for each in taps if each["interface"] == "sender")
    counted = sum(each["count"] for each in tap["findings"] if each["kind"] in kinds)
    return any(counters.get(name) for name in names), counted > 0


def _chronographs(judged: Sequence[Judged]) -> dict[str, list[tuple[Chronograph, Chronograph]]]:
    found: defaultdict[str, list[tuple[Chronograph, Chronograph]]] = defaultdict(list)
    for _, ran, taps, _ in judged:
        for tap in taps:
            if len(tap["connections"]) != 1:
                continue
            mine = of_diagnosis(tap["connections"][0])
            kernel = of_kernel(ran, mine.life)
            if kernel is not None:
                found[tap["interface"]].append((kernel, mine))
    return found


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f}, at most {max(values):.0f}"
