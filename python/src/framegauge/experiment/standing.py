"""The hosts of a study from run to run: fresh for each, or kept where servers or data of a workload outlast one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, Protocol, runtime_checkable

from framegauge.errors import AgentFailure
from framegauge.testbeds.base import Conditions, Host, Json, Testbed
from framegauge.workloads.base import Runnable

__all__ = ["Lasting", "Standing"]


@runtime_checkable
class Lasting(Protocol):
    """A workload that may have a part which outlasts a run."""

    @property
    def lasts(self) -> bool:
        """Whether it has."""
        ...

    def lasting_key(self, hosts: Sequence[Host]) -> Hashable:
        """What that part is like: runs with equal keys can share it."""
        ...

    def lasting(self, hosts: Sequence[Host]) -> AbstractContextManager[Any]:
        """Starts that part; ended when the block is left."""
        ...

    def beside(self, lasting: Any, runs: int) -> Runnable:
        """The workload with that part, which this many runs have used before."""
        ...


class Standing:
    """What stands between two runs. One that fails, or does not prove its conditions, leaves nothing to the next."""

    def __init__(self, bed: Testbed) -> None:
        self._bed, self._stack = bed, ExitStack()
        self._name: str | None = None  # of the workload whose hosts are up
        self._what: Hashable = None
        self._hosts: Sequence[Host] = ()
        self._part: Any = None
        self._runs, self._stays, self._is_up = 0, False, False
        self.is_kept = False  # the hosts that are up had a run before

    def up(self, conditions: Conditions, workload: Runnable) -> Json:
        """The hosts under these conditions, as `Testbed.up`: those of the run before if they can stay."""
        if self._name is not None and self._name == workload.name:
            built = self._bed.again(conditions)
            if built is not None:
                self.is_kept = True
                return built
        self.end()
        self.is_kept = False
        self._is_up = True
        return self._bed.up(conditions)

    def ready(self, workload: Runnable, hosts: Sequence[Host]) -> Runnable:
        """The workload with the part that outlasts runs, which is started unless it stands already."""
        if not isinstance(workload, Lasting) or not workload.lasts:
            return workload
        # A host that was reached anew has lost what ran there.
        same = [host.agent for host in hosts] == [host.agent for host in self._hosts]
        key = workload.lasting_key(hosts)
        if self._part is None or not same or key != self._what:
            self._close()
            self._part, self._runs = self._stack.enter_context(workload.lasting(hosts)), 0
            self._what, self._hosts = key, hosts
        self._name = workload.name
        self._runs += 1
        return workload.beside(self._part, self._runs - 1)

    def stay(self) -> None:
        """The run went well: its hosts may be those of the next."""
        self._stays = self._part is not None

    def settle(self) -> None:
        """After a run: takes the hosts down, unless they may stay."""
        stays, self._stays = self._stays, False
        if not stays:
            self.end()

    def end(self) -> None:
        """Ends everything that is up."""
        self._name = None
        self._close()
        was, self._is_up = self._is_up, False
        if was:
            self._bed.down()

    def _close(self) -> None:
        stack, self._stack, self._part = self._stack, ExitStack(), None
        with suppress(AgentFailure):  # whatever ran on hosts whose agent is lost, or that are down, has ended
            stack.close()
