"""The datasheet of a corpus: "Datasheets for Datasets" (Gebru et al., Communications of the ACM 64(12), 2021)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.corpus.splits import RULE, SPLITS

TEXT = """\
# framegauge-corpus: captures with their true causes

{runs} runs of {scenes} scenes, {captures} captures, {connections} connections, {packets} packets of the link.

## Motivation

Tools that say why TCP is slow are judged by anecdote, because captures come without their causes. In this corpus the
cause is known: it was provoked. It was made to score `framegauge diagnose` and any other tool by the same program. It
was made by the authors of framegauge, with no funding.

## Composition

A run is one execution of a scene: two hosts (network namespaces with the kernel's own TCP) and a wire between them that
loses, holds, reorders, thins out or translates packets as it is told. Sizes, RTTs, MTUs, IP versions, offloads and the
end that opens the connection are drawn from the seed of the run. `runs/NAME/` holds

| file | what it is |
| --- | --- |
| `TAP.pcapng.gz` | what the taps `sender`, `switch` and `receiver` saw: raw IP, 128 bytes of each packet, one clock |
| `truth.json` | conditions, connections, causes by tap, every retransmission: `corpus.schema.json` |
| `wire.jsonl.gz` | the books of the wire, a line per packet: when it came, what was queued, what became of it |
| `kernel.json` | counters of both kernels (`TcpExt`, `Tcp`), TCP_INFO of each socket, trace points of retransmissions |

Scenes are of these kinds (runs): {kinds}.

**Labels.** `captures.TAP.must` lists each cause that a tap can know, with the connection, its begin and its end.
`captures.TAP.may` lists what is true as well or cannot be decided; an answer of these is neither right nor wrong. The
names are those of `framegauge diagnose`. A cause that the wire made begins with the wire's first act; one that passes
(a loss, a delay) ends when the last of what was lost or held had arrived, and any other with its connection.
`connection: null` is a property of the capture. What a tap cannot know is not asked of it: a packet that was lost
before the tap leaves no trace unless IPv4's identification or a hole betrays it.

**Splits.** {rule} Runs: {splits}.

**Noise and redundancy.** The three captures of a run show the same packets and are one split. A run in which the wire
was more than 4 ms late, or a host waited more than 10 ms for a CPU, was made again; `quality` has what remained.

**No people.** All traffic is made by programs of this corpus; payloads are zeros and, but for the scenes of checksums,
cut off. Addresses are private (RFC 1918, RFC 4193) and mean nothing.

## Collection

`python -m bench.corpus make FOLDER --runs N` of framegauge makes it as root on one Linux machine; `manifest.json` names
the kernel and holds a SHA-256 of each file. It is not deterministic to the packet, because real kernels run in real
time; conditions and faults are, from the seed.

Hosts that are not Linux are the real kernel with real settings (TTL, timestamps, SACK, window scaling, DF, windows).
Only IPv4's identification is rewritten, as the packet leaves its host, by the law of such stacks
(`conditions.stacks`), and addresses and ports by a translating router (RFC 3022). So they have Linux' congestion
control and timers: they show how packets of such hosts look, not how Windows or lwIP repair a loss.

Retransmissions are classed by the state in which the socket sent them (`tcp:tcp_retransmit_skb`,
`tcp:tcp_cong_state_set`): `fast` in Recovery, `timeout` in Loss, `probe` else, `syn` for SYNs. Loss is entered after a
timeout, and after an ICMP error that tells of a smaller MTU. `needless` is the wire's own: copies that were sent before
delivered all of it, if only later.

## Uses

To score tools (`python -m bench.corpus score`), and to learn or tune detectors on `train` and `validation`. Scenes
provoke one trouble at a time on short connections, at one bottleneck: rates of errors here say nothing of how frequent
a cause is elsewhere. The detectors of framegauge were developed on other variants of most of these scenes, so its own
figures are those of a tool that knows the scenes. Causes that are not among the scenes are not tested.

## Distribution and maintenance

Licence of the data: Creative Commons Attribution 4.0 International (CC-BY-4.0,
https://creativecommons.org/licenses/by/4.0/legalcode). The programs that make and score it have the licence of
framegauge (Apache-2.0). A change of scenes or labels raises `schema`, and figures state the SHA-256 of the manifest
that they are of.
"""


def written(truths: Sequence[Mapping[str, Any]]) -> str:
    """The datasheet of these runs."""
    kinds = Counter(truth["kind"] for truth in truths)
    splits = Counter(truth["split"] for truth in truths)
    listed = ", ".join(f"`{kind}` {count}" for kind, count in sorted(kinds.items()))
    return TEXT.format(
        runs=len(truths),
        scenes=len({truth["scene"] for truth in truths}),
        captures=3 * len(truths),
        connections=sum(len(truth["connections"]) for truth in truths),
        packets=sum(sum(_packets(truth).values()) for truth in truths),
        kinds=listed or "none yet",
        rule=RULE,
        splits=", ".join(f"{name} {splits[name]}" for name in SPLITS),
    )


def _packets(truth: Mapping[str, Any]) -> dict[str, int]:
    return {name: count for name, count in truth["conservation"]["came"].items() if name.endswith("_packets")}
