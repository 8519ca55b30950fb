#!/usr/bin/env python3
"""Lists the files of an application that `framegauge apps fetch` gets: coordinates, SHA-256, size and licence.

Maven resolves the pinned roots below once, on the machine of whoever changes them; what it found is written into
python/src/framegauge/apps, and nothing else is ever fetched. Read the difference before it is committed.

    scripts/apps.py hadoop > python/src/framegauge/apps/hadoop.txt
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from framegauge.apps.catalogue import APPS
from framegauge.apps.maven import DEPENDENCY_PLUGIN, pom

POM = "{http://maven.apache.org/POM/4.0.0}"
HADOOP = (
    "hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client", "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager", "hadoop-yarn-server-timelineservice", "hadoop-yarn-client",
    "hadoop-mapreduce-client-app", "hadoop-mapreduce-client-jobclient", "hadoop-mapreduce-client-shuffle",
    "hadoop-mapreduce-client-hs", "hadoop-mapreduce-examples",
)  # fmt: skip
ROOTS = {"hadoop": [f"org.apache.hadoop:{name}:{APPS['hadoop'].version}" for name in HADOOP]}
# The words in the names of licences, as their owners write them, and the identifiers of SPDX.
LICENCES = {
    "apache": "Apache-2.0", "eclipse public": "EPL-1.0", "cddl": "CDDL-1.1 OR GPL-2.0 WITH Classpath-exception-2.0",
    "mit": "MIT", "bsd": "BSD-3-Clause", "go license": "BSD-3-Clause", "bouncy": "MIT", "edl": "BSD-3-Clause",
    "gpl2 w/ cpe": "CDDL-1.1 OR GPL-2.0 WITH Classpath-exception-2.0", "eclipse distribution": "BSD-3-Clause",
    "public domain": "public domain", "lgpl": "LGPL-2.1",
}  # fmt: skip
# Of files whose pom names none: what the project says of itself elsewhere.
UNNAMED = {
    "jsp-api": "CDDL-1.1 OR GPL-2.0 WITH Classpath-exception-2.0",
    "audience-annotations": "Apache-2.0",
}


def licence(repository: Path, group: str, artifact: str, version: str) -> str:
    """The licence that a file's pom names, or one of its parents."""
    if artifact in UNNAMED:
        return UNNAMED[artifact]
    root = ElementTree.parse(
        repository / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.pom"
    ).getroot()
    space = POM if root.tag.startswith("{") else ""
    names = [name.lower() for each in root.iter(f"{space}license") if (name := each.findtext(f"{space}name"))]
    found = [next((given for words, given in LICENCES.items() if words in name), name) for name in names]
    if found:
        return " OR ".join(dict.fromkeys(found))
    parent = root.find(f"{space}parent")
    if parent is None:
        raise SystemExit(f"{artifact}: found no licence in its pom, expected one (or an entry of UNNAMED)")
    group, artifact, version = (
        (parent.findtext(f"{space}{key}") or "").strip() for key in ("groupId", "artifactId", "version")
    )
    return licence(repository, group, artifact, version)


def lines(folder: Path, repository: Path) -> Iterator[str]:
    """A line of each file, in order of names."""
    for path in sorted(folder.rglob("*.jar"), key=lambda each: each.name):
        *parts, artifact, version, name = path.relative_to(folder).parts
        classifier = name.removeprefix(f"{artifact}-{version}").removesuffix(".jar").removeprefix("-")
        if "osx" in classifier or "riscv" in classifier:
            continue
        group = ".".join(parts)
        coordinates = ":".join(each for each in (group, artifact, version, classifier) if each)
        data = path.read_bytes()
        named = licence(repository, group, artifact, version)
        yield f"{hashlib.sha256(data).hexdigest()} {len(data)} {coordinates} {named}"


def main() -> None:
    """Prints the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("app", choices=sorted(ROOTS))
    app = parser.parse_args().app
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "pom.xml").write_text(pom(ROOTS[app], alone=False))
        argv = [
            "mvn", "--batch-mode", "--quiet", "--file", str(work / "pom.xml"), f"{DEPENDENCY_PLUGIN}:copy-dependencies",
            f"-DoutputDirectory={work}/lib", "-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true",
        ]  # fmt: skip
        subprocess.run(argv, check=True, stdout=sys.stderr)
        where = subprocess.run(
            ["mvn", "--batch-mode", "--quiet", "help:evaluate", "-Dexpression=settings.localRepository",
             "-DforceStdout"], check=True, capture_output=True, text=True,
        )  # fmt: skip
        repository = Path(re.sub(r"\x1b\[[0-9;]*m", "", where.stdout).strip())
        sys.stdout.write("# SHA-256, bytes, Maven coordinates, licence. Written by scripts/apps.py.\n")
        sys.stdout.writelines(f"{line}\n" for line in lines(work / "lib", repository))


if __name__ == "__main__":
    main()
