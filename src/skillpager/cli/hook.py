"""`skillpager hook`: shows an agent's model the page that a prompt needs, before the model reads the prompt.

Claude Code runs the command with each prompt (its event `UserPromptSubmit`), with a JSON object on stdin,
and adds the context that the command prints. To it exit code 2 means that the prompt is refused, and any
other but 0 is an error that the user sees. So whatever fails is a note on stderr, and the exit code is 0.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import are_notes_shown, note, print_json, reported
from skillpager.cli.options import CacheDir, PagerOptions, SkillsDirs, StoreOptions
from skillpager.errors import SettingsError
from skillpager.files import make_private_folder, read_bounded, write_file

if TYPE_CHECKING:
    from skillpager.library import Library
    from skillpager.library.library_page import LibraryPage

NAME = "hook"
EVENT = "UserPromptSubmit"
# a page for every prompt stays in the conversation, so it is a short one
DEFAULT_MAX_TOKENS = 1_000
# Claude Code puts context of more than 10,000 characters into a file, and shows its model 2 kB of it
MAX_CHARS = 9_500
# longest wait of a prompt for its page
DEFAULT_SECONDS = 5.0
# nobody asked for a page, so it takes a likelier skill than a search does
LEAST_CHANCE = 0.4
MAX_INPUT_BYTES = 10_000_000
# of a long prompt, such as one with a log pasted into it, the beginning and the end are searched for
MOST_CHARS = 8_000
# seconds in which no second process brings the catalog up to date
PREPARE_SECONDS = 600
TRIM = 0.9
# folder in the cache with a file for each session: the ids of the nodes that it was shown
FOLDER = "hook"
# sessions that are remembered, and versions of skills in each; the least recently used are dropped
MAX_SESSIONS = 100
MAX_SKILLS = 64
MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the agent tells of a prompt: its text, the session, and the current folder."""

    text: str
    session: str
    folder: Path | None


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The folders and limits of the hook."""

    skills_dirs: SkillsDirs = None
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens", metavar="N", min=1, help="Longest page. [default: 1000]", show_default=False
        ),
    ] = DEFAULT_MAX_TOKENS
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            metavar="S",
            help="Longest time; the prompt then goes on without a page. [default: 5]",
            show_default=False,
        ),
    ] = DEFAULT_SECONDS
    least_chance: Annotated[
        float,
        typer.Option(
            "--least-chance",
            metavar="P",
            help="Least estimated chance that the prompt needs a skill. [default: 0.4]",
            show_default=False,
        ),
    ] = LEAST_CHANCE
    resend: Annotated[
        bool, typer.Option("--resend", help="Show again what the session was shown before.")
    ] = False
    cache_dir: CacheDir = None


@reported
def hook(
    options: HookOptions,
    prepare: Annotated[
        bool,
        typer.Option("--prepare", help="Only bring the catalog of skills up to date, without a time limit."),
    ] = False,
) -> None:
    """Show an agent the part of your skills that a prompt needs.

    A hook for Claude Code's event UserPromptSubmit: `skillpager install --agent claude-code --hook` adds
    it. It reads the event on stdin, and prints the page for the prompt as context for the model; nothing
    if no skill seems to fit, for commands such as /help, and for what the session was shown before. A
    line tells the user which skills, tokens and milliseconds it took. It never fails a prompt: errors
    are notes on stderr, and the exit code is 0.

    \b
    Examples:
      echo '{"prompt": "Restore one table from a dump."}' | skillpager hook --skills-dir examples/skills
      skillpager hook --skills-dir examples/skills --prepare
    """
    if prepare:
        _open_library(options, None)[0].prepare()
        return
    if sys.stdin.isatty():
        note("an agent runs this command with each prompt, and sends it the prompt on stdin (docs/hosts.md)")
        return
    prompt = read_prompt(sys.stdin.buffer.read(MAX_INPUT_BYTES))
    # a command of the agent names what it needs
    if prompt is None or not prompt.text.strip() or prompt.text.lstrip().startswith("/"):
        return
    made: Future[list[dict[str, object]]] = Future()

    def work() -> None:
        try:
            made.set_result(_answer(prompt, options))
        except BaseException as fault:  # it is raised where it is reported
            made.set_exception(fault)

    worker = Thread(target=work, daemon=True)
    worker.start()
    worker.join(options.seconds)
    if worker.is_alive():
        note(f"no page within {options.seconds:g} s: the prompt goes on without; the next may find one")
        _prepare_aside(options)
        sys.stderr.flush()
        os._exit(0)  # an ordinary exit would wait for the worker
    for answer in made.result():
        print_json(answer)


def read_prompt(data: bytes) -> Prompt | None:
    """Return the prompt of an event; None for another event or another JSON object.

    Raises:
        SettingsError: The data are not a JSON object.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise SettingsError("stdin does not hold a JSON object: an agent that runs this command writes one.")
    text, session, folder = (event.get(name) for name in ("prompt", "session_id", "cwd"))
    if event.get("hook_event_name", EVENT) != EVENT or not isinstance(text, str):
        return None
    if len(text) > MOST_CHARS:
        half = MOST_CHARS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    place = Path(folder) if isinstance(folder, str) and Path(folder).is_dir() else None
    return Prompt(text, session if isinstance(session, str) else "", place)


def _answer(prompt: Prompt, options: HookOptions) -> list[dict[str, object]]:
    """Return what the agent gets to read, if anything."""
    started = time.perf_counter()
    library, cache = _open_library(options, prompt.folder)
    shown = ShownNodes(cache, "" if options.resend else prompt.session)
    made = _make_page(library, prompt, options, shown)
    if made is None:
        return []
    names = ", ".join(part.skill.name for part in made.parts)
    head = f"[For this prompt SkillPager found {'a skill' if len(made.parts) == 1 else 'skills'}: {names}]"
    text = f"{head}\n\n{made.text}"
    count = library.pager.token_counter.count(text)
    shown.add((part.key, [node.id for node in part.page.nodes]) for part in made.parts)
    took = 1000 * (time.perf_counter() - started)
    cost = f"SkillPager: {names}, {count:,} tokens, {took:,.0f} ms"
    note(cost)
    answer: dict[str, object] = {"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": text}}
    return [{**answer, "systemMessage": cost} if are_notes_shown() else answer]


def _open_library(options: HookOptions, project: Path | None) -> "tuple[Library, Path]":
    """Return the skills for a prompt, and the folder of the cache."""
    from skillpager.cli.session import choose_settings, library_of
    from skillpager.library.agent_folders import search_folders
    from skillpager.settings import cache_folder

    place = StoreOptions(options.cache_dir)
    settings = choose_settings(place)
    folders = search_folders([*(options.skills_dirs or ()), *settings.skills_dir], project=project)
    return library_of(folders, place, settings), cache_folder(settings)


def _make_page(
    library: "Library", prompt: Prompt, options: HookOptions, shown: "ShownNodes"
) -> "LibraryPage | None":
    """Return the page of a prompt; None if no skill is likely enough, or nothing of it is new or fits."""
    from skillpager.cli.page import show_command
    from skillpager.pages.gaps import not_covered
    from skillpager.types import Style

    by_path = bool(options.skills_dirs)
    limit = options.max_tokens
    while True:
        made = library.page(
            prompt.text,
            max_tokens=limit,
            style=Style.MARKED,
            folder=True,
            show=lambda skill: show_command(skill, PagerOptions(), by_path=by_path),
            known=shown.of,
        )
        likely = made.parts and max(part.chance for part in made.parts) >= options.least_chance
        if not likely or not_covered(made.covered) or not any(part.page.nodes for part in made.parts):
            return None
        if len(made.text) <= MAX_CHARS:
            return made
        limit = int(min(limit, made.tokens) * MAX_CHARS / len(made.text) * TRIM)


def _prepare_aside(options: HookOptions) -> None:
    """Bring the catalog of skills up to date in a process that outlives this one, if none is at it."""
    mark = _open_library(options, None)[1] / FOLDER / "preparing"
    words = [word for folder in options.skills_dirs or () for word in ("--skills-dir", str(folder))]
    words += ["--cache-dir", str(options.cache_dir)] if options.cache_dir else []
    with suppress(OSError):
        if mark.exists() and time.time() - mark.stat().st_mtime < PREPARE_SECONDS:
            return
        make_private_folder(mark.parent)
        mark.touch()
        subprocess.Popen(
            [sys.executable, "-P", "-m", "skillpager", NAME, "--prepare", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


class ShownNodes:
    """The nodes that a session was shown, by the key of their index.

    What cannot be read or written is as if nothing had been shown: the nodes are then shown again.

    Args:
        cache: The cache folder.
        session: The agent's id of its session; empty for a session that is not remembered.
    """

    def __init__(self, cache: Path, session: str) -> None:
        name = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:24]
        self._file = cache / FOLDER / f"{name}.json" if session else None
        self._nodes: dict[str, list[str]] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):
            data = json.loads(read_bounded(self._file, MAX_BYTES)) if self._file else {}
            self._nodes = {str(key): [str(node) for node in nodes] for key, nodes in data.items()}

    def of(self, key: str) -> Collection[str]:
        """Return the ids of the nodes of this index that were shown."""
        return frozenset(self._nodes.get(key, ()))

    def add(self, shown: Iterable[tuple[str, Collection[str]]]) -> None:
        """Record that nodes are shown: their ids by the key of their index."""
        if self._file is None:
            return
        for key, nodes in shown:
            known = self._nodes.pop(key, [])  # the skill used last stands last
            self._nodes[key] = [*known, *(node for node in nodes if node not in known)]
        kept = dict(list(self._nodes.items())[-MAX_SKILLS:])
        with suppress(OSError):
            make_private_folder(self._file.parent)
            write_file(self._file, json.dumps(kept))
            files = sorted(self._file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for old in files[:-MAX_SESSIONS]:
                old.unlink(missing_ok=True)
