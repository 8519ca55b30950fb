"""Hosts with an ssh server each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import sshd
from helpers.sshd import Site


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with sshd.site(tmp_path_factory.mktemp("site"), ["alpha", "beta"]) as found:
        yield found


@pytest.fixture(scope="module")
def roomy() -> Iterator[Path]:
    """A folder that every user may walk through."""
    folder = Path(tempfile.mkdtemp(prefix="framegauge-test.", dir="/run"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
