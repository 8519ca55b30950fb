"""Racks for hand use as far as they need no rack: the state file, the keeper, and what is refused."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.kept import MINE, Kept, ended, state
from helpers.support import PATIENCE_SECONDS

from framegauge.cli import main as cli, rack as cli_rack
from framegauge.errors import AgentLost, InputError
from framegauge.rack import hand, keeper, state as kept
from framegauge.rack.state import Process


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state file: never the real one, whoever runs the tests."""
    file = tmp_path / "framegauge-rack.json"
    monkeypatch.setattr(kept, "FOR_ROOT", file)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return file


def test_where_the_state_is(tmp_path: Path) -> None:
    assert kept.state_path(0) == kept.FOR_ROOT
    assert kept.state_path(7, {"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "framegauge-rack.json"
    for environment in ({}, {"XDG_RUNTIME_DIR": "/nonexistent"}):
        assert kept.state_path(7, environment) == Path("/tmp/framegauge-rack-7/framegauge-rack.json")


def test_a_folder_of_its_own_comes_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "framegauge-rack-7" / "framegauge-rack.json"
    with kept.claim(path, {"study": "x"}) as write:
        assert path.parent.stat().st_mode & 0o777 == 0o700
        write(state())
    assert kept.forget(path, MINE)
    assert list(tmp_path.iterdir()) == []
    path.parent.mkdir(mode=0o755)
    with pytest.raises(InputError, match="expected your own folder with mode 700"), kept.claim(path, {}):
        pass


def test_a_claim_is_seen_whole_and_goes_when_the_building_fails(path: Path) -> None:
    draft = Path(f"{path}.{ended().pid}")
    draft.touch()
    with contextlib.suppress(ZeroDivisionError), kept.claim(path, {"study": "x"}):
        found = kept.current(path, pytest.fail)
        assert found is not None
        assert (found["state"], found["study"], found["keeper"]) == ("building", "x", MINE.as_json())
        assert path.stat().st_mode & 0o777 == 0o600
        assert list(path.parent.iterdir()) == [path]
        with pytest.raises(kept.Taken), kept.claim(path, {}):
            pass
        assert path.exists()
        1 / 0
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"keeper": {"pid": 2**22 + 1, "start_ticks": 5}},
        {"keeper": {"pid": MINE.pid, "start_ticks": MINE.start_ticks + 1}},
        {"boot_id": "another"},
        {"state": "ended", "reason": "its agent ended", "keeper": {"pid": 2**22 + 1, "start_ticks": 5}},
    ],
    ids=["no such process", "its number was used again", "another boot", "it says why"],
)
def test_a_state_whose_keeper_is_gone_is_removed_and_said_once(path: Path, change: dict[str, Any]) -> None:
    keeper.replace(str(path), state(**change))
    said: list[str] = []
    assert kept.current(path, said.append) is None
    assert kept.current(path, said.append) is None
    assert len(said) == 1
    assert ("its agent ended" if "reason" in change else "has ended") in said[0]
    assert not path.exists()


def test_only_the_state_of_that_keeper_is_removed(path: Path) -> None:
    keeper.replace(str(path), state())
    assert not kept.forget(path, ended())
    assert path.exists()


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("{}", 0o600, "found other content"),
        ("nonsense", 0o600, "found other content"),
        ('{"schema": 2}', 0o600, "found schema 2, expected 1"),
        ('{"schema": 1}', 0o644, "mode 644, expected your own with mode 600"),
    ],
)
def test_a_state_that_we_did_not_write_is_not_believed(
    path: Path, text: str, mode: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(text)
    path.chmod(mode)
    assert cli.main(["rack", "down"]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    assert path.exists()


def test_an_invented_network_has_no_hosts_to_use(study_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rack", "up", str(study_path)]) == 2
    assert capsys.readouterr().err == (
        f'framegauge: {study_path}: testbed.kind: found "fake", expected rack or veth: '
        "programs cannot run in invented hosts\n"
    )


def test_a_simulated_network_has_none_either(study_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_path.write_text(study_path.read_text().replace("kind: fake", "kind: simulator"))
    for verb in (["rack", "up"], ["check", "--testbed"]):
        assert cli.main([*verb, str(study_path)]) == 2
        said = capsys.readouterr().err
        assert 'testbed.kind: found "simulator", expected rack or veth: ' in said
        assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up"], "found neither FILE nor --preset"),
        (["up", "none.yaml"], "No such file"),
        (["up", "--preset", "dmeo"], "expected one of demo"),
        (["exec", "h1"], "found no command"),
        (["exec", "h1", "--"], "found no command"),
        (["exec", "h1", "--", "ls"], "found no rack, expected one that is up: framegauge rack up FILE"),
        (["down", "--", "x"], "found x after --, expected nothing"),
        (["watch"], "rack watch: found no rack, expected one that is up"),
        (["watch", "--every", "soon"], '--every: found "soon", expected a time'),
        (["watch", "--every", "0"], 'rack watch: --every: found "0", expected 0.05 s to 1 h'),
        (["set", "switch>h1", "--up"], "rack set: found no rack, expected one that is up"),
        (["set", "switch>h1"], "rack set: found nothing to set"),
        (["set", "switch>h1", "--rate", "fast"], 'rack set: --rate: found "fast", expected a rate'),
    ],
)
def test_bad_input_is_exit_2_with_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rack", *words]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("framegauge: ")
    assert message in errors
    assert errors.count("\n") == 1


def test_without_a_rack(capsys: pytest.CaptureFixture[str]) -> None:
    assert [cli.main(["rack", *words]) for words in (["down"], ["show"], ["list", "--json"])] == [0, 0, 0]
    assert capsys.readouterr().out == f"no rack is up\nno rack is up; build one: {hand.HOW}\nnull\n"


def test_one_that_is_up_or_coming_is_not_built_again(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for change, what in ({}, "a rack of 1 host is up"), ({"state": "building"}, "a rack is being built"):
        keeper.replace(str(path), state(**change))
        assert cli.main(["rack", "up", "--preset", "demo"]) == 2
        errors = capsys.readouterr().err
        assert (
            f"{what} already (kept by process {os.getpid()}), expected none: run `framegauge rack down` first" in errors
        )
    assert cli.main(["rack", "exec", "h1", "--", "ls"]) == 2
    assert "the rack is still being built" in capsys.readouterr().err


def test_what_is_up_is_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = {"name": "host-2", "interface": "fg2", "address": "fd77::2", "mtu": 1500, **ended().as_json()}
    keeper.replace(str(path), state(hosts=[*state()["hosts"], gone]))
    assert cli.main(["rack", "show"]) == 0
    out, errors = capsys.readouterr()
    assert out.splitlines() == [
        "host    interface  address    MTU",
        "h1      fg1        10.77.0.1  9000",
        "host-2  fg2        fd77::2    1500",
        "",
        "a rack of 2 hosts (testbed rack, 1 Gb/s, base RTT 200 us, study.yaml), built in 0.10 s",
        "use it:  framegauge rack exec h1 -- ping -c 3 fd77::2",
        "end it:  framegauge rack down",
    ]
    assert "host-2 has gone" in errors
    keeper.replace(str(path), state(hosts=[*state()["hosts"], gone], names=True))
    assert cli.main(["rack", "show"]) == 0
    hint = "hosts know each other by name: framegauge rack exec h1 -- ping host-2"
    assert capsys.readouterr().out.splitlines()[-1] == hint
    assert cli.main(["rack", "list", "--json"]) == 0
    assert [host["running"] for host in json.loads(capsys.readouterr().out)["hosts"]] == [True, False]


def nics(*addresses: str) -> list[dict[str, str]]:
    return [{"interface": f"fg{number}", "address": each, "mac": "02:00"} for number, each in enumerate(addresses, 1)]


ROUTED = {
    "hosts": [
        {"name": "h1", "interface": "fg1", "address": "10.77.0.1", "mtu": 9000, **MINE.as_json(),
         "nics": nics("10.77.0.1", "10.77.1.1")},
        {"name": "h2", "interface": "fg3", "address": "10.77.2.2", "mtu": 9000, **MINE.as_json(), "nics": nics("10.77.2.2")},
    ],
    "routers": [
        {"name": "r1", "mtu": 1500, "icmp": "filtered", **MINE.as_json(), "nics": nics("10.77.0.3", "10.77.2.3")},
    ],
}  # fmt: skip


def test_every_nic_and_every_router_is_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keeper.replace(str(path), state(**ROUTED))
    assert cli.main(["rack", "show"]) == 0
    assert capsys.readouterr().out.splitlines()[:8] == [
        "node  interface  address    MTU",
        "h1    fg1        10.77.0.1  9000",
        "      fg2        10.77.1.1  9000",
        "h2    fg1        10.77.2.2  9000",
        "r1    fg1        10.77.0.3  1500",
        "      fg2        10.77.2.3  1500",
        "",
        "a rack of 2 hosts and 1 router (ICMP errors of r1 are filtered) (testbed rack, 1 Gb/s, base RTT 200 us, study.yaml), "
        "built in 0.10 s",
    ]
    gone = {**ROUTED["routers"][0], **ended().as_json()}
    keeper.replace(str(path), state(**ROUTED | {"routers": [gone]}))
    assert cli.main(["rack", "show"]) == 0
    assert "r1 has gone" in capsys.readouterr().err
    assert cli.main(["rack", "show", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["running"] for each in (*found["hosts"], *found["routers"])] == [True, True, False]


def test_a_command_may_run_in_a_router(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    router = Process.of(os.getppid())
    keeper.replace(str(path), state(**ROUTED | {"routers": [{**ROUTED["routers"][0], **router.as_json()}]}))
    monkeypatch.setattr(hand, "find_agent", lambda: "/agent")
    monkeypatch.setattr(hand, "privileged", lambda command, _: list(command))
    found = cli_rack.run(["exec", "r1", "--", "ip", "route"])
    assert found is not None
    assert found[:6] == ["/agent", "exec", "--pid", str(router.pid), "--start-ticks", str(router.start_ticks)]
    with pytest.raises(InputError, match='found no host "r2", expected one of h1, h2, r1'):
        cli_rack.run(["exec", "r2", "--", "ls"])


def test_what_follows_two_hyphens_is_the_commands_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper.replace(str(path), state())
    monkeypatch.setattr(hand, "find_agent", lambda: "/agent")
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(path).st_uid)
    monkeypatch.setattr(hand, "privileged", lambda command, _: list(command))
    where = ["/agent", "exec", "--pid", str(MINE.pid), "--start-ticks", str(MINE.start_ticks)]
    for words in (["h1", "--", "ls", "--json", "--", "-h"], ["h1", "ls", "--json", "--", "-h"]):
        found = cli_rack.run(["exec", *words])
        assert found is not None
        assert found[: len(where)] == where
        assert found[found.index("--") + 1 :][:2] == ["ls", "--json"]


@pytest.mark.parametrize("words", [[], ["up"], ["exec"], ["down"], ["show"], ["list"], ["watch"], ["set"]])
def test_help_has_examples(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["rack", *words, "--help"])
    assert "\n  framegauge rack " in capsys.readouterr().out


def test_nothing_heavy_is_imported_for_a_command_in_a_host() -> None:
    script = "import sys; from framegauge.cli import main, rack; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "pyarrow", "pydantic", "rich", "yaml"} & set(found)


def test_what_takes_long_is_told_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand, "PROGRESS_SECONDS", 0.001)
    said, told = [], threading.Event()

    def say(text: str) -> None:
        said.append(text)
        told.set()

    with hand._telling(say, "building the rack"):
        assert told.wait(PATIENCE_SECONDS)
    assert said[0] == "building the rack: 0 s so far"


@pytest.mark.parametrize(("testbed", "found"), [("lab", "a lab"), ("veth", "a rack of kind veth")])
def test_only_the_fabric_has_ports(path: Path, testbed: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    keeper.replace(str(path), state(testbed=testbed))
    for words in (["watch", "--once"], ["set", "switch>h1", "--down"]):
        assert cli.main(["rack", *words]) == 2
        assert capsys.readouterr().err == (
            f"framegauge: rack {words[0]}: found {found}, expected a rack on the fabric (kind rack): others have no ports\n"
        )


def test_a_rack_whose_keeper_cannot_be_asked_says_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keeper.replace(str(path), state())
    assert cli.main(["rack", "watch"]) == 1
    assert "the rack's keeper does not answer (No such file or directory)" in capsys.readouterr().err


# A rack of two ports, as far as it is asked: sixteen frames of 1500 bytes leave by one of them in each 0.25 s.
PORTS_AGENT = """
import json, sys
looks = 0
for line in sys.stdin:
    asked = json.loads(line)
    params, answer = asked["params"], {}
    if asked["method"] == "rack.ports":
        zero = dict.fromkeys(("received_frames", "dropped_frames", "marked_frames", "lost_frames", "queued_bytes"), 0)
        zero |= {"peak_queue_bytes": 0, "sent_frames": 0, "sent_bytes": 0, "busy_seconds": 0.0}
        busy = {**zero, "sent_frames": 16 * looks, "sent_bytes": 24000 * looks, "busy_seconds": looks / 8}
        ports = [{"port": "h1>switch", **zero}, {"port": "switch>h1", **busy}]
        answer = {"result": {"time_seconds": looks / 4, "ports": ports}}
        looks += 1
    elif asked["method"] == "rack.set" and params.get("from") in ("switch", "*"):
        answer = {"result": {"time_seconds": 1.5, "changed": ["switch>h1"] * (12 if params["from"] == "*" else 1)}}
    elif asked["method"] == "rack.set" and "host" in params and params["mtu"] < 65521:
        answer = {"result": {"time_seconds": 1.75, "changed": [params["host"]]}}
    elif asked["method"] == "rack.set" and "host" in params:
        data = {"what": "MTU of h1", "asked": params["mtu"], "limit": 65521}
        answer = {"error": {"code": -32003, "message": "too large", "data": data}}
    elif asked["method"] == "rack.set":
        answer = {"error": {"code": -32602, "message": "rack.set: what the agent says", "data": {}}}
    elif asked["method"] == "relay":
        answer = {"result": {"mtu": 4000, "nics": [{"mtu": 4000}, {"mtu": 9000}]}}
    elif asked["method"] == "shutdown":
        break
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


@pytest.fixture
def live(path: Path) -> Iterator[Kept]:
    """A rack that can be asked."""
    it = Kept(path, [sys.executable, "-c", PORTS_AGENT])
    it.commit()
    yield it
    it.keeper.send_signal(signal.SIGTERM)
    it.ends()


def test_each_look_is_with_the_one_before(live: Kept) -> None:
    paused: list[float] = []
    looks = hand.looks(pytest.fail, 0.25, paused.append)
    times = [(before["time_seconds"], after["time_seconds"]) for before, after in (next(looks) for _ in range(3))]
    assert times == [(0.0, 0.25), (0.25, 0.5), (0.5, 0.75)]
    assert len(paused) == 3
    assert 0 < paused[0] <= 0.25
    looks.close()


def test_a_watch_that_comes_too_late_pauses_for_no_time(live: Kept) -> None:
    """As when a look takes longer than the interval; `time.sleep` refuses less than no time."""
    paused: list[float] = []
    looks = hand.looks(pytest.fail, 1e-9, paused.append)
    for _ in range(5):
        next(looks)
    assert min(paused) >= 0
    looks.close()


def test_watching_prints_rates(live: Kept, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli_rack.hand.time, "sleep", lambda _: None)
    assert cli.main(["rack", "watch", "--once", "--every", "50 ms"]) == 0
    # 24,000 bytes in a quarter of a second are 768 kb/s; an eighth of a quarter is a half.
    assert capsys.readouterr().out.splitlines() == [
        "up 0.2 s, rates over 0.25 s",
        "port       Mb/s  busy  queue  peak  drops/s  drops",
        "switch>h1   0.8   50%    0 B   0 B        0      0",
        "1 port idle",
    ]
    assert cli.main(["rack", "watch", "--once", "--json", "--interval", "0.05"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert [port["port"] for port in found["ports"]] == ["switch>h1", "h1>switch"]
    assert found["ports"][0]["bits_per_second"] == 768_000


def test_a_watch_that_loses_its_rack_says_so(live: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    looks = hand.looks(pytest.fail, 0.05, lambda _: None)
    next(looks)
    live.agent.kill()
    with pytest.raises(AgentLost, match=r"rack\.ports: the rack's keeper closed the connection"):
        list(looks)
    live.keeper.wait(PATIENCE_SECONDS)


def test_setting_says_what_was_changed_and_when(
    live: Kept, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # By the agent's clock, which is ours too, it was at 1.5 and 1.75 s; that is 10 s and 9.75 s ago.
    monkeypatch.setattr(hand, "time", SimpleNamespace(monotonic=lambda: 11.5))
    monkeypatch.setattr(
        hand, "datetime", SimpleNamespace(now=lambda zone: datetime(2026, 11, 22, 9, 0, 10, tzinfo=zone))
    )
    assert cli.main(["rack", "set", "switch:h1", "--rate", "100Mb/s", "--queue", "red"]) == 0
    assert cli.main(["rack", "set", "*>*", "--down"]) == 0
    assert cli.main(["rack", "set", "h1", "--mtu", "9000"]) == 0
    told = []
    for line in capsys.readouterr().out.splitlines():
        what, _, rest = line.partition(", since ")
        when, _, names = rest.partition(": ")
        told.append((what, datetime.fromisoformat(when), names))
    nine = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
    assert told == [
        ("rate 100 Mb/s, queue red", nine, "switch>h1"),
        ("down", nine, ", ".join(["switch>h1"] * 8) + " and 4 more"),
        ("MTU 9000", nine + timedelta(seconds=0.25), "h1"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["swich>h1", "--up"], 'rack set: found no port "swich>h1", expected one such as switch>h1'),
        (["h1>switch", "--queue", "rde"], "rack.set: what the agent says"),
        (["h2", "--mtu", "9000"], 'rack set: found no host "h2", expected one such as h1'),
        (["h1", "--mtu", "65536"], "MTU of h1: requested 65536, the limit here is 65521"),
    ],
)
def test_what_cannot_be_set_is_exit_2_with_one_line(
    live: Kept, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["rack", "set", *words]) == 2
    out, errors = capsys.readouterr()
    assert (out, errors.count("\n")) == ("", 1)
    assert message in errors


def test_the_mtu_that_is_shown_is_the_one_in_force(live: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rack", "show"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["h1", "fg1", "10.77.0.1", "4000"]


def test_one_nic_of_a_host_is_set_alone_and_shown_with_its_own_mtu(
    live: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    (host,) = state()["hosts"]
    two = [{**nic, "end": f"h1.{number}"} for number, nic in enumerate(nics("10.77.0.1", "10.77.1.1"), 1)]
    keeper.replace(str(live.path), state(Process.of(live.keeper.pid), hosts=[{**host, "nics": two}]))
    assert cli.main(["rack", "set", "h1.2", "--mtu", "9000"]) == 0
    assert capsys.readouterr().out.endswith(": h1.2\n")
    assert cli.main(["rack", "set", "h1.3", "--mtu", "9000"]) == 2
    assert 'found no host "h1.3", expected one such as h1' in capsys.readouterr().err
    assert cli.main(["rack", "show"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:3]] == ["4000", "9000"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_keeper_lets_go_when_it_is_told(path: Path, number: int) -> None:
    it = Kept(path)
    it.ours.sendall(b"k")
    it.keeper.send_signal(number)
    it.ends()
    assert not path.exists()


def test_a_keeper_lets_go_when_its_starter_ends_before_it_has_committed(path: Path) -> None:
    it = Kept(path)
    it.ours.close()
    it.ends()
    assert not path.exists()


def test_a_keeper_writes_down_why_its_rack_went_away(path: Path) -> None:
    it = Kept(path)
    it.commit()
    it.agent.kill()
    it.ends()
    found = json.loads(path.read_text())
    assert (found["state"], found["reason"]) == ("ended", "its agent ended: oops")
