"""Losses that do not depend on size: of small packets, too, or of what comes fast, as asking more slowly has shown."""

from __future__ import annotations

from collections import Counter, defaultdict

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.quantities import print_bits_per_second

__all__ = ["limited", "losses"]


def limited(case: Case) -> None:
    """`rate_limited`: sizes that were lost at first arrive at a lower rate. One limit may hold for many pairs, and for
    the answers of the others: by IP version."""
    groups: dict[int, list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        if pair.slowly is not None and pair.slowly[0] > 0:
            groups[pair.family].append(pair)
    for family, pairs in sorted(groups.items()):
        flows = sum(pair.slowly[0] for pair in pairs if pair.slowly is not None)
        rates = [pair.slowly[1] for pair in pairs if pair.slowly is not None and pair.slowly[1] is not None]
        rate = f" of about {print_bits_per_second(8 * min(rates))}" if rates else ""
        text = (
            f"From {remedies.pairs_text(pairs)} (IPv{family}) {remedies.count_of(flows, 'flow')} lost packets of "
            f"{case.mesh.target} bytes at first and carried them when asked more slowly, at a rate{rate}. The losses "
            "do not depend on size: something on the way limits the rate, or has a short buffer."
        )
        on = "hosts and routers on the way that run Linux"
        case.add(
            Finding.about(
                "rate_limited", remedies.pairs_text(pairs), {end for pair in pairs for end in pair.key[:2]},
                [pair.key for pair in pairs], text, text,
                commands=(
                    Command("tc -s qdisc show; tc -s filter show", on, "look for a policer or a shaper that drops"),
                    Command("nft list ruleset | grep -E 'limit rate|quota'", on, "look for a rule that limits a rate"),
                ),
                ask="Is there a policer, a shaper or a port with a short buffer on the way, and how much lets it pass?",
                facts=(("Flows that carry the target only when asked slowly", f"{flows}"),),
            )
        )  # fmt: skip


def losses(case: Case) -> None:
    """`plain_loss`: controls, which no MTU stops, were lost."""
    lossy = [
        pair
        for pair in case.mesh.pairs
        if pair.lost
        and pair.sent
        and pair.verdict != "unreachable"
        and not pair.is_one_ended
        and not _is_limited(case, pair)
    ]
    if not lossy:
        return
    lost, sent = sum(pair.lost for pair in lossy), sum(pair.sent for pair in lossy)
    worst = max(lossy, key=lambda pair: pair.lost / pair.sent)
    ends = Counter(f"{pair.source}, sending" for pair in lossy for _ in range(min(pair.lost, 100)))
    ends.update(f"{pair.destination}, receiving" for pair in lossy for _ in range(min(pair.lost, 100)))
    name, most = ends.most_common(1)[0]
    share = most / sum(min(pair.lost, 100) for pair in lossy)
    # One direction of one host holding nearly all of the loss of many pairs is no chance.
    concentrated = len(lossy) > 2 and share > 0.8
    evidence = (
        f"{lost} of {sent} small packets ({lost / sent:.1%}) were lost over {remedies.count_of(len(lossy), 'pair')}, "
        f"most of them from {worst.source} to {worst.destination} ({worst.lost} of {worst.sent}). This is packet "
        "loss, not an MTU problem; the verdicts account for it."
    )
    hosts = [name.rpartition(", ")[0]] if concentrated else []
    on = remedies.host_names(hosts) if hosts else "the hosts of these pairs"
    case.add(
        Finding.about(
            "plain_loss", f"host {name}" if concentrated else remedies.count_of(len(lossy), "pair"), hosts,
            [pair.key for pair in lossy], evidence, evidence, commands=remedies.show_errors(on),
            ask="Do errors or drops rise on the ports in between?",
        )
    )  # fmt: skip


def _is_limited(case: Case, pair: Pair) -> bool:
    """Whether a limit of the rate on its way, or on that of its answers, is known: then its loss has that reason."""
    back = case.mesh.by_key.get((pair.destination, pair.source, pair.family))
    return any(way is not None and way.slowly is not None and way.slowly[0] > 0 for way in (pair, back))
