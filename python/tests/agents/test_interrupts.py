"""A signal's exception at any moment of a wait leaves nobody waiting for ever.

Each program raises it after ever other delays, in a process of its own, which is killed if it hangs.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from helpers.support import PATIENCE_SECONDS

BEGINNING = """
import faulthandler, signal, threading
from framegauge.cli.interrupts import interruptible
faulthandler.dump_traceback_later(250, exit=True)
# And again: CPython 3.11 can forget that a signal came while it sums up what is pending, until the next one comes.
def soon(seconds): signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
"""
LOGINS = """
from framegauge.agents.ssh import Remote
from framegauge.errors import AgentLost
from framegauge.testbeds import listed, logins
def silent(remote, words, say, ending):
    ending.wait()
    raise AgentLost("given up")
logins.open_agent, logins.SAY_SECONDS = silent, 0.01
hosts = [Remote(f"h{number}", f"h{number}", ()) for number in range(70)]  # more than log in at a time
interrupted = 0
for step in range(60):
    try:
        with interruptible([signal.SIGALRM]):
            listed.ListedHosts(hosts, lambda _: soon((1 + step) * 7e-6))
    except KeyboardInterrupt:
        interrupted += 1
# And while they begin.
for step in range(60):
    try:
        with interruptible([signal.SIGALRM]):
            soon((1 + step) * 100e-6)
            listed.ListedHosts(hosts, lambda _: None)
    except KeyboardInterrupt:
        interrupted += 1
assert not [thread for thread in threading.enumerate() if thread.name == "login"], "logins go on"
print(interrupted)
"""
CALLS = """
from framegauge.agents.once import Once
interrupted = 0
for step in range(2000):
    once = Once()
    try:
        with interruptible([signal.SIGALRM]):
            soon((1 + step % 50) * 1e-6)
            while not once.wait(0.0):
                pass
    except KeyboardInterrupt:
        interrupted += 1
    setter = threading.Thread(target=once.set, daemon=True)
    setter.start()
    setter.join(20)
    assert once.wait(20), step
print(interrupted)
"""


DESTRUCTORS = """
import os, time, weakref
class Slow:
    def __del__(self): os.kill(os.getpid(), signal.SIGALRM); [None for _ in range(1000)]
def late(_): os.kill(os.getpid(), signal.SIGALRM); [None for _ in range(1000)]
interrupted = 0
for step in range(20):
    one = Slow()
    kept = weakref.ref(one, late) if step % 2 else None
    try:
        with interruptible([signal.SIGALRM]):
            del one
            time.sleep(20)
    except KeyboardInterrupt:
        interrupted += 1
print(interrupted)
"""


# A module of which a part was run is worse than none: one that is compiled fails, and not as interrupted.
HALVES = """
import builtins, pathlib, sys, tempfile
place = tempfile.TemporaryDirectory()
sys.path.insert(0, place.name)
module = "from builtins import seen; seen.append('begun'); {}; sum(range(300_000)); seen.append('done')"
pathlib.Path(place.name, "outer.py").write_text(module.format("import inner"))
pathlib.Path(place.name, "inner.py").write_text(module.format("pass"))
interrupted = 0
for step in range(40):
    builtins.seen = []
    for name in ("outer", "inner"):
        sys.modules.pop(name, None)
    try:
        with interruptible([signal.SIGALRM]):
            soon((1 + step) * 200e-6)
            import outer
            while True:
                pass
    except KeyboardInterrupt:
        interrupted += 1
    assert seen in ([], ["begun", "begun", "done", "done"]), (step, seen)
print(interrupted)
"""


# Other threads import, too, and a lock of the import system that is left held holds all of them.
IMPORTS = """
import importlib, sys
interrupted = 0
for step in range(60):
    try:
        with interruptible([signal.SIGALRM]):
            soon((1 + step % 40) * 2e-6)
            while True:
                for name in ("colorsys", "this_is_no_module"):
                    sys.modules.pop(name, None)
                    try:
                        importlib.import_module(name)
                    except ImportError:
                        pass
                sum(range(3_000_000))  # most of the time nothing is imported, and an interrupt that waits is raised
    except KeyboardInterrupt:
        interrupted += 1
    other = threading.Thread(target=importlib.import_module, args=["colorsys"], daemon=True)
    other.start()
    other.join(20)
    assert not other.is_alive(), step
print(interrupted)
"""


# Python looks at the second when its handler is no more, and would tell of that with a traceback.
TOGETHER = """
import os
both = [signal.SIGALRM, signal.SIGTERM]
interrupted = 0
for step in range(20):
    try:
        with interruptible(both):
            signal.pthread_sigmask(signal.SIG_BLOCK, both)
            for number in both:
                os.kill(os.getpid(), number)
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
                sum(range(1000))
            finally:
                sum(each for each in range(1000))
    except KeyboardInterrupt:
        interrupted += 1
print(interrupted)
"""


@pytest.mark.parametrize(
    ("program", "times"), [(LOGINS, 120), (CALLS, 2000), (DESTRUCTORS, 20), (IMPORTS, 60),
     (HALVES, 40), (TOGETHER, 20)],
    ids=["logins", "calls", "destructors", "imports", "halves", "together"],
)  # fmt: skip
def test_whoever_waits_may_be_interrupted_at_any_moment(program: str, times: int) -> None:
    command = [sys.executable, "-c", BEGINNING + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.stdout.split(), done.stderr) == ([str(times)], ""), done.stderr[-4000:]
