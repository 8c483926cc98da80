"""What the command line says: data on stdout, notes, warnings and errors on stderr, and the exit code.

Notes and warnings are log records: `note` is how a command speaks, and whatever the library logs
as a warning is shown beside it, each sentence once. With `--json` stderr holds one JSON object a
line, `{"warning": …}` or `{"error": …}`, and no notes.
"""

import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, TextIO

import typer

from skillpager.errors import SkillPagerError

ISSUES = "https://github.com/skillpager/skillpager/issues"
FAILED = 1
INTERRUPTED = 130

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log to stderr what is done.")]

_notes = logging.getLogger("skillpager.cli.messages.notes")

# what could steer a terminal: all control characters but line feed, tab and the CR of a CRLF
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


class UsageError(typer.BadParameter):
    """Arguments that do not go together: exit code 2."""

    def format_message(self) -> str:
        """Return the message without the parameter that `BadParameter` would put before it."""
        return self.message


def note(text: str) -> None:
    """Say something on stderr that is no part of the data; unheard with `--quiet` or `--json`."""
    _notes.info("%s", text)


def warn(text: str) -> None:
    """Say on stderr that something is odd; unheard with `--quiet`."""
    _notes.warning("%s", text)


def print_trace(text: str) -> None:
    """Write to stderr what was asked for, whether or not notes are heard."""
    _say(text.rstrip("\n"))


def are_notes_heard() -> bool:
    """Tell whether notes, and progress, are wanted."""
    heard = any(handler.level <= logging.INFO for handler in logging.getLogger().handlers)
    return heard and _notes.isEnabledFor(logging.INFO)


def print_text(text: str) -> None:
    """Write data to stdout, ended by a line feed; on a terminal control characters are made visible."""
    ending = "" if text.endswith("\n") or not text else "\n"
    sys.stdout.write((printable(text) if sys.stdout.isatty() else text) + ending)


def print_json(value: Mapping[str, object]) -> None:
    """Write one JSON document to stdout."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def printable(text: str) -> str:
    """Return `text` with each character that could steer a terminal replaced by U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function: its messages are heard, its exceptions become an exit code.

    The command has the options `--quiet` and `--verbose` besides the function's own, of which
    `as_json` says how messages are written.
    """

    @wraps(command)
    def run(*, quiet: bool, verbose: bool, **arguments: object) -> None:
        as_json = bool(arguments.get("as_json"))
        _listen(as_json=as_json, quiet=quiet, verbose=verbose)
        try:
            _finish(command, arguments)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            # threads that wait for an endpoint would hold up an ordinary exit; the store is always whole
            os._exit(INTERRUPTED)
        except BrokenPipeError:
            # whoever read the output has read enough
            _drop_output(sys.stdout)
        except Exception as error:
            _tell(error, as_json=as_json, verbose=verbose)
            raise typer.Exit(FAILED) from None

    added = {"quiet": Quiet, "verbose": Verbose}
    own = signature(command)
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=hint)
        for name, hint in added.items()
    ]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *options])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, **added}
    return run


def _finish(command: Callable[..., None], arguments: Mapping[str, object]) -> None:
    """Run a command to its last byte: a pipe or disk that fails does so here, not at exit."""
    try:
        command(**arguments)
    finally:
        sys.stdout.flush()


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
    """Writes a record to stderr once."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        line = self._line(record)
        if line not in self._said:
            self._said.add(line)
            _say(line)

    def _line(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if self._as_json and record.levelno >= logging.WARNING:
            return json.dumps({"warning": {"logger": record.name, "message": text}}, ensure_ascii=False)
        if record.levelno >= logging.WARNING:
            return f"warning: {text}"
        return text if record.name == _notes.name else f"{record.levelname.lower()}: {record.name}: {text}"


def tell_error(error: SkillPagerError | OSError, *, as_json: bool) -> None:
    """Write an error to stderr in the form of `--json` or of a paragraph."""
    if as_json:
        from skillpager.output.json import error_json

        _say(json.dumps(error_json(error), ensure_ascii=False))
    else:
        _say(f"error: {error}")


def _tell(error: Exception, *, as_json: bool, verbose: bool) -> None:
    if verbose:
        _say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, OSError):
        # a disk that is full for the output stays full at exit, when Python would flush again
        _drop_output(sys.stdout)
        place = error.filename or "The output"
        tell_error(OSError(f"{place} cannot be written or read: {error.strerror or error}."), as_json=as_json)
    elif isinstance(error, SkillPagerError):
        tell_error(error, as_json=as_json)
    else:
        fault = SkillPagerError(
            f"This is a fault of SkillPager ({type(error).__name__}: {error}), not of yours: please report "
            f"it at {ISSUES} with the command; `--verbose` prints the traceback."
        )
        tell_error(fault, as_json=as_json)


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except OSError:
        # nobody can be told that nobody listens
        _drop_output(sys.stderr)


def _drop_output(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
