"""Hadoop for the tests: where it is, and a study that is as small as one can be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.support import NotRun

from framegauge.apps import store
from framegauge.errors import FramegaugeError

SMALL = """\
treatment: nagle
question: Does a run leave something to the next?
testbed: {kind: rack, topology: rack, hosts: 3, link: {rate: 200 Mb/s}}
factors:
  mtu: 1500
  nagle: {levels: [off, on], baseline: off}
workloads:
  - mapreduce: {job: terasort, size: 10 MB}
control: false
blocks: 2
retries: 0
"""


@pytest.fixture(scope="module")
def hadoop() -> Path:
    """Its folder. CI fetches it; others have it or not."""
    app = store.named("hadoop")
    if not store.installed(app) and os.environ.get("CI") != "true":
        NotRun().stop(f"{app.full_name} is not there: framegauge apps fetch {app.name}")
    try:
        return store.fetch(app, lambda _: None)
    except FramegaugeError as error:
        NotRun().stop(str(error))
