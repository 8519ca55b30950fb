"""What several test modules use."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

STUDY = """\
question: Does it work?
testbed: {kind: fake}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - stream: {size: 10 MB}
blocks: 6
margins: {goodput: 1 %, completion_time: 2 %}
"""


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True
