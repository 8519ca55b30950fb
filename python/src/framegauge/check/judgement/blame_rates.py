"""Losses that depend on how fast packets come, as asking more slowly has shown."""

from __future__ import annotations

from collections import defaultdict

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.quantities import print_bits_per_second

__all__ = ["limited"]


def limited(case: Case) -> None:
    """`rate_limited`: sizes that were lost at first arrive at a lower rate. By IP version and sender."""
    groups: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        if pair.slowly is not None and pair.slowly[0] > 0:
            groups[pair.source, pair.family].append(pair)
    for (source, family), pairs in sorted(groups.items()):
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
                "rate_limited", remedies.pairs_text(pairs), {source, *(pair.destination for pair in pairs)},
                [pair.key for pair in pairs], text, text,
                commands=(
                    Command("tc -s qdisc show; tc -s filter show", on, "look for a policer or a shaper that drops"),
                    Command("nft list ruleset | grep -E 'limit rate|quota'", on, "look for a rule that limits a rate"),
                ),
                ask="Is there a policer, a shaper or a port with a short buffer on the way, and how much lets it pass?",
                facts=(("Flows that carry the target only when asked slowly", f"{flows}"),),
            )
        )  # fmt: skip
