"""Whether a figure agrees, cannot be told, or differs, and which arm explains that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from framegauge.reproduce import components, outcomes, page, tables
from framegauge.reproduce.documents import Arm, Document, Figure, Loaded, StudyFile
from framegauge.reproduce.outcomes import Result, Status
from framegauge.results.journal import Run, Saved

MEGABYTE = {"size_bytes": 1_000_000}
SMALL, LARGE = {**MEGABYTE, "buffer_bytes": 65536}, {**MEGABYTE, "buffer_bytes": 524288}
WORDS = {"place": "one-to-one", "case": "1 MB", "quantity": "goodput", "published": "as published"}


def verdict(low: float, high: float, metric: str = "goodput", **conditions: Any) -> dict[str, Any]:
    """A comparison with this interval; its ratio is in the middle."""
    return {
        "workload": "stream", "metric": metric, "unit": "bits_per_second", "conditions": conditions, "runs": 10,
        "baseline": {"mtu": 1500, "estimate": 1e8}, "treatment": {"mtu": 9000, "estimate": 1e8},
        "ratio": (low * high) ** 0.5, "ci95": [low, high], "verdict": "better",
    }  # fmt: skip


def share(number: float, said: str, low: float, high: float, level: Any = "taildrop") -> dict[str, Any]:
    """What the few get."""
    return {
        "conditions": MEGABYTE, "levels": {"queue": level}, "share": number, "ci95": [low, high], "verdict": said,
        "runs": 10,
    }  # fmt: skip


def result(folder: Path, *verdicts: Mapping[str, Any], few: Sequence[Mapping[str, Any]] = ()) -> Result:
    """A study that has these in its summary."""
    return Result(Saved(folder, {}, [], False), {"verdicts": verdicts, "few": few, "treatment": "mtu"})


def figure(low: float | None, high: float | None, *arms: str, **more: Any) -> Figure:
    """A published figure of the study "own", of transfers of 1 MB."""
    read = {"study": "own", "level": 9000, "where": MEGABYTE}
    return Figure.model_validate(
        {"id": "own-1", **WORDS, "ratio": [low, high], "read": read, "arms": list(arms), **more}
    )


def row(asked: Figure, results: Mapping[str, Result], arms: Sequence[Arm] = (), engine: str = "rack") -> outcomes.Row:
    """What became of a figure by the results of studies."""
    studies = {name: StudyFile() for name in ("own", "far", "near", "arm")}
    document = Document(
        document="own", title="t", source="s", set_up="u", studies=studies, arms={"all": list(arms)}, figures=[asked]
    )
    there = {(engine, name): found for name, found in results.items()}
    (found,) = outcomes.rows(Loaded(document, Path()), [asked], there, {}, lambda _: 8950.0)
    return found


def test_a_figure_is_read_where_nothing_else_is_varied(tmp_path: Path) -> None:
    own = result(
        tmp_path, verdict(1.1, 1.2, **LARGE), verdict(1.3, 1.4, **SMALL), verdict(1.5, 1.6, size_bytes=2, buffer_bytes=1),
        verdict(2.0, 2.1, "receiver_cpu_cost", **LARGE),
    )  # fmt: skip
    found = row(figure(1.05, 1.3), {"own": own}).outcome
    assert found.status is Status.AGREES
    assert found.found is not None
    assert found.found.estimate is not None
    assert found.found.estimate.interval == (1.1, 1.2)


def test_a_figure_of_one_of_two_workloads_that_vary_the_same_is_read_of_that(tmp_path: Path) -> None:
    """Of a disk and of a file, say, that are read in blocks: which of them, the values tell."""
    disk, file = {"size_bytes": 1, "access": "random"}, {"size_bytes": 1, "access": "sequential", "version": 3}
    own = result(tmp_path, verdict(1.1, 1.2, **disk), verdict(1.3, 1.4, **file))
    asked = figure(1.3, 1.4)
    assert asked.read is not None
    read = asked.read.model_copy(update={"where": {"size_bytes": 1, "access": "sequential"}})
    assert row(asked.model_copy(update={"read": read}), {"own": own}).outcome.status is Status.AGREES


@pytest.mark.parametrize(
    ("published", "interval", "status"),
    [
        ((1.05, 1.06), (1.055, 1.2), Status.AGREES),
        ((1.05, 1.06), (1.07, 1.2), Status.UNEXPLAINED),
        ((1.05, 1.06), (0.9, 1.2), Status.CANNOT_TELL),  # no effect at all is in it, too
        ((0.98, 1.02), (0.99, 1.05), Status.AGREES),
        ((0.98, 1.02), (0.7, 1.4), Status.CANNOT_TELL),  # too wide for "equal"
        ((None, 0.8), (0.5, 0.6), Status.AGREES),
        ((2.0, None), (1.1, 1.2), Status.UNEXPLAINED),
    ],
)
def test_what_agrees(
    tmp_path: Path, published: tuple[float | None, float | None], interval: tuple[float, float], status: Status
) -> None:
    found = row(figure(*published), {"own": result(tmp_path, verdict(*interval, **MEGABYTE))})
    assert found.outcome.status is status


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"verdict": "suspect"}, "an A/A control differs, so nothing is claimed"),
        ({"verdict": "not judged"}, "too many runs were lost"),
        ({"ci95": None}, "no usable interval from so few runs"),
        ({"metric": "latency_p50"}, "goodput is not measured on this testbed"),
        ({"conditions": {"size_bytes": 5}}, "no such comparison in this study's results"),
    ],
)
def test_what_cannot_be_told_says_why(tmp_path: Path, changes: Mapping[str, Any], why: str) -> None:
    found = row(figure(1.05, 1.3), {"own": result(tmp_path, {**verdict(1.1, 1.2, **MEGABYTE), **changes})})
    assert (found.outcome.status, found.outcome.why) == (Status.CANNOT_TELL, why)


@pytest.mark.parametrize(
    ("interval", "explains", "helps"),
    [
        ((1.9, 2.1), True, True),  # to where it was published
        ((1.5, 1.6), False, True),  # half-way
        ((1.09, 1.21), False, False),  # as without it
        ((0.7, 0.8), False, False),  # the other way
        ((0.5, 4.0), False, False),  # anywhere
        ((3.0, 3.1), False, True),  # beyond, and nearer
        ((30.0, 31.0), False, False),  # beyond, and farther
    ],
)
def test_an_arm_explains_what_it_moves_there(
    tmp_path: Path, interval: tuple[float, float], explains: bool, helps: bool
) -> None:
    results = {
        "own": result(tmp_path, verdict(1.1, 1.2, **MEGABYTE)), "arm": result(tmp_path, verdict(*interval, **MEGABYTE)),
    }  # fmt: skip
    found = row(figure(1.9, 2.2, "all"), results, [Arm(name="a smaller buffer", study="arm")]).outcome
    (arm,) = found.arms
    assert (arm.explains, arm.helps) == (explains, helps)
    statuses = {(True, True): Status.EXPLAINED, (False, True): Status.PARTLY, (False, False): Status.UNEXPLAINED}
    assert found.status is statuses[explains, helps]
    assert arm.moved.number == pytest.approx((interval[0] * interval[1]) ** 0.5 / (1.1 * 1.2) ** 0.5)
    assert arm.moved.low < arm.moved.number < arm.moved.high
    # Wider than either interval alone.
    assert arm.moved.high / arm.moved.low > max(1.2 / 1.1, interval[1] / interval[0])


def test_the_nearest_arm_comes_first_and_one_not_run_is_left_out(tmp_path: Path) -> None:
    results = {
        name: result(tmp_path, verdict(*interval, **MEGABYTE))
        for name, interval in (("own", (1.1, 1.2)), ("far", (1.3, 1.31)), ("near", (1.8, 1.81)))
    }
    arms = [Arm(name=name, study=name) for name in ("far", "near", "arm")]
    found = row(figure(1.9, 2.2, "all"), results, arms).outcome
    assert [each.arm.name for each in found.arms] == ["near", "far"]
    assert found.why.startswith("near: ")


def test_a_quotient_of_two_changes(tmp_path: Path) -> None:
    own = result(tmp_path, verdict(1.0, 1.02, rtt_seconds=0.0002), verdict(1.5, 1.6, rtt_seconds=0.01))
    read = {"study": "own", "level": 9000, "where": {"rtt_seconds": 0.01}, "than": {"rtt_seconds": 0.0002}}
    asked = figure(1.2, None, read=read)
    found = row(asked, {"own": own}).outcome
    assert found.status is Status.AGREES
    assert found.found is not None
    assert found.found.estimate is not None
    assert found.found.estimate.number == pytest.approx((1.5 * 1.6 / 1.02) ** 0.5)


@pytest.mark.parametrize(
    ("published", "few", "status"),
    [
        ("less", share(0.1, "less", 0.05, 0.2), Status.AGREES),
        ("fair", share(0.1, "less", 0.05, 0.2), Status.UNEXPLAINED),
        ("fair", share(0.9, "undecided", 0.5, 1.5), Status.CANNOT_TELL),
        # A direction without a size is told by an interval that has it throughout, whatever the margin of fairness.
        ("more", share(1.16, "undecided", 1.07, 1.24), Status.AGREES),
        ("less", share(1.16, "undecided", 1.07, 1.24), Status.CANNOT_TELL),
        ("more", share(1.16, "undecided", 0.97, 1.24), Status.CANNOT_TELL),
        ("more", share(1.06, "fair", 1.02, 1.1), Status.UNEXPLAINED),
        ([0.12, 0.17], share(0.1, "less", 0.05, 0.2), Status.AGREES),
        ([0.4, 0.6], share(0.1, "less", 0.05, 0.2), Status.UNEXPLAINED),
    ],
)
def test_the_share_of_the_few(tmp_path: Path, published: Any, few: Mapping[str, Any], status: Status) -> None:
    read = {"study": "own", "metric": "share_of_few", "level": "taildrop"}
    asked = Figure.model_validate({"id": "own-1", **WORDS, "share": published, "read": read})
    assert row(asked, {"own": result(tmp_path, few=[few])}).outcome.status is status


def test_what_was_not_run_or_is_not_carried_is_no_claim(tmp_path: Path) -> None:
    assert row(figure(1, 2), {}).outcome.status is Status.NOT_RUN
    document = Document(
        document="own", title="t", source="s", set_up="u", studies={"own": StudyFile()}, figures=[figure(1, 2)]
    )
    lacks = {("rack", "own"): "no vsftpd"}
    (lacking,) = outcomes.rows(Loaded(document, Path()), [figure(1, 2)], {}, lacks, lambda _: 0.0)
    assert lacking.outcome.why == "no vsftpd"
    asked = Figure.model_validate({"id": "own-1", **WORDS, "not_carried": "needs a NIC of 2000"})
    found = row(asked, {}).outcome
    assert (found.status, found.why) == (Status.NOT_CARRIED, "needs a NIC of 2000")


def test_what_a_document_asked_without_an_answer_is_answered(tmp_path: Path) -> None:
    asked = Figure.model_validate({"id": "own-1", **WORDS, "read": {"study": "own", "level": 9000, "where": MEGABYTE}})
    found = row(asked, {"own": result(tmp_path, verdict(0.9, 1.2, **MEGABYTE))})
    assert found.outcome.status is Status.ANSWERED


def test_frame_arithmetic_needs_no_run() -> None:
    wire = {"value": "inner_mtu", "mtu": 9000, "encapsulations": ["vxlan"]}
    for value, status in (([8950, 8950], Status.AGREES), ([8900, 8900], Status.UNEXPLAINED)):
        asked = Figure.model_validate({"id": "own-1", **WORDS, "value": value, "wire": wire})
        assert row(asked, {}).outcome.status is status


def test_the_simulator_answers_where_the_rack_cannot_tell(tmp_path: Path) -> None:
    studies = {"own": StudyFile()}
    asked = figure(1.05, 1.06)
    document = Document(document="own", title="t", source="s", set_up="u", studies=studies, figures=[asked])
    there = {
        ("rack", "own"): result(tmp_path, verdict(0.9, 1.2, **MEGABYTE)),
        ("simulator", "own"): result(tmp_path, verdict(1.05, 1.06, **MEGABYTE)),
    }
    (found,) = outcomes.rows(Loaded(document, Path()), [asked], there, {}, lambda _: 0.0)
    assert (found.engine, found.outcome.status) == ("simulator", Status.AGREES)
    assert tables.cells(found)[5] == "agrees (simulator)"


def test_a_difference_on_both_testbeds_is_explained_where_an_arm_explains_it(tmp_path: Path) -> None:
    studies = {"own": StudyFile(), "arm": StudyFile()}
    asked, arm = figure(1.9, 2.2, "all"), Arm(name="loss", study="arm")
    document = Document(
        document="own", title="t", source="s", set_up="u", studies=studies, arms={"all": [arm]}, figures=[asked]
    )
    there = {
        (engine, name): result(tmp_path, verdict(*interval, **MEGABYTE))
        for engine, name, interval in (
            ("rack", "own", (1.1, 1.2)), ("rack", "arm", (0.5, 4.0)), ("simulator", "own", (1.1, 1.2)),
            ("simulator", "arm", (1.9, 2.1)),
        )
    }  # fmt: skip
    (found,) = outcomes.rows(Loaded(document, Path()), [asked], there, {}, lambda _: 0.0)
    assert (found.engine, found.outcome.status) == ("simulator", Status.EXPLAINED)


def test_a_figure_may_be_read_of_another_study_where_it_is_simulated(tmp_path: Path) -> None:
    studies = {
        "own": StudyFile(testbeds=["rack"]), "model": StudyFile(testbeds=["simulator"]),
        "arm": StudyFile(testbeds=["simulator"]),
    }  # fmt: skip
    arm = Arm(name="slow hosts", study="arm")
    asked = figure(1.9, 2.2, "all", simulated={"study": "model", "level": 9000, "where": MEGABYTE})
    document = Document(
        document="own", title="t", source="s", set_up="u", studies=studies, arms={"all": [arm]}, figures=[asked]
    )
    assert Loaded(document, Path()).studies_of([asked]) == ["own", "model", "arm"]
    there = {
        ("rack", "own"): result(tmp_path, verdict(2.9, 3.2, **MEGABYTE)),
        ("simulator", "model"): result(tmp_path, verdict(1.04, 1.06, **MEGABYTE)),
        ("simulator", "arm"): result(tmp_path, verdict(2.0, 2.1, **MEGABYTE)),
    }
    (found,) = outcomes.rows(Loaded(document, Path()), [asked], there, {}, lambda _: 0.0)
    assert found.outcomes["rack"].status is Status.UNEXPLAINED
    assert (found.engine, found.outcome.status) == ("simulator", Status.EXPLAINED)
    (only,) = outcomes.rows(Loaded(document, Path()), [asked], {}, {("simulator", "model"): "stopped"}, lambda _: 0.0)
    assert {engine: each.why for engine, each in only.outcomes.items()} == {"rack": "", "simulator": "stopped"}


def test_what_is_written_is_escaped_everywhere(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | x"
    asked = figure(1.05, 1.06, place=evil, published=evil, note=evil)
    document = Document(
        document="own", title=evil, source=evil, set_up=evil, studies={"own": StudyFile()}, figures=[asked]
    )
    loaded = Loaded(document, Path())
    there = {("rack", "own"): result(tmp_path, verdict(1.05, 1.06, **MEGABYTE))}
    pairs = [outcomes.reproduced(loaded, [asked], there, {}, lambda _: 0.0)]
    assert pairs[0].ran == ["rack: 0 runs of 1 study, 0 of them excluded"]
    assert "<script>alert" not in page.page(pairs, "framegauge <script>alert")
    whole = page.markdown(pairs, "framegauge", "here")
    assert "<script>alert" not in whole
    assert all(line.count("|") - line.count("\\|") == 8 for line in whole.splitlines() if line.startswith("| own"))


def test_web_servers_count_together_and_by_name():
    """Of few users, one server gets more of them by chance; together they have all."""
    site = {"cpu": {"web-1": {"mean": 0.02}, "web-2": {"mean": 0.03}, "files": {"mean": 0.01}, "driver": None}}
    shares = {name: components.cpu(site, name) for name in ("web", "web-2", "files", "driver", "balancer")}
    assert shares == {"web": 0.05, "web-2": 0.03, "files": 0.01, "driver": 0.0, "balancer": 0.0}
    assert components.cpu({}, "web") == 0.0


def test_cpu_of_a_component_is_compared_at_the_same_conditions():
    """Many users cost more than few: a run counts beside the one of its block at its own conditions, and none alone."""
    runs = [
        (Run(0, block, cell, role, role, level, 0, "web", {}, {}, []), share)
        for block, cell, role, level, share in (
            (0, 0, "baseline", 1500, 0.1), (0, 0, "treatment", 9000, 0.09), (0, 0, "treatment", 4000, 0.3),
            (0, 1, "baseline", 1500, 0.2), (0, 1, "treatment", 9000, 0.18), (1, 0, "baseline", 1500, 0.11),
            (1, 1, "baseline", 1500, 0.2), (1, 1, "treatment", 9000, 0.0),
        )
    ]  # fmt: skip
    assert components.beside(runs, 9000) == ([0.1, 0.2], [0.09, 0.18])
