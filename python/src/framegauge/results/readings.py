"""What a run's readings may be, as far as summaries and reports use them; and the values that all shapes share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

from framegauge.results.conditions import LARGEST

__all__ = ["LENIENT", "MOST_COUNT", "Amount", "Count", "Number", "Readings", "Whole"]

MOST_COUNT = 1_000_000  # of blocks, cells and runs
MOST_MEMBERS = 8  # of a bond
LENIENT = ConfigDict(extra="allow", hide_input_in_errors=True)  # of a shape, only the keys that are named are checked

Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Amount = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=LARGEST)]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST_COUNT)]
Whole = Annotated[int, Field(strict=True, ge=0, le=int(LARGEST))]


class _Shape(BaseModel):
    model_config = LENIENT


class _Connection(_Shape):
    local: StrictStr
    remote: StrictStr
    mss_bytes: Whole


class _Old(_Shape):
    count: Count
    connections: list[_Connection]


class _Steady(_Shape):
    begin_seconds: Amount
    end_seconds: Amount
    of_seconds: Amount


class _Tap(_Shape):
    packets: Whole
    given_up_packets: Whole
    dropped_packets: Whole
    cpu_seconds: Amount


class _Diagnosis(_Shape):
    """Where the time of a run's connections went."""

    connections: Whole
    payload_bytes: Whole
    seconds: dict[Annotated[StrictStr, Field(pattern=r"^[a-z_]{1,40}$")], Amount]
    captures: dict[StrictStr, _Tap]


class _Few(_Shape):
    """Whose share was compared with that of the many."""

    senders: Annotated[list[StrictStr], Field(min_length=1)]
    flows: Annotated[Count, Field(ge=1)]
    many: Annotated[Count, Field(ge=1)]
    floored: StrictBool = False


class _Datagrams(_Shape):
    sent: Whole
    answered: Whole
    lost_calls: Whole
    lost_in_server: Whole
    lost_replies: Whole


class _OneWay(_Shape):
    """What became of the datagrams of a run that nothing answers."""

    sent: Whole
    received: Whole
    lost: Whole
    copies: Whole
    reordered: Whole
    dropped_by_host: Whole
    late_p99_seconds: Number | None = None
    lost_in_network: Whole | None = None
    dropped_by_receiver: Whole | None = None
    packets_per_datagram: Amount | None = None


class _Quic(_Shape):
    """What QUIC's discovery of path MTUs settled at, by connection, and how it sent."""

    settled_bytes: list[Whole]
    settled_mtu: list[Whole]
    datagrams: Whole
    datagrams_per_call: Amount | None = None
    mean_datagram_bytes: Amount | None = None
    share_at_settled: Amount | None = None
    probes: Whole
    lost_probes: Whole
    black_holes: Whole
    lost_packets: Whole


class _Carried(_Shape):
    """What the calls of an application took on the wire."""

    frames: Whole
    frames_per_call: Amount | None = None
    bytes_per_frame: Amount | None = None
    datagrams: _Datagrams | None = None


class _Frames(_Shape):
    """Frames by direction, with their mean size."""

    received_frames: Whole
    received_frame_bytes: Amount | None
    sent_frames: Whole
    sent_frame_bytes: Amount | None


class _Osd(_Frames):
    """The frames of one OSD, its CPU time, and its frames on the storage network."""

    cpu_seconds: Number | None
    storage: _Frames | None = None


class _Rates(_Shape):
    seconds: Amount
    operations_per_second: Amount
    mean_latency_seconds: Amount | None = None
    packets_per_second: Amount | None = None


class _SwitchedClient(_Shape):
    host: StrictStr
    switched: StrictBool
    before: _Rates | None = None
    after: _Rates | None = None
    usual_gap_seconds: Amount | None = None
    stall_seconds: Amount | None = None


class _Used(_Shape):
    seconds: Amount
    packets_per_second: Amount
    cpu_seconds_per_second: Amount


class _SwitchedHost(_Shape):
    host: StrictStr
    switched: StrictBool
    before: _Used | None = None
    after: _Used | None = None


class _Kept(_Shape):
    host: StrictStr
    other: StrictStr
    mss_bytes: list[Whole]
    seconds: Amount


class _Switch(_Shape):
    """A workload before and after a change of MTUs, and the connections that went on."""

    begun_seconds: Amount
    ended_seconds: Amount
    clients: list[_SwitchedClient]
    hosts: list[_SwitchedHost] = []
    kept: list[_Kept]


class _Bond(_Shape):
    """What the members of a host's bond had."""

    flows: Annotated[list[Whole], Field(max_length=MOST_MEMBERS)] = []


class Readings(_Shape):
    """The readings of a run that its summary and report use."""

    ceiling_bits_per_second: Amount | None = None
    predicted_seconds: Amount | None = None
    idle_share_hosts: Number | None = None
    other_share_hosts: Number | None = None
    shared_cpus: StrictBool = False
    held_share: Amount | None = None
    frames_per_gigabyte: Amount | None = None
    frames_per_interrupt: Number | None = None
    cpu_system_seconds: Number | None = None
    cpu_share_hosts: Number | None = None
    cpu_share_fabric: Number | None = None
    cpu_share_framegauge: Number | None = None
    cpu_share_unattributed: Number | None = None
    meter_seconds: Number | None = None
    refused_connections: Count = 0
    lasting_runs: Count | None = None
    old_connections: dict[StrictStr, _Old] | None = None
    not_restored: list[StrictStr] = []
    steady: _Steady | None = None
    not_measured: dict[StrictStr, StrictStr] = {}
    diagnosis: _Diagnosis | None = None
    few: _Few | None = None
    bonds: dict[StrictStr, _Bond] = {}
    carried: _Carried | None = None
    datagrams: _OneWay | None = None
    quic: _Quic | None = None
    osds: dict[StrictStr, _Osd] | None = None
    switch: _Switch | None = None
