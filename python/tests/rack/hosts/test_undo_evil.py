"""A roll-out among whose hosts one is in other hands by now: of the others everything is known, and they go back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from helpers import evil
from helpers.rollouts import done, file_of
from helpers.schemas import conforms
from helpers.support import by_length
from helpers.switched import Lab, lab

from framegauge.rollout.schema import status_schema

pytestmark = pytest.mark.needs("ethtool", "ping")
NAMES = ["a", "b", "c"]
IN_PART = 3
# Runs on a host of the lab what ssh would: the agent of the host that EVIL names spoils its answers (helpers/evil.py).
SSH = """#!{python}
import os, sys
host, command = sys.argv[sys.argv.index("--") + 1], ["/bin/sh", "-c", sys.argv[-1]]
inside = ["ip", "netns", "exec", {namespaces}[host]]
name, _, rest = os.environ.get("EVIL", "").partition(":")
spoilt = [sys.executable, "-I", "-S", {evil!r}, *rest.split(":")] if name == host else []
os.execvp("ip", [*inside, *spoilt, *command])
"""


def stand_in(found: Lab, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `ssh` start the agents of a lab."""
    program = folder / "ssh"
    program.write_text(SSH.format(python=sys.executable, namespaces=dict(found.hosts), evil=evil.__file__))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.soak(2)
@pytest.mark.parametrize(
    ("method", "mode"),
    [
        ("host.routes", "types"), ("process.spawn", "types"), ("check.facts", "nothing"),
        *by_length([], [("check.facts", "types"), ("host.routes", "no json"), ("process.spawn", "no json")]),
    ],
)  # fmt: skip
def test_a_lying_host_keeps_no_other_from_going_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, mode: str
) -> None:
    with lab(NAMES) as found:
        stand_in(found, tmp_path, monkeypatch)
        path = file_of(found, tmp_path, hosts=NAMES, more="families: 4")
        code, said = done("apply", path)
        assert code == 0, said
        monkeypatch.setenv("EVIL", f"c:{method}:{mode}")
        code, said = done("undo", path)
        assert "Traceback" not in said
        assert (code, [found.packet(name) for name in "ab"]) == (IN_PART, [1500, 1500]), said
        assert any(line.strip().startswith("c: ") and "expected" in line for line in said.splitlines()), said
        monkeypatch.delenv("EVIL")
        code, said = done("undo", path)
        assert (code, found.is_old()) == (0, True), said


# What a host can answer, so that nothing is known of it, or not all.
LIES = [
    ("hello", "types"), ("check.facts", "words"), ("check.facts", "nothing"), ("host.routes", "huge"),
    ("sockets.read", "null"),
]  # fmt: skip


def test_a_status_tells_of_the_others_and_names_the_liar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lab(NAMES) as found:
        stand_in(found, tmp_path, monkeypatch)
        path = file_of(found, tmp_path, hosts=NAMES, more="families: 4")
        for method, mode in LIES:
            monkeypatch.setenv("EVIL", f"c:{method}:{mode}")
            code, said = done("status", path, "--json")
            document = json.loads(said)
            conforms(document, status_schema())
            assert (code, document["as_it_should_be"], list(document["lost"])) == (1, False, ["c"]), (method, said)
            assert {"a", "b"} <= set(document["hosts"])
            assert {document["hosts"][name]["state"] for name in "ab"} == {"unchanged"}
        code, said = done("status", path, "--prove")
        assert (code, "Traceback" in said) == (1, False)
        assert "not known: c: sockets.read: " in said
        assert "packets of 1500 bytes pass between all that were reached" in said


LATER = [
    ("lease.set", "types"), ("check.run", "nothing"), ("lease.begin", "types"), ("check.serve", "huge"),
    ("lease.set", "error with escapes"), ("lease.keep", "types"),
]  # fmt: skip


@pytest.mark.soak(2)
@pytest.mark.parametrize(("method", "mode"), by_length(LATER[:2], LATER))
def test_an_apply_with_a_lying_host_puts_the_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, mode: str
) -> None:
    """They are to send large packets to each other, so one that cannot be believed ends it for all."""
    with lab(NAMES) as found:
        stand_in(found, tmp_path, monkeypatch)
        path = file_of(found, tmp_path, hosts=NAMES, more="families: 4")
        monkeypatch.setenv("EVIL", f"c:{method}:{mode}")
        code, said = done("apply", path)
        assert "Traceback" not in said
        assert (code, [found.packet(name) for name in "ab"]) == (1, [1500, 1500]), said
        assert "c: " in said
