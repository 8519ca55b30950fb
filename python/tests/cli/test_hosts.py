"""`framegauge hosts` takes the words for hosts that other verbs take, beside inventories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framegauge.cli.main import main
from framegauge.errors import AgentLost, InputError
from framegauge.testbeds.listed import ListedHosts


@pytest.mark.agent
def test_this_machine_needs_no_inventory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", "local", "--json"]) == 0
    (named,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (named["name"], named["error"]) == ("local", None)
    assert named["facts"]["interfaces"]
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts: [local]\n")
    assert main(["hosts", str(file), "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["hosts"]
    assert listed.keys() == named.keys()
    assert main(["hosts", "--hosts", str(file), "--json"]) == 0  # as other verbs have it
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["hosts"]] == ["local"]


@pytest.mark.agent
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "found no host, expected HOST, or --hosts FILE"),
        (["local", "local"], "found a host twice, expected each once"),
        (["nosuch.yaml"], "nosuch.yaml: found no such file, expected an inventory"),
        (["./nosuch"], "./nosuch: found no such file, expected an inventory"),
        (["netns:none-of-this-name"], "found no such network namespace"),
        (["--", "-oProxyCommand=x"], "expected the name of a host for ssh"),
    ],
)
def test_what_is_no_host_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


@pytest.mark.agent
def test_a_namespace_that_is_gone_is_a_host_that_cannot_be_reached_where_that_is_asked() -> None:
    """As for the undo of a roll-out, which goes on with the others."""
    name = "netns:none-of-this-name"
    with pytest.raises(InputError, match="found no such network namespace"):
        ListedHosts([name], lambda _: None)
    hosts = ListedHosts([name], lambda _: None, gone=True)
    [host] = hosts.hosts()
    with pytest.raises(AgentLost, match=f"{name}: found no such network namespace"):
        host.agent.request("check.facts", {})
    hosts.close()
