"""What a workload records of a run: the part `workload` of record.json, from which checks and metrics follow."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

__all__ = ["FEW_WINDOW_SECONDS", "Record"]

FEW_WINDOW_SECONDS = 0.2  # of few.parquet: what each flow of a group carried over time


class Record(TypedDict):
    """What every workload records. Bytes are payload, times seconds; hosts are given by name.

    The keys that may be missing are those that `Workload.evidence` adds, or that only some workloads have. Each has
    keys of its own besides, for its metrics and pictures.
    """

    senders: list[str]  # the hosts that sent the bulk of the data
    receivers: list[str]  # those that received it
    received_bytes: dict[str, int]  # by receiving host
    bytes: int  # of the run
    transfer_bytes: int | None  # of one flow in one round; None for a duration
    congestion_control: dict[str, list[str]]  # of all sockets, by host
    srtt_median_seconds: float | None  # None where unknown
    mean_segment_payload_bytes: float | None  # None where unknown
    refused: int  # connections by others

    active_seconds: NotRequired[float]  # in which data was under way
    handshake_seconds: NotRequired[float | None]  # the fastest set-up of a connection
    last_start_seconds: NotRequired[float | None]  # when the last connection was opened, on the hosts' shared clock
    nodelay: NotRequired[dict[str, list[Any]]]  # TCP_NODELAY of live sockets, by host, or by host and program
    pacing: NotRequired[dict[str, list[int | None]]]  # limits of sending sockets in bits per second, by host
    ahead_bytes: NotRequired[int | None]  # the most that a transfer delivered beyond its limit
    subflows: NotRequired[dict[str, list[int]]]  # of each connection by MPTCP, by sending host; none of TCP
    live: NotRequired[list[dict[str, Any]]]  # `mss_bytes` of live connections between two hosts
    only_bulk: NotRequired[bool]  # False: small messages share the wire with bulk; else True
    nics: NotRequired[int]  # that each host uses; else 1
    links: NotRequired[int]  # to receivers, whose ceilings add up to that of goodput; else 1
    sizes: NotRequired[dict[str, int]]  # requested for sockets and calls, under the names of `stream.run`
    sockets: NotRequired[dict[str, dict[str, int | None]]]  # those sizes as read, by host
    alone_bytes: NotRequired[int | None]  # of a single new connection, if the run is nothing else
    offered_bits_per_second: NotRequired[int | None]  # None: as much as passes
    retransmits: NotRequired[int]
    transport: NotRequired[str]  # udp, or quic; else TCP
    # Every message of the application by its bytes: `server`, and by client those `sent` and `received`, and the
    # bytes of each way that were `given_up`, which may have been sent or not.
    messages: NotRequired[dict[str, Any]]
    calls: NotRequired[int]  # of the application, that were answered
    # Datagrams beyond those that a kernel counted, by host: what it was handed over at once counts as one.
    batched: NotRequired[dict[str, int]]
    # What was `asked` and `answered` by client, or by sender and receiver: `what` these are, the `host` at whose ports
    # to look, and whether others may have left one nothing (`may_starve`; evidence.unanswered).
    answers: NotRequired[dict[str, dict[str, Any]]]
    not_measured: NotRequired[dict[str, str]]  # reasons by metric
    not_proved: NotRequired[list[str]]  # settings of a program that cannot be read back
