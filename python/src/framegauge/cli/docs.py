"""Arguments and output of `framegauge docs`; no logic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.cli.arguments import Verb, nearest, verb_parser
from framegauge.errors import FramegaugeError, InputError

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.markdown import Markdown

    from framegauge.shipped.pages import Topic

__all__ = ["SUMMARY", "markdown", "parser", "run"]

SUMMARY = "read the documentation: how-tos, reference, reasons, measurements"
COLUMNS = 120  # of a page where no terminal has fewer
MOST_NAMED = 5
EXAMPLES = "Files in examples/: `framegauge examples --copy examples` puts them there."
_MORE = """\
A short name such as check means the first page of that name of how-to, reference, why and measured.
Commands in the pages name files in examples/: `framegauge examples --copy examples` puts them there.

examples:
  framegauge docs                           all topics
  framegauge docs how-to/check              a page
  framegauge docs check                     the same by its short name
  framegauge docs measured/check            what was measured of it
  framegauge docs check --open              all pages in the browser, offline, at this one
  framegauge docs --html docs.html          the same as a file, pictures included

exit codes: 0 done, 2 bad input, 1 no browser was found
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("docs", SUMMARY, _MORE, "The documentation of this version, in the terminal or the browser.")
    verb.add_argument("topic", nargs="?", metavar="TOPIC", help="a page, as listed by framegauge docs")
    verb.add_argument("--open", action="store_true", help="open all pages in the browser, as one file, at TOPIC")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write all pages as one offline file")
    verb.add_argument("--json", action="store_true", help="print the list of topics, or TOPIC in Markdown, as JSON")
    return verb


def run(words: Sequence[str]) -> None:
    """Print the list or a page, or write all pages."""
    options = parser().parse_args(words)
    output.check_file("--html", options.html)
    output.one_to_standard_output({"--json": options.json, "--html": options.html})
    if options.open and options.html == output.STANDARD_OUTPUT:
        raise InputError("--html: found -, expected a file that --open can show")
    from framegauge.shipped import pages

    topics = pages.topics()
    topic = _chosen(options.topic)
    if options.html is not None or options.open:
        _write(topic, options.html, options.open)
    if options.json:
        chosen = topics if topic is None else [topic]
        output.show_json({"topics": [_document(entry, topic is not None) for entry in chosen]}, indent=2)
    elif options.html is None and not options.open:
        if topic is None:
            _list(topics)
        else:
            _show(topic)


def _chosen(name: str | None) -> Topic | None:
    from framegauge.shipped import pages

    if name is None:
        return None
    topic = pages.named(name)
    if topic is None:
        words = [word for entry in pages.topics() for word in dict.fromkeys((entry.name, entry.page))]
        expected = nearest(name, words) or ", expected one that `framegauge docs` lists"
        if matches := pages.with_word(name)[:MOST_NAMED]:
            expected = f", expected one that `framegauge docs` lists; with this word: {', '.join(matches)}"
        raise InputError(f"docs: found no topic '{name}'{expected}")
    return topic


def _document(topic: Topic, has_text: bool) -> dict[str, str]:
    document = {"topic": topic.name, "page": topic.page, "section": topic.section, "title": topic.title}
    return {**document, "about": topic.about, **({"markdown": topic.text} if has_text else {})}


def _list(topics: Sequence[Topic]) -> None:
    from framegauge.cli.console import console
    from framegauge.report import narrow

    rows = [[topic.name, f"{topic.title}: {topic.about}" if topic.about else topic.title] for topic in topics]
    output.show(*(line.rstrip() for line in narrow.aligned(["topic", "page"], rows, console(COLUMNS).width)))


def _show(topic: Topic) -> None:
    """Prints a page; on a terminal through a pager."""
    from framegauge.cli import pager
    from framegauge.cli.console import console

    page_console = console(COLUMNS)
    with page_console.capture() as captured:
        page_console.print(markdown(topic), width=min(COLUMNS, page_console.width))
    text = "\n".join(line.rstrip() for line in captured.get().splitlines())
    if " examples/" in topic.text:  # in a command, which only a clone could run as it stands
        text += f"\n\n{EXAMPLES}"
    if page_console.is_terminal:
        pager.show(f"{text}\n")
    else:
        output.exact(text)


def markdown(topic: Topic) -> Markdown:
    """A page whose links say the command that shows what they lead to."""
    from rich.markdown import Markdown

    from framegauge.shipped import pages

    page = Markdown(topic.text, hyperlinks=False)
    names = {entry.page: entry.name for entry in pages.topics() if entry.page != topic.page}
    for token in page.parsed:
        if token.children:
            token.children = list(_led(token.children, topic.page, names))
    return page


def _led(tokens: Sequence[Token], page: str, names: Mapping[str, str]) -> Iterator[Token]:
    """The tokens of a paragraph. Links within the page, and to what no wheel has, are only their text."""
    from framegauge.shipped import pages

    is_link = True
    for token in tokens:
        if token.type == "link_open" and "://" not in (target := str(token.attrs["href"])):
            place = pages.linked(page, target)
            is_link = place is not None and place[0] in names
            if place is not None and is_link:
                token.attrs["href"] = f"framegauge docs {names[place[0]]}"
        elif token.type == "image":
            token.type, token.content, token.children = "text", f"[a picture, see --open: {token.content}]", None
        if is_link or token.type not in ("link_open", "link_close"):
            yield token
        is_link = is_link or token.type == "link_close"


def _write(topic: Topic | None, path: Path | None, opens: bool) -> None:
    """Writes all pages into a file, by default one that stays for the browser, and has it opened."""
    import webbrowser

    from framegauge.shipped import book

    path = _kept() if path is None else path
    output.write("--html", path, book.html().encode())
    if path != output.STANDARD_OUTPUT:
        output.say_plainly(f"documentation: {path}")
    if opens:
        address = path.absolute().as_uri() + ("" if topic is None else f"#{book.anchor(topic.page)}")
        if not webbrowser.open(address):
            raise FramegaugeError(f"--open: found no browser, expected one to open {path}")


def _kept() -> Path:
    """The file that the browser reads; one per version."""
    from framegauge import __version__
    from framegauge.apps import store

    path = store.cache().with_name(f"documentation-{__version__}.html")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: {error.strerror}, expected a folder that can be written, or --html") from None
    return path
