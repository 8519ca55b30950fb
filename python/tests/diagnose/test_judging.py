"""What has to be found in a staged run follows from what its kernel did."""

from __future__ import annotations

import pytest
from helpers.support import bench

judging, run, staging = (bench(f"diagnosis.{name}") for name in ("judging", "run", "staging"))


@pytest.mark.parametrize(
    ("counters", "wanted", "allowed"),
    [
        ({"TCPTimeouts": 1}, "rto_stall", False),
        ({"TCPTimeouts": 1, "TCPLossProbes": 1}, "rto_stall", False),
        ({"TCPLossProbes": 1, "TCPSackRecovery": 1}, "tail_loss", True),
        ({"TCPTimeouts": 1, "TCPLossProbes": 1, "TCPSackRecovery": 1}, "rto_stall", True),
    ],
)
def test_a_timer_that_never_ran_out_is_not_to_be_named(counters: dict[str, int], wanted: str, allowed: bool) -> None:
    scene = next(scene for scene in staging.SCENES if scene.name == "lost flight")
    sender = {"counters": {"RetransSegs": 5, **counters}, "sockets": []}
    ran = run.Ran(sender, {"counters": {}, "sockets": []}, [], 0.0, 100)
    must, may = judging.true(scene, scene.variant(1), ran, "sender", [1.0])
    assert must == {wanted}
    assert ("tail_loss" in may) is allowed


@pytest.mark.parametrize(("again", "allowed"), [(94752, True), (35532, False), (None, False)])
def test_a_probe_that_the_wire_lost_as_well_was_of_a_lost_tail(again: int | None, allowed: bool) -> None:
    scene = next(scene for scene in staging.SCENES if scene.name == "falling path MTU")
    lost = [(35532, False), (94752, False), *([] if again is None else [(again, True)])]
    log = [{"what": "lost", "forth": True, "begin": begin, "again": is_again} for begin, is_again in lost]
    counters = {"TCPTimeouts": 6, "TCPLossProbes": 1, "RetransSegs": 63}
    ran = run.Ran({"counters": counters, "sockets": []}, {"counters": {}, "sockets": []}, log, 0.0, 100)
    _, may = judging.true(scene, scene.variant(61), ran, "sender", [4.7])
    assert ("tail_loss" in may) is allowed


@pytest.mark.parametrize(("resent", "wanted"), [(2, False), (3, True)])
def test_a_syn_that_was_sent_again_is_no_needless_repeat_of_data(resent: int, wanted: bool) -> None:
    scene = next(scene for scene in staging.SCENES if scene.name == "overtaken by many")
    sender = {"counters": {"RetransSegs": resent, "TCPSynRetrans": 2, "TCPSACKReorder": 1}, "sockets": []}
    ran = run.Ran(sender, {"counters": {"TCPOFOQueue": 1}, "sockets": []}, [], 0.0, 100)
    must, _ = judging.true(scene, scene.variant(2), ran, "sender", [0.2])
    assert ("spurious_retransmit" in must) is wanted
