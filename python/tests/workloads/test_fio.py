"""fio: the jobs that it gets, and what it printed, as it printed it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framegauge.errors import ProgramFailure
from framegauge.workloads.fio import Load, course, fill, parse

LOAD = Load("mixed", "random", 4096, 4, 1.0, rate_per_second=200, read_share=0.7, seed=7)
# Of fio 3.33 for that load, without the parts that are not read.
PERCENTILES = {"50.000000": 2608, "95.000000": 6624, "99.000000": 9152}
WAY = {"short_ios": 0, "drop_ios": 0}
JOB: dict[str, Any] = {
    "jobname": "ceph", "error": 0,
    "read": {**WAY, "io_bytes": 577_536, "runtime": 1001, "total_ios": 141},
    "write": {**WAY, "io_bytes": 245_760, "runtime": 1001, "total_ios": 60},
    "mixed": {
        **WAY, "io_bytes": 823_296, "runtime": 1001, "total_ios": 201,
        "lat_ns": {"min": 351, "max": 9243, "mean": 3096.9, "N": 201, "percentile": PERCENTILES},
    },
}  # fmt: skip


def printed(**change: Any) -> str:
    """The document, with keys replaced that are given as read__io_bytes."""
    job = json.loads(json.dumps(JOB))
    for name, value in change.items():
        *folders, last = name.split("__")
        place = job
        for each in folders:
            place = place[each]
        place[last] = value
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]})


def words(text: str) -> dict[str, str]:
    return dict(line.split("=") for line in text.splitlines() if "=" in line)


def test_the_job_has_every_setting_of_the_load() -> None:
    found = words(LOAD.job())
    assert {name: found[name] for name in ("rw", "bs", "iodepth", "runtime", "rwmixread", "rate_iops", "randseed")} == {
        "rw": "randrw", "bs": "4096", "iodepth": "4", "runtime": "1000ms", "rwmixread": "70", "rate_iops": "140,60",
        "randseed": "7",
    }  # fmt: skip
    assert found["time_based"] == "1"
    write = words(Load("write", "sequential", 65_536, 1, 2.5).job())
    assert (write["rw"], write["runtime"]) == ("write", "2500ms")
    assert not {"rate_iops", "rwmixread"} & write.keys()
    read = words(Load("read", "random", 512, 1, 2.5, rate_per_second=10).job())
    assert (read["rw"], read["rate_iops"]) == ("randread", "10,10")
    assert "time_based" not in words(fill())


def test_the_offered_load_is_that_of_reads_and_writes_together() -> None:
    assert LOAD.offered_bits_per_second == 200 * 4096 * 8
    assert Load("read", "random", 4096, 4, 1.0).offered_bits_per_second is None


def test_the_figures_are_those_that_fio_printed() -> None:
    found = parse(printed(), LOAD)
    assert (found.read_bytes, found.written_bytes, found.reads, found.writes) == (577_536, 245_760, 141, 60)
    assert found.metrics == pytest.approx(
        {
            "goodput": 8 * 823_296 / 1.001, "iops": 201 / 1.001, "latency_p50": 2.608e-6, "latency_p95": 6.624e-6,
            "latency_p99": 9.152e-6,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("fio: job dropped\n", "fio: found no JSON (Expecting value"),
        ('{"jobs": []}', "fio: jobs: List should have at least 1 item"),
        (printed(error=5), "fio: jobs.0.error: Input should be less than or equal to 0"),
        (printed(read__short_ios=1), "fio: jobs.0.read.short_ios: Input should be less"),
        (printed(write__total_ios="60"), "fio: jobs.0.write.total_ios: Input should be a valid integer"),
        (printed(mixed__runtime=0), "fio: jobs.0.mixed.runtime: Input should be greater"),
        (printed(read__io_bytes=577_535), "fio: read.io_bytes: found 577535, expected 141 blocks of 4096"),
        (printed(mixed__total_ios=200), "fio: mixed: found 200 in all and 201 latencies, expected 201"),
        (printed(mixed__lat_ns__N=199), "fio: mixed: found 201 in all and 199 latencies, expected 201"),
        (printed(mixed__lat_ns__percentile={"50.000000": 1, "95.000000": 2}), "fio: lat_ns.percentile: found {"),
        (printed(mixed__lat_ns__percentile={**PERCENTILES, "99.000000": 1}), "expected 50, 95, 99 in order"),
    ],
)  # fmt: skip
def test_anything_else_is_one_line_that_says_what_is_wrong(text: str, line: str) -> None:
    with pytest.raises(ProgramFailure) as failed:
        parse(text, LOAD)
    assert line in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_load_of_one_kind_has_none_of_the_other() -> None:
    with pytest.raises(ProgramFailure, match=r"fio: write.total_ios: found 60, expected 0 of a read"):
        parse(printed(), Load("read", "random", 4096, 4, 1.0))


def test_the_log_of_every_block_tells_when_answers_came_and_the_longest_times_without_one() -> None:
    """Blocks done at 5.000, 5.020, 5.060 and 5.400 s on the monotonic clock; the first took 10 ms, so that windows of 50 ms
    begin at 4.990 s."""
    text = "5000, 10000000, 1, 65536, 0\n5060, 3000000, 0, 65536, 0\n5020, 2000000, 1, 65536, 0\n5400, 4000000, 1, 65536, 0\n"
    found = course(text, 4)
    assert found["began_seconds"] == pytest.approx(4.990)
    windows = found["course"]
    assert windows["answered"] == [2, 1, 0, 0, 0, 0, 0, 0, 1]
    assert windows["latency_seconds"][:2] == pytest.approx([0.012, 0.003])
    assert windows["gaps"][0] == {"begun_seconds": pytest.approx(5.060), "seconds": pytest.approx(0.340)}
    assert windows["packets"] == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("5000, 1, 1, 65536, 0\n", "found 1 lines, expected one for each of 2 blocks"),
        ("", "found 0 lines"),
        ("5000, 1, 1, 65536, 0\n5000, x, 1, 65536, 0\n", "found 5000, x, 1, 65536, 0, expected 5 whole numbers"),
        ("5000, 1\n5000, 1, 1, 65536, 0\n", "found 5000, 1, expected 5 whole numbers"),
    ],
)
def test_a_log_that_lacks_blocks_excludes_the_run(text: str, line: str) -> None:
    with pytest.raises(ProgramFailure, match=f"fio: load_lat.log: {line}"):
        course(text, 2)


def test_a_log_is_asked_for_only_where_it_is_needed() -> None:
    """Its clock is the machine's monotonic one, which all agents have."""
    plain, logged = (Load("write", "random", 4096, 1, 1.0, logged=each).job().splitlines() for each in (False, True))
    assert set(logged) - set(plain) == {
        "write_lat_log=load", "per_job_logs=0", "disable_slat=1", "disable_clat=1", "log_alternate_epoch=1",
        "log_alternate_epoch_clock_id=1",
    }  # fmt: skip
    assert logged[: len(plain)] == plain
