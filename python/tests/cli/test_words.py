"""What people type first: verbs of other programs, parts of options, and options of another verb."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from framegauge.cli import main as cli


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("help", "usage: framegauge [-h]"), ("help check", "usage: framegauge check"),
        ("help rack up", "usage: framegauge rack up"), ("version", "framegauge 0."),
    ],
)  # fmt: skip
def test_help_and_version_are_verbs_as_well(words: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(words.split())
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("simulate --see 42 x.yaml", "unknown option '--see': did you mean '--seed'?"),
        ("check --tar 9000 local", "unknown option '--tar': did you mean '--mtu'?"),
        # Its value is not taken for a file, whatever else is wrong then.
        ("study --seeds 5 --preset quick", "unknown option '--seeds': did you mean '--seed'?"),
        ("stud x.yaml", "unknown verb 'stud': did you mean 'study'?"),
    ],
)
def test_a_part_of_a_name_is_no_name_and_what_is_meant_is_said(
    words: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(words.split())
    assert end.value.code == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(("words", "found"), [("check --mtu -5 local", "-5"), ("check -6 --mtu -5k local", "-5k")])
def test_a_negative_value_is_a_value(words: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split()) == 2
    assert f'--mtu: found "{found}", expected bytes' in capsys.readouterr().err


@pytest.mark.agent
@pytest.mark.parametrize("as_json", [False, True])
def test_without_root_requirements_lists_what_is_missing(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(["requirements", *(["--json"] if as_json else [])]) == 1
    out, err = capfd.readouterr()
    found = [each["name"] for each in json.loads(out)["missing"]] if as_json else [out.split(":")[0]]
    assert found == (["privilege"] if as_json else ["missing privilege"])
    assert "password is required" not in err
