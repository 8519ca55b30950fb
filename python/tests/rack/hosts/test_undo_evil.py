"""An undo among whose hosts one is in other hands by now: the others go back, and its row says why it does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers import evil
from helpers.rollouts import done, file_of
from helpers.support import by_length
from helpers.switched import lab

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


@pytest.mark.soak(2)
@pytest.mark.parametrize(
    ("method", "mode"),
    [
        ("host.routes", "types"), ("process.spawn", "types"),
        *by_length([], [("check.facts", "types"), ("host.routes", "no json"), ("process.spawn", "no json")]),
    ],
)  # fmt: skip
def test_a_lying_host_keeps_no_other_from_going_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, mode: str
) -> None:
    with lab(NAMES) as found:
        program = tmp_path / "ssh"
        program.write_text(SSH.format(python=sys.executable, namespaces=dict(found.hosts), evil=evil.__file__))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
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
