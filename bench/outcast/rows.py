"""What was published about TCP Outcast, and which runs of ours answer it. Data only.

Published: P. Prakash, A. Dixit, Y. C. Hu, R. Kompella, "The TCP Outcast Problem: Exposing Unfairness in Data Center
Networks", NSDI 2012, and chapter 3 of the first author's dissertation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FAIR", "LESS", "MORE", "ROWS", "Row"]

LESS, FAIR, MORE = "less", "fair", "more"
EMULATED = "one trunk, 50 Mb/s, Linux 6.1"
FAT_TREE = "fat tree, 1 + 2 + 12 flows"


@dataclass(frozen=True)
class Row:
    """One published statement, and the runs that answer it: those of `study` at `level` whose conditions have `where`.

    `expected` is the direction that was published; None: nobody has published one. `simulated`: the study that answers
    it in the simulator, if it is another.
    """

    experiment: str
    said: str
    expected: str | None
    study: str
    level: Any = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    simulated: str | None = None

    def of(self, engine: str) -> str:
        """The study that an engine answers it with."""
        return self.study if self.simulated is None or engine == "study" else self.simulated


RENO, CUBIC = {"congestion_control": "reno"}, {"congestion_control": "cubic"}
DCTCP = {"congestion_control": "dctcp"}
SEVENTH = "a seventh of a far flow's"
PERSISTS = "persists"
THIRD, RANDOM, AT_RANDOM = "a third", "equal-length-random", "equal length at random"
ROWS = (
    Row(f"{FAT_TREE}, taildrop, Reno", SEVENTH, LESS, "fat-tree", "taildrop", RENO),
    Row(f"{FAT_TREE}, taildrop, CUBIC", PERSISTS, LESS, "fat-tree", "taildrop", CUBIC),
    Row(f"{FAT_TREE}, RED 5/15, Reno", "the usual RTT bias", MORE, "fat-tree", {"kind": "red"}, RENO),
    Row(f"{FAT_TREE}, RED 5/15, CUBIC", "the usual RTT bias", MORE, "fat-tree", {"kind": "red"}, CUBIC),
    Row(f"{FAT_TREE}, SFQ with 4 buckets, Reno", "fair", FAIR, "fat-tree", {"kind": "sfq", "buckets": 4}, RENO),
    Row(f"{FAT_TREE}, SFQ with 4 buckets, CUBIC", "fair", FAIR, "fat-tree", {"kind": "sfq", "buckets": 4}, CUBIC),
    Row(f"{FAT_TREE}, SFQ with 128 buckets, Reno", "", None, "fat-tree", "sfq", RENO),
    Row(f"{FAT_TREE}, SFQ with 128 buckets, CUBIC", "", None, "fat-tree", "sfq", CUBIC),
    Row(f"{FAT_TREE}, FQ-CoDel, Reno", "", None, "fat-tree", "fq_codel", RENO),
    Row(f"{FAT_TREE}, FQ-CoDel, CUBIC", "", None, "fat-tree", "fq_codel", CUBIC),
    Row(f"{FAT_TREE}, random drop, Reno", "", None, "fat-tree", "random_drop", RENO),
    Row(f"{FAT_TREE}, random drop, CUBIC", "", None, "fat-tree", "random_drop", CUBIC),
    Row("fat tree, shared buffer of 1 MB, Reno", "", None, "shared-buffer", "taildrop"),
    Row("fat tree, DCTCP without marks", PERSISTS, LESS, "dctcp", "taildrop"),
    Row("fat tree, DCTCP, marks above 30 KiB", "", None, "dctcp", {"kind": "step"}),
    Row("MPTCP off, Reno", SEVENTH, LESS, "mptcp", "off"),
    Row("MPTCP with 2 subflows, Reno", "weaker", LESS, "mptcp", "2 subflows"),
    Row("MPTCP with 4 subflows, Reno", "weaker", LESS, "mptcp", "4 subflows"),
    Row("fat tree with k = 6: 2 + 51 senders, Reno", PERSISTS, LESS, "fat-tree-6", "taildrop"),
    Row("fat tree with k = 6 at 100 Mb/s, RTT 2 ms, Reno", PERSISTS, LESS, "fat-tree-6-slow", "taildrop"),
    Row("fat tree with k = 8: 3 + 124 senders, Reno", PERSISTS, LESS, "fat-tree-8", "taildrop"),
    Row("leaf-spine: 3 + 12 senders, ECMP", PERSISTS, LESS, "leaf-spine", "ecmp"),
    Row("leaf-spine: 3 + 12 senders, spraying", PERSISTS, LESS, "leaf-spine", "spraying"),
    Row("routing: ECMP by flow", SEVENTH, LESS, "routing", "ecmp"),
    Row("routing: spraying", "", None, "routing", "spraying"),
    Row("routing: equal length, by flow", "fair", FAIR, "routing", "equal-length"),
    Row("routing: equal length, at random", "fair", FAIR, "routing", "equal-length-random"),
    Row("pacing off, Reno", SEVENTH, LESS, "pacing", "off", RENO),
    Row("pacing on, Reno", "a half", LESS, "pacing", "on", RENO),
    Row("pacing off, CUBIC", PERSISTS, LESS, "pacing", "off", CUBIC),
    Row("pacing on, CUBIC", "", None, "pacing", "on", CUBIC),
    *(
        Row(f"buffer of {size} KiB, Reno", PERSISTS, LESS, "buffers", size * 1024)
        for size in (16, 32, 64, 128, 256, 512)
    ),
    Row("without SACK, CUBIC", PERSISTS, LESS, "endpoints", "no-sack", CUBIC),
    Row("without SACK, Reno", "", None, "endpoints", "no-sack", RENO),
    Row("minimum RTO 1 ms, Reno", "", None, "endpoints", "rto-1ms", RENO),
    Row("minimum RTO 1 ms, CUBIC", "", None, "endpoints", "rto-1ms", CUBIC),
    Row("minimum RTO 20 ms, Reno", "", None, "endpoints", "rto-20ms", RENO),
    Row("minimum RTO 20 ms, CUBIC", "", None, "endpoints", "rto-20ms", CUBIC),
    Row("MTU 1500, Reno", SEVENTH, LESS, "mtu", 1500, RENO),
    Row("MTU 9000, Reno", "", None, "mtu", 9000, RENO),
    Row("MTU 1500, CUBIC", PERSISTS, LESS, "mtu", 1500, CUBIC),
    Row("MTU 9000, CUBIC", "", None, "mtu", 9000, CUBIC),
    Row("MTU 1500, buffers of 43 frames, Reno", PERSISTS, LESS, "mtu-frames", 1500),
    Row("MTU 9000, buffers of 43 frames, Reno", "", None, "mtu-frames", 9000),
    Row("background load of 10 %, Reno", "a quarter", LESS, "background-10", "taildrop"),
    Row("background load of 20 %, Reno", "1 / 2.5", LESS, "background-20", "taildrop"),
    Row("background load of 50 %, Reno", "fair after 0.2 s", FAIR, "background-50", "taildrop"),
    Row("two flows per host, Reno", PERSISTS, LESS, "several", "taildrop", {"flows": 2}),
    Row("four flows per host, Reno", PERSISTS, LESS, "several", "taildrop", {"flows": 4}),
    Row("equal RTTs: 1 beside 12, Reno", "the one starves", LESS, "equal-rtt", "taildrop"),
    Row("two applications: 1 beside 12, Reno", PERSISTS, LESS, "two-applications", "taildrop"),
    Row("three inputs: 1 beside 6 and 6, Reno", PERSISTS, LESS, "three-inputs", "taildrop"),
    Row("one trunk: 1 beside 12, output as fast as the trunk", PERSISTS, LESS, "contention", 0),
    Row("one trunk, output faster by 125 ppm", "", None, "contention", 125),
    Row("one trunk, output faster by 0.5 %", "", None, "contention", 5000),
    Row("one trunk, output faster by 2 %", "", None, "contention", 20000),
    Row("one trunk, output faster by 5 %", "", None, "contention", 50000),
    Row("one trunk, taildrop, Reno", PERSISTS, LESS, "victims", "taildrop", RENO),
    Row("one trunk, random drop, Reno", "", None, "victims", "random_drop", RENO),
    Row("one trunk, taildrop, CUBIC", PERSISTS, LESS, "victims", "taildrop", CUBIC),
    Row("one trunk, random drop, CUBIC", "", None, "victims", "random_drop", CUBIC),
    Row(f"{EMULATED}, Reno, taildrop", PERSISTS, LESS, "dctcp-kernel", "taildrop", RENO),
    Row(f"{EMULATED}, Reno with ECN, marks above 30 KiB", "", None, "dctcp-kernel", {"kind": "step"}, RENO),
    Row(f"{EMULATED}, DCTCP, taildrop", PERSISTS, LESS, "dctcp-kernel", "taildrop", DCTCP),
    Row(f"{EMULATED}, DCTCP, marks above 30 KiB", "", None, "dctcp-kernel", {"kind": "step"}, DCTCP),
    Row(f"{EMULATED}, jitter of a frame, Reno, taildrop", PERSISTS, LESS, "dctcp-jitter", "taildrop", RENO),
    Row(
        f"{EMULATED}, jitter of a frame, Reno with ECN, marks above 30 KiB",
        "",
        None,
        "dctcp-jitter",
        {"kind": "step"},
        RENO,
    ),
    Row(f"{EMULATED}, jitter of a frame, DCTCP, taildrop", PERSISTS, LESS, "dctcp-jitter", "taildrop", DCTCP),
    Row(f"{EMULATED}, jitter of a frame, DCTCP, marks above 30 KiB", "", None, "dctcp-jitter", {"kind": "step"}, DCTCP),
    Row("one trunk, jitter of a frame", "", None, "jitter", 0),
    Row("one trunk, jitter of a frame, output faster by 2 %", "", None, "jitter", 20000),
    Row("one trunk, hosts not shaped", "", None, "shaping", False),
    Row("MapReduce: one reducer, ECMP", THIRD, LESS, "mapreduce", "ecmp", simulated="shuffle"),
    Row(f"MapReduce: one reducer, {AT_RANDOM}", "fair", FAIR, "mapreduce", RANDOM, simulated="shuffle"),
    Row("MapReduce at 20 Mb/s: one reducer, ECMP", "", None, "mapreduce-slow", "ecmp", simulated="shuffle-slow"),
    Row(
        f"MapReduce at 20 Mb/s: one reducer, {AT_RANDOM}", "", None, "mapreduce-slow", RANDOM, simulated="shuffle-slow"
    ),
    *(
        Row(f"MapReduce: {count} reducers at once, {told}", said, expected, "shuffle-all", level, {"reduces": count})
        for count in (4, 16)
        for told, said, expected, level in (("ECMP", THIRD, LESS, "ecmp"), (AT_RANDOM, "fair", FAIR, RANDOM))
    ),
)
