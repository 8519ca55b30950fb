"""The margins of a study: the smallest effect worth acting on, by metric."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

from pydantic import ConfigDict, PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from framegauge import quantities
from framegauge.files.types import Model, Problem
from framegauge.metrics import usual_margin
from framegauge.study.parameters import Parameters

__all__ = ["Margins", "usual"]

_DEFAULT = "default"


def _margin(value: object, info: ValidationInfo) -> float | None:
    if value is None:
        return None
    return usual_margin(info.field_name or "") if value == _DEFAULT else quantities.parse_share(value)


Margin = Annotated[
    float | None,
    PlainValidator(_margin),
    PlainSerializer(lambda share: None if share is None else quantities.exact_share(share)),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": f'{quantities.SHARE_EXPECTED}, or "{_DEFAULT}"',
        }
    ),
]


class Margins(Model):
    """The smallest relative effect worth acting on, by metric; only these metrics are judged.

    `default` stands for the metric's default margin; without any margins, the usual metrics of the workloads are judged
    by their defaults. The metrics that a workload `command` declares have margins under their own names.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Margin]

    goodput: Margin = None
    completion_time: Margin = None
    fairness: Margin = None
    smallest_goodput: Margin = None
    share_of_few: Margin = None
    latency_p50: Margin = None
    latency_p99: Margin = None
    latency_p999: Margin = None
    transactions: Margin = None
    slowdown_p50: Margin = None
    slowdown_p99: Margin = None
    receiver_cpu_cost: Margin = None
    sender_cpu_cost: Margin = None
    receiver_instructions: Margin = None
    sender_instructions: Margin = None
    receiver_cycles: Margin = None
    sender_cycles: Margin = None

    @model_validator(mode="after")
    def _consistent(self) -> Margins:
        given = self.shares()
        if not given or 0 in given.values():
            known = ", ".join(type(self).model_fields)
            raise Problem((), given, f"a margin above 0 % for at least one metric ({known})")
        return self

    def shares(self) -> dict[str, float]:
        """The margins that are given, as shares by metric."""
        return {name: value for name, value in self if value is not None}

    def own(self) -> list[str]:
        """The names that are none of the built-in metrics."""
        return list(self.__pydantic_extra__ or {})


def usual(given: Sequence[Parameters], own: Collection[str], cpu: bool) -> Margins:
    """The margins for a study that declares none, by its workloads and the metrics that these declare; `cpu`: whether
    CPU cost is metered."""
    workloads = {each.key for each in given}
    metrics = {
        "goodput": not {"stream", "iperf3", "ftp", "mixed", "incast", "iscsi", "ceph", "nfs"}.isdisjoint(workloads),
        "completion_time": not {"shuffle", "replay"}.isdisjoint(workloads),
        "share_of_few": any(each.compares_few for each in given),
        "latency_p50": not {"rr", "mixed", "users", "iscsi", "ceph", "nfs"}.isdisjoint(workloads),
        "latency_p99": not {"rr", "mixed", "users", "iscsi", "ceph", "nfs"}.isdisjoint(workloads),
        "slowdown_p50": "arrivals" in workloads,
        "slowdown_p99": "arrivals" in workloads,
        **dict.fromkeys(own, True),
        "receiver_cpu_cost": cpu and not workloads <= {"command", "mapreduce", "web"},
    }
    return Margins.model_validate({name: _DEFAULT for name, there in metrics.items() if there})
