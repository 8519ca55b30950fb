"""Every promise of docs/why/threat-model.md has a test that is there."""

import re

import pytest
from helpers.support import ROOT

PAGE = (ROOT / "docs/why/threat-model.md").read_text()
ROWS = re.findall(r"^\| (?!promise |who |---)(.+?) \| `([^`]+)::(\w+)` \|$", PAGE, re.MULTILINE)


def test_the_page_has_its_promises() -> None:
    promised = PAGE.split("## What is promised")[1].split("## What is not promised")[0]
    lines = [
        line for line in promised.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "| -"))
    ]
    assert len(lines) == len(ROWS) > 20
    for section in re.split(r"^### ", promised, flags=re.MULTILINE)[1:]:
        assert "::" in section, section.splitlines()[0]


@pytest.mark.parametrize(("promise", "file", "name"), ROWS, ids=[name for *_, name in ROWS])
def test_a_promise_has_its_test(promise: str, file: str, name: str) -> None:
    assert re.search(rf"^\s*(pub )?(def|fn) {name}\b", (ROOT / file).read_text(), re.MULTILINE), promise
