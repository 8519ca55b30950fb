"""The option --live: its words, and what it does not go with."""

from __future__ import annotations

from pathlib import Path

import pytest

from framegauge.cli import live, main


@pytest.mark.parametrize(
    ("words", "spelt"),
    [
        (["--live", "rack.yaml"], ["--live=0", "rack.yaml"]),
        (["--live", "8080", "rack.yaml"], ["--live", "8080", "rack.yaml"]),
        (["rack.yaml", "--live"], ["rack.yaml", "--live=0"]),
        (["--live", "--seed", "7"], ["--live=0", "--seed", "7"]),
        (["--live=9"], ["--live=9"]),
        ([], []),
    ],
)
def test_a_port_may_be_left_away(words: list[str], spelt: list[str]) -> None:
    assert live.spelt(words) == spelt


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "--live", "70000", "out"], '--live: found "70000", expected a port from 1 to 65535'),
        (["report", "--live", "out", "--json"], "--live: found --json beside it, expected it alone"),
        (["report", "--live", "out"], "out: found no results.json"),
        (["study", "--list", "--live"], "--live: found nothing that runs"),
        (["study", "--preset", "demo", "--live", "--dry-run"], "--live: found nothing that runs"),
    ],
)
def test_what_it_does_not_go_with_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
