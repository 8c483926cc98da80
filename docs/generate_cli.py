"""Write docs/cli.md from the `--help` of every command: `python docs/generate_cli.py`."""

from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from skillpager.cli.app import app

TARGET = Path(__file__).parent / "cli.md"
WIDTH = 100
INTRODUCTION = """\
# Command line

This page is generated from `--help` by `python docs/generate_cli.py`; a test compares the two.

Data goes to stdout: a page, a tree, a table. On a terminal trees and tables are drawn and coloured
(`NO_COLOR` is respected); in a pipe a tree is plain text and a table is tab-separated values under a
header line. Notes, warnings, errors and progress go to stderr; progress only if that is a terminal.

With `--json` stdout is one JSON document, or empty after an error, and each line of stderr is a JSON
object: `{"warning": {"logger": …, "message": …}}` or `{"error": {"type": …, "message": …}}`, where the
type is the class of the error, such as `SkillError`. There are no notes.

| Exit code | Meaning |
|---|---|
| 0 | success |
| 1 | an error, described on stderr with a way to fix it; a problem that `doctor` or `cache verify` found |
| 2 | wrong usage |
| 130 | interrupted |

After `skillpager --install-completion` the shell completes commands, options and names of skills.
"""


def render() -> str:
    """Return the page."""
    return INTRODUCTION + "".join(_section(words, text) for words, text in helps())


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


def _section(words: tuple[str, ...], text: str) -> str:
    title = " ".join(("skillpager", *words))
    return f"\n## {title}\n\n```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
