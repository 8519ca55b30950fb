"""The gate between two waves: what a user's command is told, and what its exit code means."""

from __future__ import annotations

import time

import pytest
from helpers.processes import is_gone

from framegauge.rollout.engine import Released
from framegauge.rollout.gate import gate

WAVE = Released(("alpha", "beta"), 1795780800.25, ("gamma",))


def test_the_command_is_told_which_hosts_were_switched_when_and_which_were_not(tmp_path):
    found = tmp_path / "told"
    command = f'echo "$FRAMEGAUGE_SWITCHED_AT $FRAMEGAUGE_SWITCHED $FRAMEGAUGE_HELD" > {found}'
    assert gate(command, lambda: None, WAVE) is None
    assert found.read_text() == "2026-11-27T12:00:00.250+00:00 alpha,beta gamma\n"


@pytest.mark.parametrize(("code", "words"), [(1, "(stop)"), (2, "(cannot say)"), (7, "(no answer)")])
def test_any_other_exit_code_is_a_reason(code, words):
    assert words in gate(f"exit {code}", lambda: None, WAVE)


def test_what_it_prints_is_for_the_terminal_and_not_in_the_way_of_output(capfd):
    assert gate("echo Stop: drops is worse", lambda: None, WAVE) is None
    assert capfd.readouterr() == ("", "Stop: drops is worse\n")


def test_leases_are_kept_while_it_runs_and_it_ends_with_the_roll_out(tmp_path):
    paused, found = [], tmp_path / "ended"

    def pause():
        paused.append(True)
        if len(paused) == 2:
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        gate(f"trap 'echo > {found}; exit' TERM; while :; do sleep 0.05; done", pause, WAVE)
    assert (len(paused), found.exists()) == (2, True)
    assert time.monotonic() - began < 60


def test_what_it_has_started_ends_with_it(tmp_path):
    there = tmp_path / "pid"

    def pause():
        """Called while it runs: it has its time to start, however busy the machine is."""
        if there.exists() and there.read_text().strip():
            raise KeyboardInterrupt
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        gate(f"sleep 3600 & echo $! > {there}; wait", pause, WAVE)
    assert is_gone(int(there.read_text()))
