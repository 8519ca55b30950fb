"""datagrams: UDP at a stated rate, one way, alone or beside bulk streams to the same host.

Nothing answers, and nothing is sent again: what the network loses stays lost, as with a voice, a game or telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress, afterwards
from framegauge.workloads import beside, rr
from framegauge.workloads.base import Executed, Go, Phases, Program, Spool, side_by_side
from framegauge.workloads.one_way import OneWay, one_way

__all__ = ["Datagrams"]

SILENCE_SECONDS = 1.0  # for which nothing comes, before what is missing counts as lost
QUANTILES = {"delay_p50": 0.5, "delay_p99": 0.99}


class DatagramsRecord(Record):
    """`client` and `server`: who sends and receives the datagrams; `asked` and `came`: their results; `sent`: those of
    hosts with bulk. `window_seconds`: what counts of the metrics, from the first datagram."""

    client: str
    server: str
    asked: Json
    came: Json
    sent: list[Json]
    window_seconds: list[float]


@dataclass(frozen=True)
class Datagrams(Phases):
    """Datagrams of `size_bytes` from the first host to the last, `flows` times `rate_per_second`.

    With `spurt_seconds` and `pause_seconds` each flow sends and is silent in turn. With `bulk_flows` above 0 bulk runs
    beside them, as in `mixed`: only what became due while everything was under way counts then, after the streams'
    warm-up.
    """

    size_bytes: int = 200
    rate_per_second: float = 50.0
    flows: int = 1
    spurt_seconds: float | None = None
    pause_seconds: float | None = None
    duration_seconds: float = 2.0
    bulk_flows: int = 0
    bulk_bits_per_second: int | None = None
    bulk_hosts: int | None = None
    pacing: str | None = None
    name: str = "datagrams"
    needs: ClassVar[Sequence[Program]] = ()

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The requested duration, with warm-up and tail of the bulk."""
        return self.duration_seconds + (beside.WARM_UP_SECONDS + beside.TAIL_SECONDS if self.bulk_flows else 0.0)

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Receives, and serves the bulk. Then runs both at the same time; the streams run a little longer."""
        client, server = hosts[0], hosts[-1]
        bulk = beside.senders(hosts, self.bulk_hosts) if self.bulk_flows else []
        closed: dict[str, Json] = {}
        streamed: dict[str, Json] = {}
        close_params = {"expected": 0, "silence_seconds": 0.0}  # on a way out before the end, nothing is
        with ExitStack() as stack:
            port = server.agent.request("datagrams.serve", {"token": token, "address": server.address})["port"]
            stack.enter_context(
                afterwards(lambda: closed.update({server.name: server.agent.request("datagrams.close", close_params)}))
            )
            params = self._request(server, int(port), token)
            tasks = []
            if bulk:
                pace = beside.pace(self.bulk_flows, self.bulk_bits_per_second, self.pacing)
                seconds = self.expected_seconds(None)
                send = beside.served(stack, server, token, streamed, self.bulk_flows, seconds, pace)
                tasks = [(host, send) for host in bulk]

            def go(on_progress: Progress | None) -> Executed:
                def run_client(host: Host) -> Json:
                    patience = self.expected_seconds(None) + beside.GRACE_SECONDS
                    return host.agent.request(
                        "datagrams.run", params, timeout_seconds=patience, on_progress=on_progress
                    )

                answer, *bulk_answers = side_by_side([(client, run_client), *tasks])
                close_params.update(expected=answer["sent"], silence_seconds=SILENCE_SECONDS)
                stack.close()
                spools = [Spool("datagrams-sent", client.name, answer["datagrams"])]
                spools.append(Spool("datagrams-received", server.name, closed[server.name]["datagrams"]))
                if bulk:
                    spools += beside.spools(bulk, bulk_answers, server, streamed[server.name])
                ends = [client, server]
                return Executed(self._record(ends, answer, closed[server.name], bulk, bulk_answers, streamed), spools)

            yield go

    def _request(self, server: Host, port: int, token: str) -> Json:
        warm_up = beside.WARM_UP_SECONDS if self.bulk_flows else 0.0
        return {
            "address": server.address, "port": port, "token": token, "flows": self.flows,
            "size_bytes": self.size_bytes, "rate_per_second": self.rate_per_second, "spurt_seconds": self.spurt_seconds,
            "pause_seconds": self.pause_seconds, "duration_seconds": self.duration_seconds + warm_up,
        }  # fmt: skip

    def _record(
        self,
        ends: Sequence[Host],
        client_answer: Json,
        server_answer: Json,
        bulk: Sequence[Host],
        answers: Sequence[Json],
        streamed: Mapping[str, Json],
    ) -> DatagramsRecord:
        client, server = ends
        started = client_answer["started_seconds"]
        fields: Json = {"senders": [client.name], "receivers": [server.name], "bytes": 0, "congestion_control": {}}
        fields |= {"transfer_bytes": self.size_bytes, "srtt_median_seconds": None, "sent": []}
        fields |= {"transport": "udp", "active_seconds": client_answer["active_seconds"]}
        window = [0.0, self.duration_seconds]
        if bulk:
            del fields["transport"]
            fields |= beside.record(bulk, answers, server, streamed[server.name])
            begin = max([started, *(answer["started_seconds"] for answer in answers)]) + beside.WARM_UP_SECONDS
            end = min(answer["started_seconds"] + answer["active_seconds"] for answer in answers)
            window = [begin - started, end - started]
        total_bytes = fields["bytes"] + server_answer["bytes"]
        record: DatagramsRecord = {
            **fields,  # type: ignore[typeddict-item]
            "received_bytes": {server.name: total_bytes},
            "bytes": total_bytes,
            "only_bulk": False,
            "congestion_control": {host: sorted(names) for host, names in fields["congestion_control"].items()},
            "mean_segment_payload_bytes": None,
            "refused": server_answer["refused"] + sum(closing["refused"] for closing in streamed.values()),
            "client": client.name,
            "server": server.name,
            "asked": client_answer,
            "came": server_answer,
            "window_seconds": window,
        }
        return record

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """`datagrams`: how many were sent, and how they came; `answers`: whether any did; `not_measured`: what, why."""
        datagrams = _one_way(record, tables)
        late = datagrams.late()
        arrived = len(datagrams.sent) - datagrams.lost
        window = datagrams.within(*record["window_seconds"])
        return {
            "datagrams": {
                "client": record["client"],
                "server": record["server"],
                "size_bytes": self.size_bytes,
                "flows": self.flows,
                "sent": len(datagrams.sent),
                "received": arrived,
                "lost": datagrams.lost,
                "copies": datagrams.copies,
                "strangers": datagrams.strangers,
                "reordered": datagrams.reordered,
                "dropped_by_host": record["asked"]["dropped_by_host"],
                "late_p99_seconds": float(np.quantile(late, 0.99)) if len(late) else None,
                "counted": len(window.sent),
                "counted_lost": window.lost,
            },
            "answers": {
                record["client"]: {"asked": len(datagrams.sent), "answered": arrived, "what": "datagrams arrived"},
                **beside.answers(record, tables),
            },
            "not_measured": self._values(record, window)[1],
        }

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """delay_p50 and _p99: from when a datagram was sent until it was read, those that did not come included
        (RFC 7679). jitter: the mean size of the delay variation (RFC 3393). delivered: the share that came. goodput and
        fairness: of the bulk."""
        window = _one_way(record, tables).within(*record["window_seconds"])
        return self._values(record, window)[0] | (beside.metrics(record, tables) if record["sent"] else {})

    def _values(self, record: Json, window: OneWay) -> tuple[dict[str, float], dict[str, str]]:
        """The metrics of the datagrams that count, and the reasons for those that are missing."""
        values: dict[str, float] = {}
        reasons: dict[str, str] = {}
        count, lost = len(window.sent), window.lost
        client, server = record["client"], record["server"]
        delays = sorted(window.delays().tolist())
        for name, share in QUANTILES.items():
            value = rr.quantile(delays, share, lost)
            if record["asked"]["clock"] != record["came"]["clock"]:
                reasons[name] = f"{client} and {server} read different clocks, and a one-way delay needs the same"
            elif value is not None:
                values[name] = value
            elif count < round(1 / (1 - share)):
                reasons[name] = f"a run has {count} datagrams, but {share:.0%} needs {1 / (1 - share):.0f}"
            else:
                reasons[name] = f"{lost} of {count} datagrams of a run did not arrive"
        variations = window.variations()
        if len(variations):
            values["jitter"] = float(variations.mean())
        else:
            reasons["jitter"] = "no two datagrams in succession arrived"
        if lost < count:
            values["delivered"] = 1.0 - lost / count
        else:
            reasons["delivered"] = f"none of {count} datagrams of a run arrived"
        return values, reasons


def _one_way(record: Json, tables: Mapping[str, pa.Table]) -> OneWay:
    sent, received = (tables[f"datagrams-{name}"] for name in ("sent", "received"))
    return one_way(sent, received, record["asked"]["started_seconds"])
