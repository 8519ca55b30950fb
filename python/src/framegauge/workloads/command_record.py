"""What a run of programs leaves in its record."""

from __future__ import annotations

from typing import Any, NotRequired

from framegauge.record import Record
from framegauge.testbeds.base import Json

__all__ = ["CommandRecord"]


class CommandRecord(Record):
    """What sockets tell of the programs (`live.Seen`), what clients printed, the files kept, and how many runs before
    this one have used what outlasts a run.

    Of `web`, the account of its users; of `mapreduce`, the check of its result, its jobs, and its bytes by purpose; of
    `ceph`, what fio wrote and read, and which hosts did what; its `ceph_version` is the major one.
    """

    sent_bytes: dict[str, int]
    lifetimes: NotRequired[list[dict[str, Any]]]
    traffic: dict[str, list[Json]]
    traffic_inside: dict[str, list[Json]]
    connections: dict[str, int]
    watch: dict[str, Json]
    printed: dict[str, float]
    clients: list[Json]
    kept: Json
    lasting_runs: NotRequired[int]
    web: NotRequired[Json]
    ceph: NotRequired[Json]
    ceph_version: NotRequired[int]
    checked: NotRequired[Json]
    jobs: NotRequired[list[Json]]
    traffic_by_purpose: NotRequired[Json]
