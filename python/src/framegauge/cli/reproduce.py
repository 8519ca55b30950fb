"""Arguments and output of `framegauge reproduce`; no logic."""

from __future__ import annotations

import argparse
import platform
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError, Interrupted, NothingJudged

if TYPE_CHECKING:
    from framegauge.cli.reproductions import Job
    from framegauge.reproduce.documents import Loaded
    from framegauge.reproduce.folder import Asked, State
    from framegauge.reproduce.outcomes import Reproduced

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "run published figures again, each beside what comes out here, and say why it differs"
COLUMNS = 140  # of the table where no terminal says how many it has
_MORE = """\
A document is data: each published figure with its rounding, the study that answers it, and the arms that may explain a
difference. FIGURE is one of its figures, as --list names them.

The emulated rack needs root, and takes as long as --dry-run says; the simulator needs neither root nor a quiet machine.
Where a study can run on one of them alone, it runs there. Studies of hours, such as that of Hadoop, run only for
figures that are named one by one.

Results stay in the folder: Ctrl-C loses nothing, and --resume goes on. With all studies over, --resume writes the page
again. A paper of your own is a folder with document.yaml and study files (framegauge docs reproduce). Run only those of
others that you trust: their study files may run programs.

examples:
  framegauge reproduce --list                                    the documents
  framegauge reproduce --list --document vxlan-2017              its figures, and what answers each
  framegauge reproduce jumbo-2013-08 --dry-run                   which studies that takes, and for how long
  framegauge reproduce jumbo-2013-08 jumbo-2013-23 --testbed rack
  framegauge reproduce --document outcast-2014 --testbed simulator --seeds 10
  framegauge reproduce --all --testbed simulator --out results/reproduced
  framegauge reproduce --resume --out results/reproduced --html reproduced.html
  framegauge reproduce --document my-paper/document.yaml --testbed simulator

exit codes: 0 done, 2 bad input, 3 nothing judged, 130 interrupted, 1 anything else
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("reproduce", SUMMARY, _MORE)
    verb.add_argument("figures", nargs="*", metavar="FIGURE", help="figures by their ids, of any documents")
    verb.add_argument(
        "--document", action="append", default=[], metavar="NAME",
        help="all figures of this document, or of a document.yaml of your own; may be repeated",
    )  # fmt: skip
    verb.add_argument("--all", action="store_true", help="all figures of all documents")
    verb.add_argument("--list", action="store_true", help="list figures, and what answers each, instead")
    verb.add_argument(
        "--testbed", choices=("rack", "simulator", "both"),
        help="where studies run that could run on both (default: rack)",
    )  # fmt: skip
    verb.add_argument("--seeds", type=int, metavar="N", help="seeds of each simulation (default: 30; some have more)")
    verb.add_argument("--out", type=output.place, metavar="DIR", help="results folder (default: a new one in results/)")
    verb.add_argument("--resume", action="store_true", help="go on in --out, or print its page again")
    verb.add_argument("--dry-run", action="store_true", help="say what would be run, and for how long, and stop")
    verb.add_argument("--json", action="store_true", help="print JSON instead of a table")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write the page there, too")
    verb.add_argument("--markdown", type=output.place, metavar="FILE", help="write it as Markdown")
    return verb


def run(words: Sequence[str]) -> None:
    """List figures, or run their studies and print what became of them."""
    options = parser().parse_args(words)
    if options.out == output.STANDARD_OUTPUT:
        raise InputError("--out: found -, expected a folder (./- is one of that name)")
    piped = output.one_to_standard_output(
        {"--json": options.json, "--html": options.html, "--markdown": options.markdown}
    )
    for name in ("html", "markdown"):
        output.check_file(f"--{name}", getattr(options, name))
    if options.seeds is not None and options.seeds < 1:
        raise InputError(f"--seeds: found {options.seeds}, expected a whole number from 1")
    if options.list:
        _list(options)
        return
    from framegauge.cli import reproductions

    resumed = _resumed(options)
    request = _asked(options) if resumed is None else resumed.asked
    jobs = [job for job in reproductions.jobs(request) if resumed is None or job.key not in resumed.over]
    lines = reproductions.plan_lines(jobs)
    if options.dry_run:
        output.show(*lines)
        return
    state, folder = _folder(options, request, resumed)
    for line in lines:
        output.say(line)
    interrupted = _run(folder, state, jobs)
    results = reproductions.reproduced(folder)
    _write(folder, results, options, piped)
    if interrupted is not None:
        again = shlex.join(["framegauge", "reproduce", "--resume", "--out", str(folder)])
        raise Interrupted(f"{interrupted}; continue with: {again}")
    _demand(results)


def _resumed(options: argparse.Namespace) -> State | None:
    """What the folder was asked for, and how far it is, with --resume."""
    if not options.resume:
        return None
    from framegauge.reproduce import folder as folders

    if options.out is None:
        raise InputError("--resume: found no --out, expected the folder of an earlier framegauge reproduce")
    names = ("figures", "document", "all", "testbed", "seeds")
    if strange := next((name for name in names if getattr(options, name)), None):
        argument = "FIGURE" if strange == "figures" else f"--{strange}"
        raise InputError(f"--resume: found {argument} beside it, expected none: the folder says what was asked for")
    return folders.resume(options.out)


def _asked(options: argparse.Namespace) -> Asked:
    from framegauge.reproduce.folder import Asked

    chosen = {
        _name(loaded, options): [figure.id for figure in loaded.document.figures] for loaded in _documents(options)
    }
    for name, ids in _named_one_by_one(options).items():
        chosen[name] = [*dict.fromkeys([*chosen.get(name, ()), *ids])]
    if not chosen:
        raise InputError(
            "reproduce: found no FIGURE, --document or --all, expected one; for example: "
            "framegauge reproduce jumbo-2013-08, or --list"
        )
    testbeds = ["rack", "simulator"] if options.testbed == "both" else [options.testbed or "rack"]
    return Asked(chosen, testbeds, options.seeds, bool(options.figures))


def _name(loaded: Loaded, options: argparse.Namespace) -> str:
    """A document by its name, or by the path that was given, made absolute for who resumes elsewhere."""
    paths = {Path(text).resolve(): text for text in options.document if Path(text).exists()}
    own_path = next((path for path in paths if path in (loaded.folder.resolve(), loaded.file_itself.resolve())), None)
    return loaded.name if own_path is None else str(own_path)


def _documents(options: argparse.Namespace) -> list[Loaded]:
    from framegauge.reproduce import documents

    loaded_documents = [documents.named(name) for name in options.document]
    return [*loaded_documents, *(documents.shipped() if options.all else ())]


def _named_one_by_one(options: argparse.Namespace) -> dict[str, list[str]]:
    """The figures that are named, by document."""
    from framegauge.cli.arguments import nearest
    from framegauge.reproduce import documents

    if not options.figures:
        return {}
    names = {figure.id: loaded.name for loaded in documents.shipped() for figure in loaded.document.figures}
    by_document: dict[str, list[str]] = {}
    for figure_id in options.figures:
        if figure_id not in names:
            expected = nearest(figure_id, list(names)) or ", expected one that `framegauge reproduce --list` names"
            raise InputError(f"reproduce: found no figure '{figure_id}'{expected}")
        by_document.setdefault(names[figure_id], []).append(figure_id)
    return by_document


def _folder(options: argparse.Namespace, request: Asked, resumed: State | None) -> tuple[State, Path]:
    from framegauge.cli import commands
    from framegauge.reproduce import folder as folders

    if resumed is not None:
        return resumed, options.out
    folder = options.out or commands.choose_folder("reproduce")
    return folders.begin(folder, request), folder


def _run(folder: Path, state: State, jobs: Sequence[Job]) -> Interrupted | None:
    """Runs what is left; the interruption, after which what is there is still shown."""
    from framegauge.cli import reproductions
    from framegauge.cli.console import console
    from framegauge.cli.progress import Reporter

    try:
        with Reporter(console(stderr=True)) as reporter:
            reproductions.run(folder, state, jobs, reporter)
    except Interrupted as error:
        return error
    return None


def _write(folder: Path, results: Sequence[Reproduced], options: argparse.Namespace, piped: str | None) -> None:
    from framegauge.reproduce import folder as folders, page
    from framegauge.results.writing import write_whole

    command = shlex.join(["framegauge", "reproduce", "--resume", "--out", str(folder)])
    page_bytes = page.page(results, command).encode()
    write_whole(folder / folders.PAGE, page_bytes)
    if options.html is not None:
        output.write("--html", options.html, page_bytes)
    if options.markdown is not None:
        machine = f"{platform.machine()}, Linux {platform.release().partition('-')[0]}"
        output.write("--markdown", options.markdown, page.markdown(results, command, machine).encode())
    if options.json:
        output.show_json(page.document(results), indent=2)
    elif piped is None:
        _show(results)
    output.say_plainly(f"results: {folder}")
    output.say_plainly(f"report: {folder / folders.PAGE}")


def _show(results: Sequence[Reproduced]) -> None:
    from framegauge.cli.console import console
    from framegauge.report import narrow
    from framegauge.reproduce import tables

    width = console(COLUMNS).width
    for result in results:
        output.show(f"{result.loaded.name}: {tables.counts(result.rows)}")
        rows = [[row.figure.id, row.figure.published, tables.ours(row), row.outcome.status] for row in result.rows]
        output.show(
            *(line.rstrip() for line in narrow.aligned(["figure", "published", "here", "verdict"], rows, width))
        )


def _demand(results: Sequence[Reproduced]) -> None:
    from framegauge.reproduce.outcomes import Status

    statuses = {row.outcome.status for result in results for row in result.rows}
    if statuses and statuses <= {Status.NOT_RUN, Status.CANNOT_TELL}:
        raise NothingJudged("no figure could be judged: the table says why")


def _list(options: argparse.Namespace) -> None:
    from framegauge.cli.console import console
    from framegauge.report import narrow
    from framegauge.reproduce import documents

    loaded_documents = _documents(options) or documents.shipped()
    if options.json:
        output.show_json({"documents": [_listed(loaded) for loaded in loaded_documents]}, indent=2)
        return
    width = console(COLUMNS).width
    if not options.document:
        titles = ["document", "figures", "title", "source"]
        rows = [
            [entry.name, documents.counts(entry), entry.document.title, entry.document.source]
            for entry in loaded_documents
        ]
        output.show(*(line.rstrip() for line in narrow.aligned(titles, rows, width)))
        output.show("The figures of one: framegauge reproduce --list --document NAME")
        return
    for loaded in loaded_documents:
        output.show(f"{loaded.name}: {loaded.document.title}", f"  {loaded.document.source}")
        rows = [
            [
                figure.id,
                f"{figure.place}: {figure.case}",
                figure.quantity,
                figure.published,
                documents.answer(loaded, figure),
            ]
            for figure in loaded.document.figures
        ]
        titles = ["figure", "of", "quantity", "published", "answered by"]
        output.show(*(line.rstrip() for line in narrow.aligned(titles, rows, width)))


def _listed(loaded: Loaded) -> dict[str, Any]:
    from framegauge.reproduce import documents

    figures = [
        {**figure.model_dump(mode="json", exclude_none=True), "answered_by": documents.answer(loaded, figure)}
        for figure in loaded.document.figures
    ]
    about = loaded.document
    return {"document": about.document, "title": about.title, "source": about.source, "figures": figures}
