"""What pyproject.toml cannot say: a wheel carries the documentation and the examples, and may carry the agent, the
library beside it and the manual pages.

FRAMEGAUGE_WHEEL_AGENT names the agent (`make wheel` does); without it the wheel is pure Python, as an editable
installation is, and the agent has to be found elsewhere.

The tag of the wheel follows from the binary itself. A static program needs nothing of the system but its kernel, and
the library needs no other and no version of a symbol, so they keep what both families of tags promise: manylinux2014
(glibc 2.17 or newer) and musllinux_1_1 (Alpine). pip and pipx take it on any Linux of that machine's kind; plain
linux_x86_64 would be as true, but no index takes it.
"""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

NAMED = os.environ.get("FRAMEGAUGE_WHEEL_AGENT")
PLACE = Path("framegauge/agents/bin/framegauge-agent")  # where agents/binary.py looks
SHIPPED = Path("framegauge/shipped")  # where shipped/places.py looks
FOLDERS = ("docs", "examples", "published")
NODELAY = "libframegauge_nodelay.so"  # beside the agent, here and there
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of an ELF header
INTERPRETER = 3  # p_type of the segment that names a dynamic loader


def machine(agent: Path) -> str:
    """The kind of machine that an agent runs on; SetupError if it is no static Linux program, or has no library."""
    data = agent.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise SetupError(f"FRAMEGAUGE_WHEEL_AGENT: found {agent}, expected a 64-bit little-endian ELF program")
    kind, (headers,) = struct.unpack_from("<H", data, 18)[0], struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    if any(struct.unpack_from("<I", data, headers + size * index)[0] == INTERPRETER for index in range(count)):
        raise SetupError(f"FRAMEGAUGE_WHEEL_AGENT: found {agent}, which is linked dynamically, expected a static one")
    if kind not in MACHINES:
        raise SetupError(f"FRAMEGAUGE_WHEEL_AGENT: found ELF machine {kind}, expected {', '.join(MACHINES.values())}")
    library = agent.with_name(NODELAY)
    if not library.exists() or struct.unpack_from("<H", library.read_bytes(), 18)[0] != kind:
        raise SetupError(f"FRAMEGAUGE_WHEEL_AGENT: found no {library} for {MACHINES[kind]}, expected it: make agent")
    return MACHINES[kind]


class BuildWhole(build_py):
    """Adds the documentation and the examples to the package, and the agent and its library."""

    def run(self) -> None:
        """As without them, and then those. An editable installation reads them where they are."""
        super().run()
        for name in () if self.editable_mode else FOLDERS:
            target = Path(self.build_lib, SHIPPED, name)
            shutil.rmtree(target, ignore_errors=True)  # of an earlier build, with pages that are gone
            shutil.copytree(name, target)
        if NAMED and not self.editable_mode:
            machine(Path(NAMED))  # what is missing is told in its words
            target = Path(self.build_lib, PLACE)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(NAMED, target)
            target.chmod(0o755)
            shutil.copyfile(Path(NAMED).with_name(NODELAY), target.with_name(NODELAY))


class WithAgent(Distribution):
    """With an agent it is no package for any machine."""

    def has_ext_modules(self) -> bool:
        """Whether it goes where programs of one kind of machine go."""
        return bool(NAMED)


class TaggedWheel(bdist_wheel):
    """Names the machine that the agent is for."""

    def get_tag(self) -> tuple[str, str, str]:
        """Any Python 3, and one kind of machine."""
        if not NAMED:
            return super().get_tag()
        kind = machine(Path(NAMED))
        return "py3", "none", f"manylinux2014_{kind}.manylinux_2_17_{kind}.musllinux_1_1_{kind}"


setup(
    distclass=WithAgent,
    cmdclass={"build_py": BuildWhole, "bdist_wheel": TaggedWheel},
    data_files=[("share/man/man1", sorted(map(str, Path("build/man").glob("*.1"))))],
)
