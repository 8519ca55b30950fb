"""What a run's record has of its workload: the keys that every one has, and its own."""

from __future__ import annotations

import json
from typing import NotRequired, get_origin, get_type_hints

import pytest
from helpers import recorded
from helpers.support import STUDY

from framegauge.record import Record
from framegauge.study import file as study_file
from framegauge.workloads.command import CommandRecord
from framegauge.workloads.ftp import FtpRecord
from framegauge.workloads.iperf3 import Iperf3Record
from framegauge.workloads.live import Seen

OWN = {
    "stream: {size: 10 MB}": {
        "active_seconds", "ahead_bytes", "answers", "alone_bytes", "handshake_seconds", "last_start_seconds", "nics",
        "offered_bits_per_second", "pacing", "retransmits", "few", "runs", "served", "sizes", "sockets", "subflows",
    },
    "rr: {duration: 0.1 s}": {"active_seconds", "answers", "clients", "nodelay", "not_measured", "only_bulk", "served"},
    "mixed: {}": {
        "active_seconds", "answers", "asked", "client", "nodelay", "not_measured", "only_bulk", "pacing", "retransmits", "sent",
        "served", "window_seconds",
    },
}  # fmt: skip
# Of programs, by recording.
RECORDED = {
    "iperf3-one-to-one": (Iperf3Record, {"active_seconds", "answers", "clients", "retransmits"}),
    "iperf3-many-to-one": (Iperf3Record, {"active_seconds", "answers", "clients", "retransmits"}),
    "iperf3-reverse": (Iperf3Record, {"active_seconds", "answers", "clients", "retransmits"}),
    "iperf3-nagle-off": (Iperf3Record, {"active_seconds", "answers", "clients", "retransmits", "not_proved"}),
    "ftp-one-to-one": (FtpRecord, {"active_seconds", "fetched"}),
    "ftp-ipv6": (FtpRecord, {"active_seconds", "fetched"}),
    "ftp-many-to-one": (FtpRecord, {"active_seconds", "fetched"}),
}
EVERY = {
    "senders", "receivers", "received_bytes", "bytes", "transfer_bytes", "congestion_control", "srtt_median_seconds",
    "mean_segment_payload_bytes", "refused",
}  # fmt: skip


@pytest.mark.parametrize("workload", OWN)
def test_a_run_on_disk_has_these_keys_and_no_others(workload, execute, tmp_path):
    study = study_file.parse(STUDY.replace("stream: {size: 10 MB}", workload), "x").model_copy(update={"blocks": 1})
    execute(study)
    files = sorted((tmp_path / "out" / "runs").glob("*/record.json"))
    assert files
    for file in files:
        assert set(json.loads(file.read_text())["workload"]) == EVERY | OWN[workload]


@pytest.mark.parametrize("name", RECORDED)
def test_a_run_of_programs_on_disk_has_these_keys_and_no_others(name, tmp_path):
    kind, own = RECORDED[name]
    recorded.load(name).replay(tmp_path / "out")
    files = sorted((tmp_path / "out" / "runs").glob("*/record.json"))
    assert len(files) == 2
    for file in files:
        record = json.loads(file.read_text())["workload"]
        assert set(record) == EVERY | own
        assert recorded.misfits(record, kind) == []


def test_what_is_not_of_its_type_is_found():
    record = recorded.load("iperf3-one-to-one").runs[0].record["workload"]
    del record["senders"]
    record |= {"bytes": "many", "fetched": [], "received_bytes": {"h2": 1.5}}
    found = [line.partition(":")[0] for line in recorded.misfits(record, Iperf3Record)]
    assert sorted(found) == ["bytes", "fetched", "received_bytes", "senders"]


def test_the_type_says_which_keys_every_workload_has():
    hints = get_type_hints(Record, include_extras=True)
    assert {name for name, hint in hints.items() if get_origin(hint) is not NotRequired} == EVERY


def test_what_sockets_tell_is_in_the_record_of_commands_under_the_same_types():
    """Where the two are joined, the type checker cannot compare them."""
    assert get_type_hints(Seen).items() <= get_type_hints(CommandRecord).items()
