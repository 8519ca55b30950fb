"""Reading and writing a study file (`files.yaml` reports what is wrong with one)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from framegauge.errors import StudyError
from framegauge.files import inventory, yaml as yaml_file
from framegauge.files.distributions import Beside
from framegauge.files.machines import Machine
from framegauge.study.model import Study

__all__ = ["dump", "json_schema", "keys", "load", "load_preset", "parse", "presets"]

FIRST = "demo"
Alter = Callable[[dict[str, Any]], None]


def _as_it_is(_: dict[str, Any]) -> None:
    pass


def load(path: str | Path, running: Callable[[str], None] | None = None, alter: Alter = _as_it_is) -> Study:
    """The study in a YAML file; StudyError lists all problems, and is raised for an unreadable file, too.

    Its inventory may be a program only with `running`, which is told before it is run (`inventory.load`). `alter`
    changes its values before they are validated.
    """
    folder = Path(path).parent

    def hosts(name: str, group: str) -> list[Machine]:
        return inventory.load(folder / name, group, running)

    text = yaml_file.read(path, "a study file")
    context = {"hosts": hosts, "beside": Beside(folder).read, "folder": folder}
    return yaml_file.parse(text, str(path), Study, "study", context=context, alter=alter)


def keys(path: str | Path) -> set[str]:
    """The keys that a study file has; StudyError as for `load`."""
    return yaml_file.keys(yaml_file.read(path, "a study file"), str(path))


def presets() -> list[str]:
    """Names of the studies that come with framegauge; first the one that a newcomer wants."""
    folder = resources.files("framegauge") / "presets"
    names = (item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))
    return sorted(names, key=lambda name: (name != FIRST, name))


def load_preset(name: str) -> Study:
    """One of `presets()`; StudyError lists them if there is no such preset."""
    if name not in presets():
        raise StudyError([f'--preset: found "{name}", expected one of {", ".join(presets())}'])
    text = (resources.files("framegauge") / "presets" / f"{name}.yaml").read_text("utf-8")
    return parse(text, f"preset {name}")


def parse(text: str, name: str, alter: Alter = _as_it_is, beside: Beside | None = None) -> Study:
    """The study in `text`; `name` stands for the file in messages. `alter` is as for `load`. `beside` has the files
    that it names, by default those beside a file of that name.
    """
    beside = beside or Beside(Path(name).parent)
    context = {"beside": beside.read, "folder": beside.folder, "kept": beside.kept}
    return yaml_file.parse(text, name, Study, "study", context=context, alter=alter)


def dump(study: Study) -> str:
    """The resolved study as YAML: every default written out; `parse` gives the same study again."""
    return yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def json_schema() -> Mapping[str, Any]:
    """JSON Schema (2020-12) of a study file, for editors."""
    return yaml_file.json_schema(Study, "study")
