"""Cases that are drawn: transfers, settings and scripts of the same kinds as the table's."""

from __future__ import annotations

import random

from bench.exchanges.cases import ANY, Case, Rule, hold, lose, mark, one

LONGEST = 60


def drawn(seed: int) -> Case:
    """The case of a seed."""
    draw = random.Random(f"exchange {seed}")
    mtu = draw.choice((1500, 1500, 9000))
    segments = draw.randint(1, LONGEST)
    ecn = draw.random() < 0.2
    data: list[Rule] = []
    for _ in range(draw.choice((0, 1, 1, 2))):
        first = draw.randint(1, segments)
        frames = range(first, first + draw.choice((1, 1, 1, 2, 3, 5)))
        kind = draw.choice(("lose", "lose", "hold", "mark" if ecn else "lose"))
        if kind == "lose":
            data.append(lose(*frames))
        elif kind == "hold":
            data.append(hold(draw.choice((0.0003, 0.001, 0.004, 0.02)), *frames))
        else:
            data.append(mark(*frames))
    acks: list[Rule] = []
    if draw.random() < 0.3:
        first = draw.randint(2, segments + 2)
        acks.append(lose(*range(first, first + draw.randint(1, 4)), least=ANY))
    return Case(
        f"seed {seed}", one(segments, mtu), data, acks, mtu=mtu, rtt_seconds=draw.choice((0.005, 0.01, 0.05)),
        congestion=draw.choice(("cubic", "reno")), sack=draw.random() < 0.8, ecn=ecn, nodelay=draw.random() < 0.3,
        linger_seconds=0.5, group="drawn",
    )  # fmt: skip
