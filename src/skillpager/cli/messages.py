"""Output of the command line: data on stdout; notes, warnings and errors on stderr; exit codes.

Notes and warnings are log records: `note` and `warn` write the messages of a command, and warnings that the
library logs are shown with them, each sentence once. With `--json` stderr holds one JSON object per line,
`{"warning": …}` or `{"error": …}`, and no notes.
"""

import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TextIO, get_type_hints

import typer

from skillpager.display_text import encodable, escaped_json, printable
from skillpager.errors import SettingsError, SkillPagerError, missing_extra

ISSUES = "https://github.com/skillpager/skillpager/issues"
FAILED, MISUSED, INTERRUPTED = 1, 2, 130
# a library of thousands of skills has thousands of faults; a screen has room for these
MAX_WARNINGS = 20

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors to stderr.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every step to stderr.")]

_notes = logging.getLogger("skillpager.cli.messages.notes")
_LINE_BREAK = re.compile(r"\r?\n|[\r\u2028\u2029]")


def note(text: str) -> None:
    """Print a remark to stderr; hidden by `--quiet` and `--json`."""
    _notes.info("%s", text)


def warn(text: str) -> None:
    """Print a warning to stderr; hidden by `--quiet`."""
    _notes.warning("%s", text)


def warn_of_some(texts: Sequence[str], *, remedy: str) -> None:
    """Print warnings, up to `MAX_WARNINGS`, and how many more there are."""
    for text in texts[:MAX_WARNINGS]:
        warn(text)
    if (more := len(texts) - MAX_WARNINGS) > 0:
        warn(f"{more:,} more warnings of this kind are not shown: {remedy}.")


def are_notes_shown() -> bool:
    """Return True if notes and progress are shown."""
    shown = any(handler.level <= logging.INFO for handler in logging.getLogger().handlers)
    return shown and _notes.isEnabledFor(logging.INFO)


def confirm(question: str, *, yes: bool, remedy: str) -> None:
    """Ask for confirmation on the terminal, unless `--yes` was given; the answer "no" ends the command."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise SettingsError(f"Cannot ask for confirmation without a terminal: {remedy}.")
    typer.confirm(printable(question), abort=True, err=True)


def print_text(text: str) -> None:
    """Write data to stdout, ended by a line feed; on a terminal control characters are made visible."""
    ending = "" if text.endswith("\n") or not text else "\n"
    sys.stdout.write((printable(text) if sys.stdout.isatty() else encodable(text)) + ending)


def print_json(value: Mapping[str, object]) -> None:
    """Write one JSON document to stdout."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write(f"{escaped_json(text)}\n")


def print_aside(text: str) -> None:
    """Write text to stderr, even with `--quiet`."""
    try:
        sys.stderr.write(f"{printable(text.rstrip())}\n")
        sys.stderr.flush()
    except OSError:
        # stderr is closed, so no message can be shown
        _drop_output(sys.stderr)


def print_error(error: SkillPagerError | OSError, *, as_json: bool) -> None:
    """Print an error to stderr, as JSON or as a paragraph."""
    if as_json:
        from skillpager.json_types import error_json

        print_aside(json.dumps(error_json(error), ensure_ascii=False))
    else:
        print_aside(f"error: {_hanging(str(error))}")


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function: messages go to stderr, exceptions become exit codes.

    Adds the options `--quiet` and `--verbose`. If a parameter is a dataclass, each of its fields becomes an
    option in its place. The option `as_json`, if there is one, decides the form of the messages.
    """
    parameters, groups = _flattened(command)

    @wraps(command)
    def run(*, quiet: bool, verbose: bool, **arguments: object) -> None:
        as_json = bool(arguments.get("as_json"))
        _listen(as_json=as_json, quiet=quiet, verbose=verbose)
        for name, group in groups.items():
            arguments[name] = group(**{field.name: arguments.pop(field.name) for field in fields(group)})
        try:
            try:
                command(**arguments)
            finally:
                # a pipe or disk that fails does so here, not at exit
                sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            # threads that wait for an endpoint would hold up an ordinary exit; the store is always whole
            os._exit(INTERRUPTED)
        except BrokenPipeError:
            # the reader of the output, such as `head`, has read enough
            _drop_output(sys.stdout)
        except Exception as error:
            if verbose:
                print_aside("".join(traceback.format_exception(error)))
            print_error(_shown(error), as_json=as_json)
            raise typer.Exit(MISUSED if isinstance(error, SettingsError) else FAILED) from None

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _flattened(command: Callable[..., None]) -> tuple[list[Parameter], dict[str, Any]]:
    """Return the options of a command, and the dataclasses of its parameters that are groups of options."""
    options: list[tuple[str, object, object]] = []
    groups: dict[str, Any] = {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = group = hints[name]
            types = get_type_hints(group, include_extras=True)
            options += [(field.name, field.default, types[field.name]) for field in fields(group)]
        else:
            options.append((name, parameter.default, hints[name]))
    options += [("quiet", False, Quiet), ("verbose", False, Verbose)]
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, default, hint in options
    ], groups


def _shown(error: Exception) -> SkillPagerError | OSError:
    if isinstance(error, SkillPagerError):
        return error
    if isinstance(error, OSError):
        # a disk that is full for the output stays full at exit, when Python would flush again
        _drop_output(sys.stdout)
        return OSError(
            f"{error.filename or 'The output'} cannot be written or read: {error.strerror or error}."
        )
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error.name or "")):
        return missing
    place = traceback.extract_tb(error.__traceback__)[-1]
    return SkillPagerError(
        f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno}). Unless you "
        f"named that code yourself, this is a bug in SkillPager: please report it at {ISSUES} with the "
        "command; `--verbose` prints the traceback."
    )


def _listen(*, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Show log records on stderr: warnings of every package, and the notes of commands."""
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(old)
    handler = _Handler(as_json=as_json)
    handler.setLevel(logging.ERROR if quiet else logging.NOTSET)
    root.addHandler(handler)
    logging.getLogger("skillpager").setLevel(logging.DEBUG if verbose else logging.WARNING)
    _notes.setLevel(logging.WARNING if as_json else logging.INFO)


class _Handler(logging.Handler):
    """Prints each message to stderr once."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self.is_json = as_json
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        text = _hanging(message)
        if self.is_json and record.levelno >= logging.WARNING:
            text = json.dumps({"warning": {"logger": record.name, "message": message}}, ensure_ascii=False)
        elif record.levelno >= logging.WARNING:
            text = f"warning: {text}"
        elif record.name != _notes.name:
            text = f"{record.levelname.lower()}: {record.name}: {text}"
        if text not in self._printed:
            self._printed.add(text)
            print_aside(text)


def _hanging(text: str) -> str:
    """Return a message with its further lines indented: none of them passes for a message of its own."""
    return _LINE_BREAK.sub("\n    ", text)


def _drop_output(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
