"""What is said of flows over bonds."""

from __future__ import annotations

from framegauge.results.runs import Run
from framegauge.summary.bonds import spread
from framegauge.summary.caveats import caveats


def run(number: int, **hosts: list[int]) -> Run:
    readings = {"bonds": {host: {"flows": flows, "sent_bytes": flows} for host, flows in hosts.items()}}
    return Run(
        number=number, block=0, cell=0, arm="baseline", role="baseline", level=1500, attempt=1, workload="stream",
        conditions={}, metrics={}, excluded=[], readings=readings,
    )  # fmt: skip


END = ": a hash decides, whatever the load, so more seeds or blocks show more of it"


def test_members_are_alike_and_receivers_are_left_out() -> None:
    runs = [run(1, h1=[3, 1], h2=[0, 0]), run(2, h1=[1, 3], h2=[0, 0]), run(3, h1=[2, 2], h2=[0, 0])]
    (line,) = spread(runs)
    assert line == f"4 flows of h1 lay on the 2 members of its bond as 3+1 in 2 runs, 2+2 in 1 run{END}"
    assert line in caveats([], "simulated", runs)


def test_of_one_flow_and_without_bonds_nothing_is_said() -> None:
    assert list(spread([run(1, h1=[1, 0])])) == []
    assert list(spread([run(1)])) == []


def test_many_ways_and_hosts_are_counted() -> None:
    ways = [[8, 0], [7, 1], [6, 2], [5, 3], [4, 4]]
    (line,) = spread([run(number, h1=way) for number, way in enumerate(ways)])
    assert (
        line
        == f"8 flows of h1 lay on the 2 members of its bond as 8+0 in 1 run, 7+1 in 1 run, 6+2 in 1 run, otherwise in 2 more{END}"
    )
    lines = list(spread([run(1, **{f"h{host}": [1, 1] for host in range(1, 6)})]))
    assert len(lines) == 4
    assert lines[-1] == "flows of other hosts and numbers over bonds: 2 more"
