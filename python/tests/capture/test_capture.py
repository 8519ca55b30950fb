"""Captures with invented agents: what is asked of hosts, what is written, and what is said when one is lost."""

import base64
import json
import re

import jsonschema
import pytest
from helpers.schemas import conforms
from helpers.support import PIPE_SCHEMA, ROOT

from framegauge.agents.pipe import Requests
from framegauge.capture import files, signs, terminal
from framegauge.capture.open import Member, opened
from framegauge.capture.run import Asked, capture
from framegauge.capture.schema import json_schema
from framegauge.cli.main import main
from framegauge.diagnose import folders
from framegauge.errors import AgentError, AgentLost, FolderNotEmpty, InputError
from framegauge.testbeds.base import Host

BYTES = b"capture " * 200_000  # two pieces
INFO = dict.fromkeys(PIPE_SCHEMA["$defs"]["tcp_info"]["required"], 0)  # fmt: skip


def trouble(ago_seconds=0.25):
    return {
        "ago_seconds": ago_seconds, "signs": {"timeouts": {"TcpExtTCPTimeouts": 2}},
        "connections": [{"local": "10.0.0.1:80", "remote": "10.0.0.2:4000"}],
    }  # fmt: skip


class Invented(Requests):
    """An agent whose capture sees trouble at a look, is lost at one, or neither."""

    def __init__(self, ssh=None, trouble_at=None, lost_at=None, refuses=None):
        self.ssh, self.trouble_at, self.lost_at, self.refuses = ssh, trouble_at, lost_at, refuses
        self.asked, self.looks = {}, 0

    def begin(self, method, params=None, on_progress=None):
        self.asked.setdefault(method, []).append(dict(params))
        return Answered(lambda: self.answer(method, params))

    def answer(self, method, params):
        if method == "capture.about":
            return {
                "interfaces": [],
                "ssh": self.ssh and dict(zip(("client", "server"), self.ssh, strict=True)),
                "folder": "/tmp",
                "free_bytes": 1,
            }
        if method == "capture.begin":
            if self.refuses:
                raise AgentError(-32006, self.refuses, {"what": self.refuses})
            return {"interfaces": ["eth0"]}
        if method == "capture.state":
            self.looks += 1
            if self.looks == self.lost_at:
                raise AgentLost("the agent was lost")
            seen = trouble() if self.trouble_at is not None and self.looks >= self.trouble_at else None
            return {
                "seconds": 1.0, "packets": 5, "wire_bytes": 9, "dropped_packets": 0, "kept_bytes": 7,
                "cpu_seconds": 0.1, "trouble": seen,
            }  # fmt: skip
        if method == "spool.read":
            start = params["offset_bytes"]
            data = BYTES[start : start + params["length_bytes"]]
            return {"data": base64.b64encode(data).decode(), "size_bytes": len(BYTES)}
        if method == "capture.end":
            return {
                "spool": 4, "begin_seconds": 1.0, "end_seconds": 4.0, "seconds": 3.0, "packets": 1000,
                "wire_bytes": 2_000_000, "dropped_packets": 3, "kept_packets": 900, "given_up_packets": 60,
                "cut_packets": 40, "cpu_seconds": 0.0005, "watch_cpu_seconds": 0.001,
                "interfaces": [{"interface": "eth0", "packets": 1003, "dropped_packets": 3}],
                "counters_before": {"TcpOutSegs": 1}, "counters_after": {"TcpOutSegs": 5},
                "connections": [{"local": "a", "remote": "b", "ended": True, "before": None, "after": INFO}],
                "more_connections": 0, "lost_ends": 0, "trouble": None,
            }  # fmt: skip
        return {}


class Answered:
    def __init__(self, answer):
        self._answer = answer

    def result(self, timeout_seconds=None):
        return self._answer()

    def cancel(self):
        pass


class Clock:
    """A clock that only pauses move; the pause of some number is interrupted."""

    def __init__(self, interrupted=None):
        self.now, self.pauses, self.interrupted = 100.0, 0, interrupted

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.pauses += 1
        if self.pauses == self.interrupted:
            raise KeyboardInterrupt
        self.now += seconds


def captured(agents, asked, folder, clock=None):
    said, clock = [], clock or Clock()
    members = [Member(Host(name, "", agent), ()) for name, agent in agents.items()]
    return capture(members, asked, folder, said.append, clock, clock.pause), said


def test_both_hosts_are_asked_and_what_they_kept_is_written(tmp_path):
    agents = {"h1": Invented(), "netns:h2": Invented()}
    asked = Asked(seconds=5.0, interfaces=("eth0",), ports=(80,), snap_bytes=128, most_bytes=1 << 22)
    found, said = captured(agents, asked, tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "h1.json",
        "h1.pcapng",
        "h2.json",
        "h2.pcapng",
    ]
    assert (tmp_path / "new/h2.pcapng").read_bytes() == BYTES
    document = json.loads((tmp_path / "new/h2.json").read_text())
    conforms(document, json_schema())
    assert (document["host"], document["file"], document["snap_bytes"]) == ("netns:h2", "h2.pcapng", 128)
    assert "spool" not in document
    assert document["connections"][0]["after"] == INFO
    (begun,) = agents["h1"].asked["capture.begin"]
    assert begun == {
        "host": "h1", "interfaces": ["eth0"], "ports": [80], "left_out": [], "snap_bytes": 128,
        "most_bytes": 1 << 22, "signs": {}, "sudo": True,
    }  # fmt: skip
    assert agents["h1"].asked["capture.end"] == [{"last_seconds": None}]
    assert agents["h1"].asked["spool.drop"] == [{"spool": 4}]
    assert agents["h1"].looks == 5
    assert [line for line in said if line.startswith(("2 s: ", "4 s: "))] == [
        f"{seconds} s: h1 5 packets, 0.0 MB kept; netns:h2 5 packets, 0.0 MB kept" for seconds in (2, 4)
    ]
    assert not found.lost
    assert found.trouble is None
    text = "\n".join(terminal.lines(found))
    assert "900 packets of h1 in 3.0 s, of 1,000 (2 MB on the wire)" in text
    assert "500 ns a packet" in text
    assert "dropped at the tap for want of room: 3 on eth0" in text
    assert "the oldest 60 packets gave way" in text
    assert terminal.document(found)["hosts"][0]["given_up_packets"] == 60


def test_the_schema_of_a_hosts_document_is_printed_and_its_page_has_all_of_it(capsys):
    assert main(["schema", "capture"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == json_schema()
    page = (ROOT / "docs/reference/capture.md").read_text().partition("## Files")[2]
    named = [name for row in re.findall(r"^\| (`.+?) \| ", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(schema["properties"])
    assert all("description" in shape for name, shape in schema["properties"].items() if name != "schema")
    assert set(schema["$defs"]) == {"tcp_info", "trouble"}


@pytest.mark.parametrize(
    ("key", "wrong"),
    [("schema", 2), ("kept_packets", -1), ("connections", [{}]), ("trouble", {"signs": {}}), ("spool", 4)],
)
def test_another_document_is_not_as_the_schema_says(tmp_path, key, wrong):
    captured({"h1": Invented()}, Asked(seconds=1.0), tmp_path / "new")
    document = json.loads((tmp_path / "new/h1.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        conforms({**document, key: wrong}, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        conforms({name: value for name, value in document.items() if name != "lost_ends"}, json_schema())


def test_the_ssh_connections_are_left_out_unless_they_are_wanted(tmp_path):
    one, two = ["192.0.2.1:50000", "192.0.2.8:22"], ["192.0.2.1:50001", "192.0.2.9:22"]
    for with_ssh in (False, True):
        agents = {"local": Invented(), "far": Invented(ssh=one), "farther": Invented(ssh=two)}
        captured(agents, Asked(seconds=1.0, with_ssh=with_ssh), tmp_path / str(with_ssh))
        wanted = {"local": [one, two], "far": [one], "farther": [two]}
        for name, agent in agents.items():
            assert agent.asked["capture.begin"][0]["left_out"] == ([] if with_ssh else wanted[name])


def test_it_ends_some_time_after_trouble_and_keeps_the_time_around(tmp_path):
    agents = {"h1": Invented(), "h2": Invented(trouble_at=3)}
    asked = Asked(seconds=60.0, signs={"timeouts": 1}, before_seconds=10.0, after_seconds=2.0)
    found, said = captured(agents, asked, tmp_path)
    assert found.trouble == "h2"
    line = "h2: trouble: retransmission timeouts (TcpExtTCPTimeouts +2); of 10.0.0.1:80 to 10.0.0.2:4000"
    assert line in said
    # Seen 3 s after the beginning, it came 0.25 s before; 2 s after that it ends.
    assert agents["h1"].asked["capture.end"] == agents["h2"].asked["capture.end"] == [{"last_seconds": 12.0}]
    assert agents["h1"].asked["capture.begin"][0]["signs"] == {"timeouts": 1}


def test_without_trouble_it_ends_with_the_longest_wait(tmp_path):
    found, _ = captured({"h1": Invented()}, Asked(seconds=3.0, signs={"timeouts": 1}), tmp_path)
    assert found.trouble is None
    assert found.hosts


def test_ctrl_c_keeps_what_was_captured(tmp_path):
    agents = {"h1": Invented()}
    found, said = captured(agents, Asked(seconds=None), tmp_path, Clock(interrupted=4))
    assert found.interrupted
    assert agents["h1"].looks == 3
    assert (tmp_path / "h1.pcapng").read_bytes() == BYTES
    assert "interrupted: keeping what was captured" in said


def test_a_host_that_is_lost_takes_no_other_with_it(tmp_path):
    found, _ = captured({"h1": Invented(lost_at=2), "h2": Invented()}, Asked(seconds=5.0), tmp_path)
    assert found.lost == {"h1": "the agent was lost"}
    assert list(found.hosts) == ["h2"]
    assert not (tmp_path / "h1.pcapng").exists()


def test_a_host_that_refuses_is_named_at_once_and_the_others_begin(tmp_path):
    why = "found no interface eth9, expected one of lo"
    found, said = captured({"h1": Invented(), "h2": Invented(refuses=why)}, Asked(seconds=5.0), tmp_path)
    assert (list(found.hosts), found.lost) == (["h1"], {"h2": f"h2: {why} (agent error -32006)"})
    assert f"{found.lost['h2']}; the others go on" in said
    agents = {name: Invented(refuses=why) for name in ("h1", "h2")}
    with pytest.raises(InputError, match=f"h1: {why}.*\nh2: {why}"):
        captured(agents, Asked(seconds=5.0), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_names_of_files_are_short_and_never_the_same():
    assert files.names(["netns:a", "rack:h1", "db1.example.net", "local"]) == {
        "netns:a": "a", "rack:h1": "h1", "db1.example.net": "db1.example.net", "local": "local",
    }  # fmt: skip
    assert files.names(["netns:a", "rack:a", "a"]) == {"netns:a": "netns-a", "rack:a": "rack-a", "a": "a"}
    assert list(files.names(["../../x", "-rf", "...", "a/b", "a:b"]).values()) == ["x", "rf", "host", "a-b", "a-b-2"]


def test_a_folder_must_be_empty_or_new(tmp_path):
    assert files.choose_folder(tmp_path / "new", 0.0) == tmp_path / "new"
    assert files.choose_folder(tmp_path, 0.0) == tmp_path
    assert re.fullmatch(r"capture-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", files.choose_folder(None, 1e9).name)
    (tmp_path / "file").touch()
    with pytest.raises(FolderNotEmpty, match="found files in"):
        files.choose_folder(tmp_path, 0.0)
    for wrong in (tmp_path / "file", tmp_path / "no/folder"):
        with pytest.raises(InputError, match="expected"):
            files.choose_folder(wrong, 0.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "found neither --for nor --until-trouble, expected one"),
        (["--for", "30"], '--for: found "30", expected'),
        (["--for", "0 s"], '--for: found "0 s", expected 0.1 s to 2400 h'),
        (["--for", "1s", "--snaplen", "20"], '--snaplen: found "20", expected 64 B to 256 KiB'),
        (["--for", "1s", "--most", "2TB"], "--most: found"),
        (["--for", "1s", "--port", "http"], '--port: found "http", expected a number from 1 to 65535'),
        (["--for", "1s", *["--port", "1"] * 65], "--port: found 65 ports, expected at most 64"),
        (["--for", "1s", "--sign", "timeouts"], "--sign: found no --until-trouble, expected both"),
        (["--until-trouble", "--sign", "slowness"], '--sign: found "slowness", expected one of timeouts, '),
        (["--until-trouble", "--sign", "timeouts=0"], '--sign timeouts: found "0", expected a number'),
        (["--for", "1s"], "capture: found no host, expected local, netns:NAME, rack:NAME"),
        (["--for", "1s", "local%"], "capture: found 'local%', expected HOST or HOST%INTERFACE"),
        pytest.param(
            ["--for", "1s", "netns:no-such"], "netns:no-such: found no such network namespace", marks=pytest.mark.agent
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_line(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["capture", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_misspelt_option_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["capture", "local", "--untill-trouble"])
    assert ended.value.code == 2
    assert "did you mean '--until-trouble'?" in capsys.readouterr().err


def test_hosts_of_a_rack_need_one(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("FRAMEGAUGE_RACK", str(tmp_path / "rack.json"))
    with pytest.raises(InputError, match="found no"), opened(["rack:h9"], [], lambda _: None):
        pass


def test_the_signs_are_those_of_the_agent_and_of_the_pages():
    source = (ROOT / "crates/metering/src/trouble.rs").read_text()
    table = source.partition("pub const SIGNS")[2].partition("];")[0]
    constants = dict(re.findall(r'pub const (\w+): &str = "(\w+)";', source))
    found = re.findall(r"\b(sign|unusual)\(\s*(?:\"(\w+)\"|(\w+))", table)
    names = [quoted or constants[constant] for _, quoted, constant in found]
    assert names == list(signs.SIGNS)
    assert [name for (kind, *_), name in zip(found, names, strict=True) if kind == "unusual"] == list(signs.UNUSUAL)
    page = (ROOT / "docs/reference/capture.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE)
    assert [name for name, _ in rows if name in signs.SIGNS] == list(signs.SIGNS)
    counters = set(re.findall(r'"((?:Tcp|Icmp|Ip)\w+)"', table))
    assert counters <= set(re.findall(r"`(\w+)`", page))


def test_a_folder_stands_for_all_captures_in_it(tmp_path):
    for name in ("b.pcapng", "a.pcap.gz", "a.json", ".c.pcap", "d.cap", "e.pcapng.new"):
        (tmp_path / name).touch()
    (tmp_path / "f.pcap").mkdir()
    names = [path.name for path in folders.captures([tmp_path, tmp_path / "a.json"])]
    assert names == ["a.pcap.gz", "b.pcapng", "d.cap", "a.json"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="found no capture in this folder"):
        folders.captures([tmp_path / "empty"])
