"""`skillpager hook`: shows an agent's model the page that a prompt needs, before the model reads the prompt.

Claude Code runs the command with each prompt (its event `UserPromptSubmit`), with a JSON object on stdin,
and adds the context that the command prints. To it exit code 2 means that the prompt is refused, and any
other but 0 is an error that the user sees. So whatever fails is a note on stderr, and the exit code is 0.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from skillpager.cli.library import show_command
from skillpager.cli.messages import are_notes_shown, note, print_json, reported
from skillpager.cli.options import PagerOptions, SkillsDirs, StoreOptions
from skillpager.cli.session import open_library
from skillpager.display_text import is_plain, not_covered
from skillpager.errors import SettingsError
from skillpager.files import make_private_folder, read_bounded, write_file
from skillpager.library.discovery import search_folders
from skillpager.settings import INDEX_FOLDER, MAX_QUERY_CHARS, load_settings
from skillpager.types import Style

EVENT = "UserPromptSubmit"
# a page for every prompt stays in the conversation, so it is a short one
DEFAULT_MAX_TOKENS = 1_000
# Claude Code puts context of more than 10,000 characters into a file, and shows its model 2 kB of it
LARGEST_MAX_TOKENS = 2_000
# longest wait of a prompt for its page
DEFAULT_SECONDS = 5.0
LARGEST_SECONDS = 60.0
# nobody asked for a page, so it takes a likelier skill than a search does
LEAST_CHANCE = 0.4
MAX_INPUT_BYTES = 10_000_000
# folder in the cache with a file for each session: the ids of the nodes that it was shown
FOLDER = "hook"
# sessions that are remembered, and versions of skills in each; the least recently used are dropped
MAX_SESSIONS = 100
MAX_SKILLS = 64
MAX_BYTES = 1_000_000

# ids of nodes by the key of their index
ShownNodes = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the agent tells of a prompt: its text, the session, and the current folder."""

    text: str
    session: str
    folder: Path | None


@reported
def hook(
    skills_dirs: SkillsDirs = None,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", metavar="N", min=1, max=LARGEST_MAX_TOKENS, help="Longest page.")
    ] = DEFAULT_MAX_TOKENS,
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="S", help="Longest time; the prompt then goes on without a page."),
    ] = DEFAULT_SECONDS,
    project: Annotated[
        bool,
        typer.Option(
            "--project", help="Search the project's folders, too, which a stranger may have filled."
        ),
    ] = False,
) -> None:
    """Show an agent the part of your skills that a prompt needs.

    A hook for Claude Code's event UserPromptSubmit: `skillpager install --agent claude-code --hook` adds
    it. It reads the event on stdin, and prints the page for the prompt as context for the model; nothing
    if no skill seems to fit, for commands such as /help, and for what the session was shown before. The
    first line says where the skill comes from; those of the project are left out without --project. A
    line tells the user which skills, tokens and milliseconds it took. It never fails a prompt: errors
    are notes on stderr, and the exit code is 0.

    \b
    Examples:
      echo '{"prompt": "Restore one table from a dump."}' | skillpager hook --skills-dir examples/skills
    """
    if sys.stdin.isatty():
        note("an agent runs this command with each prompt, and sends it the prompt on stdin (docs/hosts.md)")
        return
    if not 0 < seconds <= LARGEST_SECONDS:  # nan is neither
        raise SettingsError(f"--seconds is {seconds:g}: give a number above 0, up to {LARGEST_SECONDS:g}.")
    made: Future[dict[str, object]] = Future()

    def work() -> None:
        try:
            prompt = read_prompt(sys.stdin.buffer.read(MAX_INPUT_BYTES))
            # a command of the agent names what it needs
            if prompt is None or not prompt.text.strip() or prompt.text.lstrip().startswith("/"):
                made.set_result({})
            else:
                made.set_result(_answer(prompt, skills_dirs or [], max_tokens, with_project=project))
        except BaseException as fault:  # it is raised where it is reported
            made.set_exception(fault)

    worker = Thread(target=work, daemon=True)
    worker.start()
    worker.join(seconds)
    if not worker.is_alive():
        if answer := made.result():
            print_json(answer)
        return
    late = f"SkillPager: no page within {seconds:g} s; `skillpager index` reads new skills ahead of time"
    note(late)
    if are_notes_shown():
        print_json({"systemMessage": late})
    sys.stdout.flush()
    os._exit(0)  # an ordinary exit would wait for the worker


def read_prompt(data: bytes) -> Prompt | None:
    """Return the prompt of an event; None for another event or another JSON object."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise SettingsError("stdin does not hold a JSON object: an agent that runs this command writes one.")
    text, session, folder = (event.get(name) for name in ("prompt", "session_id", "cwd"))
    if event.get("hook_event_name", EVENT) != EVENT or not isinstance(text, str):
        return None
    if len(text) > MAX_QUERY_CHARS:  # with a log pasted into it: what is asked stands before or after that
        half = MAX_QUERY_CHARS // 2
        text = f"{text[: half - 1]}\n{text[-half:]}"
    place = None
    with suppress(OSError, ValueError):  # a path that cannot be
        place = Path(folder) if isinstance(folder, str) and Path(folder).is_dir() else None
    return Prompt(text, session if isinstance(session, str) else "", place)


def _answer(
    prompt: Prompt, skills_dirs: Collection[Path], max_tokens: int, *, with_project: bool
) -> dict[str, object]:
    """Return the output for the agent; empty if no skill is likely enough, or nothing of it is new."""
    started = time.perf_counter()
    settings = load_settings()
    named = [*skills_dirs, *settings.skills_dir]
    search = partial(search_folders, named, project=prompt.folder, with_project=with_project)
    library = open_library([], StoreOptions(), search=search)
    file = session_file(settings.cache_dir / INDEX_FOLDER, prompt.session)
    shown = read_shown(file)
    made = library.page(
        prompt.text,
        max_tokens=max_tokens,
        style=Style.MARKED,
        folder=True,
        # by its name, a skill of the project would be read in place of the user's
        show=lambda skill: show_command(skill, PagerOptions(), by_path=True),
        known=lambda key: frozenset(shown.get(key, ())),
    )
    likely = made.parts and max(part.chance for part in made.parts) >= LEAST_CHANCE
    if not likely or not_covered(made.covered) or not any(part.page.nodes for part in made.parts):
        return {}
    names = ", ".join(f'"{part.skill.name}"' for part in made.parts)
    paths = [str(part.skill.path) for part in made.parts]  # of which nothing may hide or turn a line of ours
    places = [json.dumps(path, ensure_ascii=not is_plain(path)) for path in paths]
    found = "a skill" if len(places) == 1 else "skills"
    head = f"[For this prompt SkillPager found {found}: {names}, from {', '.join(places)}]"
    text = f"{head}\n\n{made.text}"
    count = library.pager.token_counter.count(text)
    write_shown(file, shown, {part.key: [node.id for node in part.page.nodes] for part in made.parts})
    cost = f"SkillPager: {names}, {count:,} tokens, {1000 * (time.perf_counter() - started):,.0f} ms"
    note(cost)
    answer: dict[str, object] = {"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": text}}
    return {**answer, "systemMessage": cost} if are_notes_shown() else answer


def session_file(cache: Path, session: str) -> Path | None:
    """Return the file for the nodes that a session was shown; None for a session without an id."""
    name = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:24]
    return cache / FOLDER / f"{name}.json" if session else None


def read_shown(file: Path | None) -> ShownNodes:
    """Return the nodes that a session was shown; none if they cannot be read: they are then shown again."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        data = json.loads(read_bounded(file, MAX_BYTES)) if file else {}
        return {str(key): [str(node) for node in nodes] for key, nodes in data.items()}
    return {}


def write_shown(file: Path | None, before: ShownNodes, now: Mapping[str, list[str]]) -> None:
    """Add nodes to those that a session was shown, if they can be written; forget the oldest sessions."""
    if file is None:
        return
    # the skill used last stands last
    stay = {key: nodes for key, nodes in before.items() if key not in now}
    stay |= {key: [*dict.fromkeys([*before.get(key, []), *nodes])] for key, nodes in now.items()}
    with suppress(OSError):
        make_private_folder(file.parent)
        write_file(file, json.dumps(dict([*stay.items()][-MAX_SKILLS:])))
        files = sorted(file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for old in files[:-MAX_SESSIONS]:
            old.unlink(missing_ok=True)
