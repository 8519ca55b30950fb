"""Whose folders and cgroups tests call left behind: never those of somebody else's framegauge that runs meanwhile."""

import os
import subprocess

import pytest
from helpers import real


def answer_of(cat: subprocess.Popen[bytes]) -> bytes:
    assert cat.stdin is not None
    assert cat.stdout is not None
    cat.stdin.write(b"x")
    cat.stdin.flush()
    return os.read(cat.stdout.fileno(), 1)


@pytest.mark.parametrize("form", ["framegauge-of-{}-abc", "framegauge-{}-1-2"])
def test_what_a_living_program_of_others_has_is_theirs(form: str) -> None:
    others = {name: value for name, value in os.environ.items() if name != "FRAMEGAUGE_TESTS"}
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=others) as theirs,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ours,
    ):
        # Whoever answers runs: a moment after exec the kernel has no environment of it yet.
        assert [answer_of(process) for process in (theirs, ours)] == [b"x", b"x"]
        assert real.is_of_others(form.format(theirs.pid))
        assert not real.is_of_others(form.format(ours.pid))
        theirs.communicate()
        ours.communicate()
    # Whoever left it, nobody will take it away.
    assert not real.is_of_others(form.format(theirs.pid))


def test_a_name_without_an_owner_is_ours() -> None:
    assert not real.is_of_others("framegauge-rack.json")
