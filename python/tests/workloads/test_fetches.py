"""Fetches of a shuffle: read from a reducer's log, and what the near ones got beside the far ones, by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from helpers.support import STUDY

from framegauge.evidence import few
from framegauge.experiment import planning
from framegauge.study import file as study_file
from framegauge.testbeds.base import Conditions
from framegauge.workloads import fetches, shuffle_log
from framegauge.workloads.fetches import Fetch
from framegauge.workloads.few_over_time import over_time

TASK = "org.apache.hadoop.mapreduce.task.reduce"
LOG = f"""\
2026-11-27 12:27:57,133 INFO [main] {TASK}.MergeManagerImpl: MergerManager: memoryLimit=181665792
2026-11-27 12:27:58,698 INFO [fetcher#2] {TASK}.Fetcher: fetcher#2 about to shuffle output of map m_13 to MEMORY
2026-11-27 12:27:58,887 INFO [fetcher#2] {TASK}.InMemoryMapOutput: Read 8320002 bytes from map-output for m_13
2026-11-27 12:27:58,900 INFO [fetcher#1] {TASK}.OnDiskMapOutput: Read 1000 bytes from map-output for m_7
2026-11-27 12:27:58,939 INFO [fetcher#2] {TASK}.InMemoryMapOutput: Read 98 bytes from map-output for m_14
2026-11-27 12:27:59,044 INFO [fetcher#2] {TASK}.ShuffleSchedulerImpl: h7:13562 freed by fetcher#2 in 1860ms
2026-11-27 12:27:59,500 WARN [fetcher#3] {TASK}.Fetcher: Failed to connect to h9:13562 with 1 map outputs
2026-11-27 12:27:59,501 INFO [fetcher#3] {TASK}.ShuffleSchedulerImpl: h9:13562 freed by fetcher#3 in 17ms
java.io.IOException: not a line of the log
2026-11-28 00:00:00,044 INFO [fetcher#1] {TASK}.ShuffleSchedulerImpl: node-2.example:13562 freed by fetcher#1 in 250ms
"""


def test_a_log_tells_who_was_asked_how_much_came_and_how_long_it_took() -> None:
    first, second = shuffle_log.parse(LOG)
    assert (first.server, first.bytes) == ("h7", 8_320_100)
    assert first.end_seconds - first.begin_seconds == pytest.approx(1.86)
    assert (second.server, second.bytes) == ("node-2.example", 1000)
    # The clock goes on over midnight.
    assert second.end_seconds - first.end_seconds == pytest.approx(11 * 3600 + 32 * 60 + 1.0)
    assert list(shuffle_log.parse("")) == []


def tree() -> Iterator[tuple[str, str]]:
    """Two switches at the edge, each with hosts, and two between them: h1 and h2 are neighbours, h3 to h5 are."""
    for edge, hosts in (("e1", ("h1", "h2")), ("e2", ("h3", "h4", "h5"))):
        for other in (*hosts, "s1", "s2"):
            yield edge, other
            yield other, edge


def conditions(hosts: int) -> Conditions:
    found = planning.baseline(study_file.parse(STUDY, "study.yaml"))
    return replace(found, mtu={f"h{number}": 1500 for number in range(1, hosts + 1)})


def entrances(fetchers: Sequence[str], links: Sequence[tuple[str, str]] | None, hosts: int = 5) -> dict[str, Any]:
    """What a record has of fetchers on a network."""
    network = None
    if links is not None:
        network = {"ports": [{"port": f"{one}>{other}", "from": one, "to": other} for one, other in links]}
    record = {"workload": {"fetchers": list(fetchers)}, "rack": {"network": network}}
    return few.sharing(conditions(hosts), record)


def test_each_fetching_host_has_few_and_many_of_its_own() -> None:
    receivers = entrances(["h1", "h3"], list(tree()))["entrances"]["receivers"]
    assert receivers["h1"] == {"groups": {"few": ["h2"], "many": ["h3", "h4", "h5"]},
                               "links": {"2": ["h2"], "4": ["h3", "h4", "h5"]}}  # fmt: skip
    # h4 and h5 come by a port each, h1 and h2 by either of the two from above.
    assert receivers["h3"] == {"groups": {"few": ["h4", "h5"], "many": ["h1", "h2"]},
                               "links": {"2": ["h4", "h5"], "4": ["h1", "h2"]}}  # fmt: skip


def test_goodput_is_that_of_all_fetches_of_a_group_and_their_ratio_is_the_share() -> None:
    receivers = entrances(["h1", "h3"], list(tree()))["entrances"]["receivers"]
    done = [
        Fetch("h1", "h2", 1000, 4.0), Fetch("h3", "h4", 3000, 1.0),
        Fetch("h1", "h3", 1000, 1.0), Fetch("h1", "h5", 1000, 0.5), Fetch("h3", "h1", 4000, 2.5),
        Fetch("h1", "h1", 9999, 0.1),  # within a host
        Fetch("h1", "h4", 0, 7.0),  # brought nothing
        Fetch("h2", "h3", 9999, 0.1),  # of a host of which nothing is known
    ]  # fmt: skip
    record = fetches.evidence(done, receivers)
    assert record["fetches_by_links"] == [
        {"links": 2, "fetches": 2, "bytes": 4000, "goodput_bits_per_second": 8 * 4000 / 5},
        {"links": 4, "fetches": 3, "bytes": 6000, "goodput_bits_per_second": 8 * 6000 / 4},
    ]
    assert fetches.metrics(record)["share_of_few"] == pytest.approx((4000 / 5) / (6000 / 4))
    told = few.readings({"workload": record})["few"]
    assert told == {"senders": ["h2", "h4"], "flows": 2, "many": 3, "floored": False}
    assert over_time(record, {}) is None


def test_there_is_no_share_without_fetches_of_both() -> None:
    receivers = entrances(["h1"], list(tree()))["entrances"]["receivers"]
    record = fetches.evidence([Fetch("h1", "h3", 1000, 1.0)], receivers)
    assert [each["links"] for each in record["fetches_by_links"]] == [4]
    assert "sharing" not in record
    assert fetches.metrics(record) == {}


@pytest.mark.parametrize(
    ("fetchers", "links", "why"),
    [
        (["h1"], None, "the input ports of the last switch are not known"),
        (
            ["h1"], [way for host in ("h1", "h2", "h3", "h4", "h5") for way in ((host, "s"), ("s", host))],
            "all flows come by one input port, or by input ports with equally many flows",
        ),
        ([f"h{number}" for number in range(1, 66)], [], "more than 64 hosts fetch"),
    ],
)  # fmt: skip
def test_where_nothing_tells_few_from_many_the_reason_is_told(
    fetchers: list[str], links: list[tuple[str, str]] | None, why: str
) -> None:
    assert entrances(fetchers, links) == {"not_measured": {"share_of_few": why}}
