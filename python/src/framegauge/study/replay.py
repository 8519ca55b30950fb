"""The parameters of the workload `replay`: what was recorded is simulated again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictStr, ValidationInfo, model_validator

from framegauge.errors import StudyError
from framegauge.files import recordings
from framegauge.files.recordings import Recording
from framegauge.files.types import OneOrMore, Problem, Seconds
from framegauge.study.parameters import grid
from framegauge.study.traffic import MOST_FLOWS, Counts, Traffic

__all__ = ["Replay"]

Speed = Annotated[float, Field(ge=0.001, le=1000)]
Speeds = OneOrMore[Speed]


class Replay(Traffic):
    """The flows of a CSV file, each at its recorded start divided by `speed`, or when those of `after` have ended.

    `ends: spread` puts recorded ends that have names of hosts on these, and the others on hosts in turn;
    `as-recorded` accepts names of hosts alone. With `copies`, so many groups of hosts play the recording side by side,
    each but the first later by up to `shift`. `sha256` is filled in when the file is read: another file of that name
    is refused. A path is relative to the study file; with a `sha256`, to the working folder if nothing is there.
    """

    key: ClassVar[str] = "replay"

    flows: Annotated[StrictStr, Field(min_length=1)]
    ends: Literal["spread", "as-recorded"] = "spread"
    copies: Counts = [1]
    speed: Speeds = [1.0]
    shift: Seconds = 0.0
    sha256: Annotated[StrictStr, Field(pattern="^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Replay:
        if self.ends == "as-recorded" and max(self.copies) > 1:
            raise Problem(("ends",), self.ends, "spread with copies: the names are those of one group")
        if self.shift and max(self.copies) == 1:
            raise Problem(("shift",), f"{self.shift:g} s", "0 s without copies: it is between these")
        context = info.context or {}
        path = Path(context.get("folder", ".")) / self.flows
        path = context.get("kept", {}).get(str(path), path)
        # What is resolved already is read when it is simulated: results stand without the file.
        if self.sha256 is not None:
            self.flows = str(path) if path.exists() else self.flows
        else:
            try:
                recording = recordings.read(path)
            except StudyError as error:
                raise ValueError(error.problems[0]) from None
            self.flows, self.sha256 = str(path), recording.sha256
        return self

    def recording(self) -> Recording:
        """What is replayed; StudyError if it is not what it was when the study was read."""
        recording = recordings.read(Path(self.flows))
        if recording.sha256 != self.sha256:
            raise StudyError([f"{self.flows}: found other flows than before, expected sha256 {self.sha256}"])
        return recording

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of copies and speeds."""
        fixed = {
            "recording": Path(self.flows).stem, "ends": self.ends, "shift_seconds": self.shift,
            "sample_seconds": self.sample,
        }  # fmt: skip
        return grid({"copies": self.copies, "speed": self.speed}, fixed)

    def needed_hosts(self) -> tuple[int, str]:
        """Two for each copy."""
        return 2 * max(self.copies), "copies" if max(self.copies) > 1 else ""

    def misfits(self, hosts: list[str]) -> Iterator[Problem]:
        """Problems with flows and ends; their paths are relative to these parameters. None if the file has gone since
        it was read."""
        try:
            recording = self.recording()
        except StudyError:
            return
        if (count := len(recording.flows) * max(self.copies)) > MOST_FLOWS:
            yield Problem(("copies",), f"{count} flows", f"at most {MOST_FLOWS} in all copies")
        host_names = set(hosts)
        strange = [name for name in recording.names if name not in host_names]
        if self.ends == "as-recorded" and strange:
            expected = f"hosts of the study ({hosts[0]} to {hosts[-1]}) as ends of all flows, or ends: spread"
            yield Problem(("ends",), strange[0], expected)
