"""Results of tools that are not compared: one line that names the tool, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from framegauge.cli import main as cli
from framegauge.compare.formats import others
from framegauge.compare.sources import read_side
from framegauge.errors import InputError

# As these tools print them.
HEADS = {
    "netperf": "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 AF_INET : demo\n"
               "Recv   Send    Send\nSocket Socket  Message  Elapsed\n",
    "qperf": "tcp_bw:\n    bw  =  1.17 GB/sec\ntcp_lat:\n    latency  =  11.5 us\n",
    "iperf3 without -J": "Connecting to host 10.0.0.2, port 5201\n[  5] local 10.0.0.1 port 43210 connected to 10.0.0.2\n",
    "iperf 2": "------------------------------------------------------------\nClient connecting to 10.0.0.2, TCP port 5001\n",
    "sockperf": "sockperf: == version #3.7-no.git == \nsockperf[CLIENT] send on:\n",
    "nuttcp": " 1122.3125 MB /  10.00 sec =  941.2712 Mbps 5 %TX 9 %RX 0 retrans 0.21 msRTT\n",
    "fio": '{\n  "fio version" : "fio-3.33",\n  "jobs" : []\n}\n',
    "ping": "PING 10.0.0.2 (10.0.0.2) 8972(9000) bytes of data.\n",
}  # fmt: skip
SAID = [(name, text, ".json" if text.startswith("{") else ".txt") for name, text in HEADS.items()]


@pytest.mark.parametrize(("name", "text", "ending"), SAID, ids=list(HEADS))
def test_files_of_another_tool_are_called_by_its_name(name: str, text: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / f"r1{ending}").write_text(text)
    if ending == ".json":  # a file of runs, so that it is an excluded run
        [sample] = read_side(str(tmp_path)).samples
        reasons = list(sample.excluded)
    else:
        with pytest.raises(InputError) as error:
            read_side(str(tmp_path))
        reasons = [str(error.value)]
        assert "expected a results folder, files of iperf3 -J (*.json) or of flent" in reasons[0]
    assert len(reasons) == 1
    assert f"found results of {name}" in reasons[0]
    assert "\n" not in reasons[0]


def test_one_file_of_another_tool_says_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "before.txt").write_text(HEADS["netperf"])
    assert cli.main(["compare", str(tmp_path / "before.txt"), str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "found a file of netperf (before.txt), expected a folder of them" in said
    assert "flent runs it" in said


@pytest.mark.parametrize("text", ["", "bandwidth,1\n940,2\n", "Accept: TEST to see\n", '{"start": {}, "end": {}}'])
def test_what_is_not_known_has_no_name(text: str) -> None:
    assert others.tool(text.encode()) is None
