"""The workload `command` in a study file: what it means, and what is said of a wrong one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from helpers.schemas import conforms

from framegauge import metrics
from framegauge.errors import StudyError
from framegauge.experiment.planning import missing_programs, workload_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import cells

COMMAND: dict[str, Any] = {
    "name": "store",
    "roles": {"keeper": "h2", "all": ["h1", "h2"]},
    "parameters": {"size": [10, 20], "mode": "fast"},
    "servers": [{"host": "keeper", "run": ["serve", "--bind", "{address}"], "ready": {"port": 6379, "within": "3 s"}}],
    "clients": [{"host": "h1", "name": "asker", "run": ["ask", "{keeper}", "{size}", "{mode}", "{mtu}", "{{plain}}"]}],
    "metrics": {"answers_given": {"output": "answers ([0-9.]+)", "unit": "1/s", "better": "higher"}},
}


def text(change: Any = None, **study: Any) -> str:
    """A study file with the command, changed in place by `change`."""
    command = copy.deepcopy(COMMAND)
    if change is not None:
        change(command)
    document = {
        "testbed": {"kind": "rack"}, "factors": {"mtu": [1500, 9000]}, "workloads": [{"command": command}], **study,
    }  # fmt: skip
    return yaml.safe_dump(document, sort_keys=False)


def problems(change: Any = None, **study: Any) -> str:
    with pytest.raises(StudyError) as error:
        study_file.parse(text(change, **study), "study.yaml")
    return str(error.value)


def test_lists_of_parameters_are_conditions_and_a_resolved_study_is_the_same():
    study = study_file.parse(text(), "study.yaml")
    assert [cell.parameters for cell in cells(study)] == [{"size": 10, "mode": "fast"}, {"size": 20, "mode": "fast"}]
    assert {cell.workload for cell in cells(study)} == {"store"}
    resolved = study_file.dump(study)
    assert study_file.parse(resolved, "resolved") == study
    conforms(yaml.safe_load(resolved), study_file.json_schema())


def test_a_slots_workload_has_the_levels_of_its_cell():
    study = study_file.parse(text(), "study.yaml")
    for slot in block_order(study, 0):
        made = workload_of(study, slot)
        assert made.values["size"] == str(slot.cell.parameters["size"])
        assert made.mtu == {"h1": slot.arm.level, "h2": slot.arm.level}
        assert made.servers[0].ready.port == "6379"
        assert made.preload is None


def test_its_metrics_are_judged_by_default_and_have_their_unit_and_direction():
    study = study_file.parse(text(), "study.yaml")
    assert set(study.margin()) == {"answers_given"}
    assert metrics.METRICS["answers_given"] == metrics.Metric("per_second", True)
    own = study_file.parse(text(margins={"answers_given": "3 %", "goodput": "default"}), "study.yaml")
    assert own.margin() == {"answers_given": 0.03, "goodput": 0.02}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: c.update(name="Big Store"), 'name: found "Big Store", expected a name of small letters'),
        (lambda c: c.update(name="stream"), 'name: found "stream", expected a name that no other workload has'),
        (lambda c: c["servers"][0].update(host="h7"), 'servers.0.host: found "h7", expected a host or a role: '),
        (lambda c: c["roles"].update(keeper="h9"), 'roles.keeper: found "h9", expected a host: '),
        (lambda c: c["roles"].update(mtu="h1"), 'roles.mtu: found "mtu", expected another name'),
        (lambda c: c["clients"][0]["run"].append("{keper}"), 'clients.0.run.6: found "{keper}", expected one of {address}'),
        (lambda c: c["clients"][0].pop("run"), "clients.0: found \"neither\", expected exactly one of run"),
        (lambda c: c["servers"][0].update(ready={}), 'ready: found "nothing", expected exactly one of port, output'),
        (
            lambda c: c["servers"][0].update(ready={"port": 1, "file": "x"}),
            'ready: found "port, file", expected exactly one of port, output',
        ),
        (
            lambda c: c["metrics"]["answers_given"].update(output="([0-9"),
            'metrics.answers_given.output: found "([0-9", expected a regular expression (',
        ),
        (
            lambda c: c["metrics"]["answers_given"].update(output="(a)(b)"),
            'found "(a)(b)", expected a regular expression with at most one group',
        ),
        (
            lambda c: c["metrics"].update(other={"json": "a.[", "better": "lower"}),
            'metrics.other.json: found "a.[", expected a JMESPath expression (',
        ),
        (
            lambda c: c["metrics"]["answers_given"].update(unit="req/s"),
            'metrics.answers_given.unit: found "req/s", expected one of s, ms',
        ),
        (
            lambda c: c["metrics"]["answers_given"].update(client="askr"),
            'metrics.answers_given.client: found "askr", expected the name of a client: "asker"',
        ),
        (
            lambda c: c["metrics"].update(goodput=c["metrics"]["answers_given"]),
            'metrics.goodput: found "goodput", expected another name: this one is built in',
        ),
        (lambda c: c.update(metrics={}), "metrics: found "),
        (lambda c: c.update(clients=[]), "clients: found "),
        (
            lambda c: c.update(packages={"srve": "store"}),
            'packages.srve: found "srve", expected a program that run or shell of a step names',
        ),
        (
            lambda c: c.update(packages={"serve": "The Store"}),
            'packages.serve: found "The Store", expected the name of a Debian package',
        ),
        (lambda c: c["parameters"].update(h1=[1]), 'parameters.h1: found "h1", expected a name that no host'),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told_where_what_and_what_was_expected(change, expected):
    found = problems(change)
    assert expected in found
    assert found.startswith("study.yaml:")


def test_a_margin_for_an_unknown_metric_names_the_nearest():
    assert 'margins.answer_given: found "answer_given", expected a metric: "answers_given"' in problems(
        margins={"answer_given": "3 %"}
    )


def test_an_invented_network_runs_no_programs():
    assert 'testbed.kind: found "fake", expected rack, veth or ssh for command' in problems(testbed={"kind": "fake"})


def test_programs_that_are_missing_are_named_with_their_hosts():
    study = study_file.parse(text(lambda c: c["clients"][0].update(host="all")), "study.yaml")
    found = {each["name"]: each["needed_for"] for each in missing_programs(study, "/nowhere")}
    assert found == {"serve": "command on h2", "ask": "command on h1, h2"}


def test_a_missing_program_is_named_with_its_package_also_if_only_a_script_names_it():
    def change(command: dict[str, Any]) -> None:
        command["clients"][0]["run"] = None
        command["clients"][0]["shell"] = "cd {run} && /opt/other/tool x > out.ask; exec ask {keeper}"
        command["packages"] = {"serve": "store-server", "ask": "store-tools", "tool": "tools"}

    with pytest.raises(StudyError, match='found "tool", expected a program that run or shell'):
        study_file.parse(text(change), "study.yaml")  # it has its path: another one may be that of the package

    def right(command: dict[str, Any]) -> None:
        change(command)
        del command["packages"]["tool"]

    study = study_file.parse(text(right), "study.yaml")
    found = [(each["name"], each["needed_for"], each["remedy"]) for each in missing_programs(study, "/nowhere")]
    assert found == [
        ("ask", "command on h1", "apt-get install store-tools"),
        ("serve", "command on h2", "apt-get install store-server"),
    ]
    assert study_file.parse(study_file.dump(study), "resolved") == study


def test_what_outlasts_a_run_has_a_folder_of_its_own():
    def change(command: dict[str, Any]) -> None:
        command["prepare"] = [{"host": "h2", "run": ["fill", "{kept}"], "lives": "study"}]
        command["servers"][0] |= {"lives": "arm", "run": ["serve", "{kept}/data"]}
        command["clients"][0]["run"] = ["ask", "{h2}", "{run}", "{kept}"]

    study, plain = (study_file.parse(each, "study.yaml") for each in (text(change), text()))
    made = workload_of(study, block_order(study, 0)[0])
    assert made.lasts
    assert ([task.lives for task in made.prepare], [task.lives for task in made.servers]) == (["study"], ["arm"])
    assert not workload_of(plain, block_order(plain, 0)[0]).lasts


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda c: c["servers"][0].update(lives="study", run=["serve", "{run}"]),
            'found "{run}", expected {kept}: this program outlives a run and its folder',
        ),
        (lambda c: c["clients"][0].update(run=["ask", "{kept}"]), 'found "{kept}", expected {run}, or a program with'),
        (lambda c: c["servers"][0].update(lives="ever"), 'lives: found "ever", expected'),
        (lambda c: c["clients"][0].update(lives="study"), "lives"),
        (lambda c: c.update(after=[{"host": "h1", "run": ["end"], "lives": "study"}]), "lives"),
    ],
)
def test_what_cannot_outlast_a_run_is_refused(change: Any, expected: str):
    assert expected in problems(change)


def test_a_server_without_a_sign_has_half_a_second():
    study = study_file.parse(text(lambda c: c["servers"][0].pop("ready")), "study.yaml")
    made = workload_of(study, block_order(study, 0)[0])
    assert (made.servers[0].ready.seconds, made.servers[0].ready.port) == (0.5, None)
    assert study_file.parse(study_file.dump(study), "resolved") == study
