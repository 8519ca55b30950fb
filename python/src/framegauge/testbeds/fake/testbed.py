"""An invented rack, which answers like a rack agent, with a simple goodput model, seeded noise and faults.

It serves to test everything above it, and to try out study files. It never sleeps, and opens no files or sockets. Its
figures are invented: the scope of such a study is "invented", never "emulated".
"""

from __future__ import annotations

import base64
import io
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from framegauge import __version__
from framegauge.agents.pipe import ANSWER_SECONDS, PROTOCOL, Requests
from framegauge.errors import from_agent
from framegauge.networks.aggregates import USUAL_BYTES
from framegauge.testbeds import changing
from framegauge.testbeds.base import Json, Pending, Progress
from framegauge.testbeds.fake import network as fake_network
from framegauge.testbeds.fake.datagrams import FakeDatagrams
from framegauge.testbeds.fake.model import FAULTS, STARTED_SECONDS, BuiltRack, FakeError, FakeModel, Fault
from framegauge.testbeds.fake.quic import FakeQuic
from framegauge.testbeds.fake.readings import FakeReadings, ceilings
from framegauge.testbeds.fake.traffic import FakeTraffic
from framegauge.testbeds.rack import RackTestbed

__all__ = ["FAULTS", "FakeError", "FakeModel", "FakeRack", "FakeTestbed", "Fault"]


class FakeRack(Requests):
    """A rack agent in memory, without a pipe."""

    def __init__(self, model: FakeModel | None = None) -> None:
        # The first array makes pyarrow import pandas, if installed, which must not happen while CPU use is metered.
        pa.array([0])
        self.model = model or FakeModel()
        self._random = np.random.default_rng(self.model.seed)
        self._rack: BuiltRack | None = None
        self._racks = 0
        self._spools: dict[int, bytes] = {}
        self._lock = threading.RLock()
        self.clock_seconds = STARTED_SECONDS
        self.about: Json = {
            "protocol": PROTOCOL, "agent": __version__, "role": "rack", "pid": 0, "user_id": 0,
            "kernel": "0.0 (invented)", "cpus": 2,
        }  # fmt: skip

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        """A request that is answered at once, or refused with the error that an agent's error answer would become."""
        try:
            return Answered(self.answer(method, dict(params or {})), None)
        except FakeError as error:
            return Answered({}, from_agent(error.code, error.message, error.data))

    def close(self) -> None:
        """Does nothing, because nothing was started."""
        self._rack = None

    def answer(self, method: str, params: Json) -> Json:
        """The result of one request; FakeError for an error answer."""
        methods: dict[str, Callable[[Json], Json]] = {
            "requirements": self._requirements,
            "frames.predict": _predict,
            "frames.wire": _wire,
            "rack.up": self._up,
            "rack.bare": self._bare,
            "rack.down": self._down,
            "rack.set": self._set,
            "relay": self._relay,
            "rack.ports": self._ports,
            "measure.begin": self._begin,
            "measure.end": self._measured,
            "spool.read": self._spool_read,
            "spool.drop": self._spool_drop,
            "shutdown": lambda _: {},
        }
        if method not in methods:
            raise FakeError(-32601, f"there is no method {method}", {"method": method})
        with self._lock:  # hosts may be asked by several threads
            return methods[method](params)

    def _requirements(self, params: Json) -> Json:
        """Those of the model, and the aggregates that an invented NIC does not take."""
        aggregates = {name: params[f"{name}_bytes"] for name in ("gso", "gro") if f"{name}_bytes" in params}
        sizes = [
            {
                "name": "aggregates", "needed_for": "BIG TCP",
                "found": f"{name}_size {size} above {USUAL_BYTES} (invented)", "remedy": "levels up to that",
            }
            for name, size in aggregates.items()
        ]  # fmt: skip
        lacks = {"missing": [*self.model.missing, *sizes], "degraded": list(self.model.degraded)}
        return {**lacks, "precedence": "real time"}

    def _up_now(self) -> BuiltRack:
        if self._rack is None:
            raise FakeError(-32006, "no rack is up: call rack.up first", {"what": "no rack is up"})
        return self._rack

    def _fault(self, kind: str) -> bool:
        rack = self._up_now()
        return any(fault.kind == kind and fault.when(rack.up, rack.number) for fault in self.model.faults)

    def _up(self, params: Json) -> Json:
        if self.model.missing:
            raise FakeError(-32002, "something is missing", {"missing": list(self.model.missing)})
        if self._rack is not None:
            raise FakeError(-32006, "a rack is up: call rack.down first", {"what": "a rack is up"})
        fake_network.refuse(params)
        _check_nic(params["nic"], params["testbed"] == "kernel")
        for host in params["hosts"]:
            if host["mtu"] > self.model.largest_mtu:
                data = {"what": f"MTU of {host['name']}", "asked": host["mtu"], "limit": self.model.largest_mtu}
                raise FakeError(-32003, "the device cannot take this MTU", data)
        # One draw per run, so that the order of requests by hosts does not matter.
        noise = math.exp(-abs(self._random.normal(0, self.model.noise)) if self.model.noise else 0)
        noise *= 1 - self.model.drift * (self._racks % 40) / 40
        if self.model.loses(params):
            noise *= 1 - self.model.goodput_loss
        self._rack = rack = BuiltRack(params, self._racks, noise)
        self._racks += 1
        self._traffic = FakeTraffic(rack, self._fault, self._spool)
        self._datagrams = FakeDatagrams(rack, self._spool)
        self._quic = FakeQuic(rack, self._spool)
        hosts = [
            {
                "name": name,
                "pid": 100 + index,
                "thread": 101 + index,
                "interface": fake_network.nics(rack, name)[0]["interface"],
                "address": rack.address(name),
                "mac": "02:00",
                "nics": fake_network.nics(rack, name)[: 1 if self._fault("nic_missing") else None],
            }
            for index, name in enumerate(rack.names)
        ]
        return {
            "hosts": hosts,
            "routers": fake_network.routers(rack, self._fault),
            "ceilings": {host["name"]: ceilings(params, host["mtu"]) for host in params["hosts"]},
            "network": fake_network.answer(rack, self._fault),
            "names": True,
        }

    def _set(self, params: Json) -> Json:
        """A change of a host's MTU affects later connections; changes of links are only recorded."""
        rack = self._up_now()
        if self._fault("change_refused"):
            raise FakeError(-32602, "rack.set: found a change that is sabotaged", {"method": "rack.set"})
        rack.changes.append((self.clock_seconds - STARTED_SECONDS, params))
        late = 0.2 if self._fault("change_late") else 0.0
        return {"time_seconds": self.clock_seconds + late, "changed": fake_network.changed(rack, params)}

    def _ports(self, _: Json) -> Json:
        rack = self._up_now()
        return {"time_seconds": rack.elapsed, "ports": fake_network.port_counts(rack, self._fault)}

    def _bare(self, params: Json) -> Json:
        """Always raises FakeError: labs need real kernels."""
        names = params["hosts"]
        if len(set(names)) < len(names) or not all(re.fullmatch("[A-Za-z0-9-]+", name) for name in names):
            raise FakeError(-32602, "rack.bare: hosts need different names", {"method": "rack.bare"})
        data = {"what": "hosts without links", "asked": len(names), "limit": "1 to 250"}
        raise FakeError(-32003, "an invented network has none", data)

    def _down(self, _: Json) -> Json:
        self._up_now()
        self._rack = None
        self._spools.clear()
        return {}

    def _relay(self, params: Json) -> Json:
        rack, host, host_params = self._up_now(), params["host"], params["params"]
        if host not in rack.names:
            raise FakeError(-32006, f"there is no host {host}", {"what": f"host {host}"})
        readings = FakeReadings(self.model, rack, self._fault)
        methods: dict[str, Callable[[], Json]] = {
            "host.read": lambda: readings.host_read(host),
            "host.counters": lambda: readings.counters(host),
            "cpu.begin": lambda: readings.cpu_begin(host),
            "cpu.read": lambda: readings.cpu_read(host),
            "cpu.end": lambda: readings.cpu_end(host),
            "wire.begin": dict,
            "wire.end": lambda: readings.wire(host),
            "spool.read": lambda: self._spool_read(host_params),
            "spool.drop": lambda: self._spool_drop(host_params),
            **self._traffic.methods(host, host_params),
            **self._datagrams.methods(host, host_params),
            **self._quic.methods(host, host_params),
        }
        if params["method"] not in methods:
            raise FakeError(-32601, f"there is no method {params['method']}", {"method": params["method"]})
        return methods[params["method"]]()

    def _measured(self, _: Json) -> Json:
        drops = self._spool(pa.table({"time_seconds": pa.array([], pa.float64())}))
        return FakeReadings(self.model, self._up_now(), self._fault).measured(drops)

    def _spool(self, table: pa.Table) -> int:
        sink = io.BytesIO()
        with pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        number = max(self._spools, default=0) + 1
        self._spools[number] = sink.getvalue()
        return number

    def _begin(self, _: Json) -> Json:
        self._up_now()
        return {}

    def _spool_drop(self, params: Json) -> Json:
        self._spools.pop(params["spool"], None)
        return {}

    def _spool_read(self, params: Json) -> Json:
        if params["spool"] not in self._spools:
            raise FakeError(-32006, f"there is no spool {params['spool']}", {"what": f"spool {params['spool']}"})
        data = self._spools[params["spool"]]
        chunk = data[params["offset_bytes"] :][: params["length_bytes"]]
        return {"data": base64.b64encode(chunk).decode(), "size_bytes": len(data)}


def _check_nic(nic: Json, kernel: bool) -> None:
    """FakeError for NIC settings that no NIC supports, or not the kernel's own link."""
    if (nic["tso"] or nic["lro"]) and not nic["checksum"]:
        raise FakeError(-32602, "rack.up: tso and lro need checksum", {"method": "rack.up"})
    if kernel and nic["tso"] != nic["lro"]:
        data = {"what": "lro on the kernel testbed", "asked": nic["lro"], "limit": nic["tso"]}
        raise FakeError(-32003, "the kernel passes aggregates on whole", data)
    if kernel and nic["moderation_seconds"] > 0 and (nic["tso"] or not nic["gro"]):
        data = {"what": "moderation on the kernel testbed", "asked": nic["moderation_seconds"], "limit": 0}
        raise FakeError(-32003, "the kernel's link polls with gro and without tso only", data)


class Answered:
    """A request that has its answer already."""

    def __init__(self, result: Json, error: Exception | None) -> None:
        self._result, self._error = result, error

    def cancel(self) -> None:
        """Does nothing, because the answer is there."""

    def result(self, timeout_seconds: float | None = ANSWER_SECONDS) -> Json:
        """The answer, or its error."""
        if self._error is not None:
            raise self._error
        return self._result


def _predict(params: Json) -> Json:
    """The prediction without slow start: a handshake, then the line rate."""
    return {"completion_seconds": params["rtt_seconds"] + 8 * params["size_bytes"] / params["bits_per_second"]}


def _wire(params: Json) -> Json:
    """The part of `frames.wire` without encapsulations, as needed by a rack."""
    families = []
    for family in (4, 6):
        link = {"link": {"bits_per_second": params["bits_per_second"]}, "family": family}
        families.append({"family": family, **ceilings(link, params["mtu"])})
    return {"frame_bytes": families[0]["frame_bytes"], "families": families}


class FakeTestbed(RackTestbed):
    """The rack testbed on a fake agent, with the same code as the real one above the pipe."""

    scope = "invented"

    def __init__(self, model: FakeModel | None = None, kind: str = "fabric") -> None:
        self._rack = FakeRack(model)
        super().__init__(self._rack)
        self.kind = kind

    def begin(self, watch: Sequence[str] = ()) -> float:
        """The start of the measurement, on the clock of the invented rack."""
        super().begin(watch)
        return STARTED_SECONDS

    def changing(
        self, changes: Sequence[Mapping[str, Any]], begun_seconds: float
    ) -> AbstractContextManager[list[Json]]:
        """Makes all changes at once: nothing takes time here, and later traffic sees each from its time on."""

        def wait(moment: float) -> bool:
            self._rack.clock_seconds = moment
            return True

        outcomes: list[Json] = []
        changing.make(self._rack, changes, begun_seconds, wait, outcomes)
        return nullcontext(outcomes)
