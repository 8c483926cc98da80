"""Write docs/cli.md from the `--help` of every command: `python docs/generate_cli.py`.

Options that several commands explain in the same words are listed once, and named in these commands.
Commands of the benchmark are shortened to what they do, and their examples.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from typer.testing import CliRunner

from skillpager.cli.app import app

TARGET = Path(__file__).parent / "cli.md"
WIDTH = 100
# options that as many commands explain in the same words are listed once
SHARED_BY = 2
_OPTION = re.compile(r"^  (?=-)", re.MULTILINE)
INTRODUCTION = """\
# Command line

`python docs/generate_cli.py` makes this page from `--help`; a test compares them.

Data goes to stdout: a page, a map, a table. On a terminal tables are drawn; in a pipe a table is
tab-separated values under a header line. Notes, warnings, errors and progress go to stderr; progress
only if that is a terminal.

With `--json` stdout is one JSON document, or empty after an error, and each line of stderr is a JSON
object: `{"warning": {"logger": …, "message": …}}` or `{"error": {"type": …, "message": …}}`, where the
type is the class of the error, such as `SkillError`. There are no notes.

| Exit code | Meaning |
|---|---|
| 0 | success |
| 1 | the command could not do it, as stderr says with a remedy; or a check found problems |
| 2 | wrong usage: an option, argument or setting is missing, unknown or has a wrong value |
| 130 | interrupted |

Every command takes `--help`; this page has no options of the benchmark.
After `skillpager --install-completion` the shell completes commands and options.
"""


def render() -> str:
    """Return the page."""
    texts = dict(helps())
    explained = (text for words, text in texts.items() if words[:1] != ("bench",))
    counted = Counter(option for text in explained for option in _options(text).items())
    shared: dict[str, str] = {}
    for (name, told), number in counted.most_common():
        if number >= SHARED_BY:
            shared.setdefault(name, told)
    listed = "".join(f"{_wrapped(name, told)}\n" for name, told in shared.items())
    sections = (_section(words, text, shared) for words, text in texts.items())
    return f"{INTRODUCTION}\n## Shared options\n\n```text\n{listed}```\n{''.join(sections)}"


def helps() -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words of each command after `skillpager`, and its help."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        words = waiting.pop(0)
        text = _help(words)
        yield words, text
        waiting[:0] = [(*words, name) for name in _subcommands(text)]


def _help(words: tuple[str, ...]) -> str:
    result = CliRunner().invoke(
        app, [*words, "--help"], prog_name="skillpager", terminal_width=WIDTH, catch_exceptions=False
    )
    return result.output


def _subcommands(text: str) -> list[str]:
    _, _, listed = text.partition("\nCommands:\n")
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]


def _options(text: str) -> dict[str, str]:
    """Return the options of a help text: what they are called, and what is said of them, on one line."""
    listed = text.partition("\nOptions:\n")[2].partition("\nCommands:\n")[0]
    entries = (
        re.split(r"  +|\n", entry.strip(), maxsplit=1) for entry in _OPTION.split(listed) if entry.strip()
    )
    told = {name: re.sub(r"(?<=\w)-\s+(?=\w)", "-", " ".join(text.split())) for name, text in entries}
    told.pop("-h, --help", None)
    return told


def _section(words: tuple[str, ...], text: str, shared: Mapping[str, str]) -> str:
    """Return what a command does, without what is said of shared options."""
    before, _, after = text.partition("\nOptions:\n")
    _, _, commands = after.partition("\nCommands:\n")
    options = _options(text)
    own = {name: told for name, told in options.items() if shared.get(name) != told}
    others = [_flag(name) for name in options if name not in own]
    before = before.replace(" [OPTIONS]", "")
    lines = [before.rstrip()]
    if words[:1] == ("bench",):
        lines = [_shortened(before).rstrip()]
        own, others = {}, []
    if own:
        lines.append("Options:\n" + "\n".join(_wrapped(*option) for option in own.items()))
    if others:
        lines.append(_wrapped("Shared options", " ".join(others), sep=": "))
    if commands and not words:
        lines.append(f"Commands:\n{commands.rstrip()}")
    body = "\n\n".join(lines)
    return f"\n## {' '.join(('skillpager', *words))}\n\n```text\n{body}\n```\n"


def _shortened(text: str) -> str:
    """Return usage, the first paragraph and the examples of a help text."""
    usage, first, *rest = text.split("\n\n")
    return "\n\n".join([usage, first, *(part for part in rest if part.startswith("  Examples:"))])


def _flag(name: str) -> str:
    """Return the long flag of an option: `--jobs` of `-j, --jobs N`."""
    found = re.search(r"--[a-z-]+", name)
    return found[0] if found else name


def _wrapped(name: str, told: str, *, sep: str = "\n") -> str:
    """Return an option and what is said of it, which begins on a line of its own, or behind the separator."""
    if sep == "\n":
        indent = " " * 6
        return f"  {name}\n" + textwrap.fill(told, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return textwrap.fill(f"{name}{sep}{told}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
