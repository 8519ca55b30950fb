"""What the record of a run says of its work, by kind of workload, as far as its flows follow from that."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from framegauge.results.readings import Amount, Number, Whole

__all__ = ["Fetches", "Iperf3", "Mixed", "Reads", "Requests", "Streams"]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class Begun(_Shape):
    """A generator's result: when it began, by its host's clock."""

    started_seconds: Number


class Asking(_Shape):
    """A client of `rr`."""

    client: StrictStr
    result: Begun


class Requests(_Shape):
    """`rr`. The server is the host that received the requests, so the one that is no client."""

    clients: list[Asking] = Field(min_length=1)
    received_bytes: Mapping[StrictStr, Amount]


class Sending(_Shape):
    """A host of `mixed` that sends bulk."""

    host: StrictStr
    result: Begun


class Mixed(_Shape):
    """`mixed`: requests of a client, and bulk of others, to the same server."""

    client: StrictStr
    receivers: list[StrictStr] = Field(min_length=1)
    asked: Begun
    sent: list[Sending]


class Reads(_Shape):
    """`incast`: a client that reads from all senders, in their order."""

    senders: list[StrictStr] = Field(min_length=1)
    receivers: list[StrictStr] = Field(min_length=1)


class Streaming(_Shape):
    """A `stream.run`."""

    client: StrictStr
    server: StrictStr
    reverse: bool = False
    transfers: StrictStr | None = None
    result: Begun


class Streams(_Shape):
    """`stream`."""

    transfer_bytes: Amount | None = None
    runs: list[Streaming] = []


class Client(_Shape):
    """A client of `iperf3`, with its streams."""

    client: StrictStr
    server: StrictStr
    started_seconds: Amount
    seconds: Amount
    flow_bits_per_second: list[Amount]


class Iperf3(_Shape):
    """`iperf3`."""

    senders: list[StrictStr]
    clients: list[Client]


class Transfer(_Shape):
    """A file that curl fetched."""

    bytes: Whole
    connected_seconds: Amount
    total_seconds: Amount
    ended_seconds: Amount


class Call(_Shape):
    """A call of curl; its first transfer is the login."""

    transfers: list[Transfer]


class Fetched(_Shape):
    """All calls for one server."""

    server: StrictStr
    calls: list[Call]


class Fetches(_Shape):
    """`ftp`."""

    receivers: list[StrictStr] = Field(min_length=1)
    fetched: list[Fetched]
