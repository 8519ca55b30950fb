"""A Dask cluster that the user has, on which agents run what needs neither root nor this machine's network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from framegauge.agents import remote
from framegauge.agents.binary import find_agent
from framegauge.errors import AgentFailure, InputError
from framegauge.printable import one_line

__all__ = ["DASK", "LOCAL", "agent", "connected", "result"]

LOCAL = "local"
DASK = "dask://"
CONNECT_SECONDS = 10


@contextmanager
def connected(text: str) -> Iterator[Any]:
    """The client of the cluster of `--engine dask://HOST:PORT`, the address of its scheduler.

    InputError if it is no such engine, Dask is not installed, or nobody answers there.
    """
    if not text.startswith(DASK) or not text.removeprefix(DASK):
        raise InputError(f'--engine: found "{text}", expected {LOCAL} or {DASK}HOST:PORT')
    try:
        import cloudpickle
        import distributed
    except ImportError as missing:
        raise InputError(
            f"--engine {text}: found no {missing.name}, expected it: pip install 'framegauge[dask]'"
        ) from None
    try:
        client = distributed.Client(f"tcp://{text.removeprefix(DASK)}", timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(
            f"--engine {text}: found no scheduler that answers ({one_line(problem, 120)}), expected HOST:PORT of one"
        ) from None
    # By value, so that workers need no framegauge of the same version, nor any.
    cloudpickle.register_pickle_by_value(remote)
    try:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"--engine {text}: found a scheduler without workers, expected at least one")
        yield client
    finally:
        cloudpickle.unregister_pickle_by_value(remote)
        client.close()


def agent(client: Any) -> Any:
    """The agent's binary, on the workers that need it.

    It is the result of a task, and not scattered: if the workers that have it die, the scheduler runs the task again.
    """
    return client.submit(remote.same, Path(find_agent()).read_bytes(), pure=False)


def result(future: Any, about: str) -> Any:
    """What a worker answered; AgentFailure for whatever a cluster may raise, `about` what it was to do."""
    from concurrent.futures import CancelledError

    try:
        return future.result()
    except (Exception, CancelledError) as problem:
        raise AgentFailure(
            f"{about}: the cluster failed ({type(problem).__name__}: {one_line(problem, 200)})"
        ) from None
