"""What verbs print with --json is as `framegauge schema` says."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from helpers.schemas import conforms
from helpers.support import ROOT

from framegauge.cli import main, printed

MAKERS = ("plan", "wire", "hosts", "rack", "requirements", "cpu_model")
KEEPER = {"pid": 4711, "start_ticks": 5}


def printed_by(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert main.main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", MAKERS)
def test_each_is_a_schema_that_stands_alone(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["schema", name.replace("_", "-")]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == getattr(printed, name)()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert printed._names(schema) <= set(schema.get("$defs", ()))


@pytest.mark.parametrize("words", [["--preset", "demo"], ["examples/ssh-pair.yaml"], ["examples/simulate.yaml"]])
def test_a_plan(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    document = printed_by(["plan", *words], capsys)
    conforms(document, printed.plan())
    with pytest.raises(jsonschema.ValidationError):
        conforms({**document, "reach": [{}]}, printed.plan())


@pytest.mark.agent
@pytest.mark.parametrize(
    "words",
    [
        ["--mtu", "9000", "--encap", "vxlan", "--rate", "10 Gb/s"],
        ["--levels", "1500,4200,9000"],
        ["--nfs-read", "8192"],
    ],
)
def test_a_wire(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    conforms(printed_by(["wire", *words], capsys), printed.wire())


def test_hosts_that_could_not_be_asked() -> None:
    host = {"name": "db1", "ssh": "db1", "read_only": True, "interface": None, "ports": "40000-40099", "user_id": None,
            "cpus": None, "agent": None, "error": "no route to host", "facts": None}  # fmt: skip
    conforms({"schema": 1, "hosts": [host]}, printed.hosts())
    with pytest.raises(jsonschema.ValidationError):
        conforms({"schema": 1, "hosts": [{**host, "facts": {}}]}, printed.hosts())


def test_a_rack_that_is_up_one_that_is_built_and_none() -> None:
    begun = {"schema": 1, "boot_id": "x", "state": "building", "reason": None, "keeper": KEEPER, "testbed": "rack",
             "study": "preset demo"}  # fmt: skip
    member = {"name": "h1", "address": "10.0.0.1", "mtu": 9000, "nics": [], "running": True, **KEEPER}
    up = {**begun, "state": "up", "agent": KEEPER, "since": "2026-01-01T00:00:00+00:00", "hosts": [member],
          "routers": [], "conditions": {}, "names": True}  # fmt: skip
    for state in (None, begun, up):
        conforms(state, printed.rack())
    with pytest.raises(jsonschema.ValidationError):
        conforms({**up, "hosts": [{}]}, printed.rack())


@pytest.mark.agent
def test_requirements(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["requirements", "--json"]) in (0, 1)
    conforms(json.loads(capsys.readouterr().out), printed.requirements())
