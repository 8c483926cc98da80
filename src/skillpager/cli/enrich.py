"""`skillpager enrich`: a language model, or the agent at hand, writes what nodes are asked for."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli import session
from skillpager.cli.messages import note, print_text, reported, warn_of_some
from skillpager.cli.options import PagerOptions, SkillArgument
from skillpager.cli.views import counted, progress_bar
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.files import read_bounded
from skillpager.types import Node

if TYPE_CHECKING:
    from skillpager.enrichment.notes import Notes
    from skillpager.settings import Settings

MAX_RETRIES = 5


@reported
def enrich(
    skill: SkillArgument,
    *,
    show: Annotated[
        bool, typer.Option("--print", help="Print the prompt and the nodes, for the agent at hand.")
    ] = False,
    take: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take the answer to --print from a file; - reads it from stdin."),
    ] = None,
    in_folder: Annotated[
        bool,
        typer.Option("--in-folder", help="Keep the notes as skillpager-asks.json in the skill's folder."),
    ] = False,
    options: PagerOptions,
) -> None:
    """Have a language model write what each node of SKILL is asked for, and what must come with it.

    Pages then find nodes that do not repeat the words of a query. The notes are kept in the cache folder;
    after a change of the skill, only new and changed nodes are asked for. The model is that of
    SKILLPAGER_LLM_MODEL; without one, an agent can do it with --print and --take.

    \b
    Examples:
      skillpager enrich examples/skills/git-bisect --print
      echo '{"nodes": []}' | skillpager enrich examples/skills/git-bisect --take -
    """
    from skillpager.enrichment.asking import handout
    from skillpager.enrichment.notes import read_notes, without_notes
    from skillpager.indexing import notes_files

    if (show and take) or take == session.STDIN == skill:
        raise SettingsError("--print and --take are two steps, and SKILL and FILE cannot both be stdin.")
    pager = session.open_pager(options)
    index = session.load_skill(pager, session.find_source(skill, pager))
    if in_folder and index.skill.root is None:
        raise SettingsError(
            "--in-folder needs a skill with a folder: name it by its path, or leave the option out."
        )
    places = notes_files(index.skill, pager.settings.cache_dir)
    notes = read_notes(places)
    if show:
        flags = ["--take", "answer.json", *(["--in-folder"] if in_folder else [])]
        command = session.node_command("enrich", skill, options, *flags)
        print_text(handout(without_notes(index.nodes, notes), command))
    else:
        _write(pager.settings, index.nodes, notes, places[-1 if in_folder else 0], take, own=in_folder)


def _write(
    settings: "Settings", nodes: Sequence[Node], notes: "Notes", place: Path, take: str | None, *, own: bool
) -> None:
    """Add what a file answers, or else a model, to the notes, and write them; `own` for these nodes alone."""
    from skillpager.enrichment.asking import ask_model
    from skillpager.enrichment.notes import digest_of, without_notes, write_notes
    from skillpager.remote.chat import chat_endpoint

    faults: list[str] = []
    missing, count = without_notes(nodes, notes), len(nodes)

    def taken(found: "Notes", wrong: Sequence[str]) -> None:
        notes.update(found)
        faults.extend(wrong)
        # others, of earlier states of the skill or of more of its files, were paid for as well
        kept = {each: notes[each] for each in map(digest_of, nodes) if each in notes} if own else notes
        write_notes(place, kept)
        progress(count - len(without_notes(nodes, notes)), count)

    endpoint = None
    with progress_bar("nodes") as progress:
        try:
            if take or not missing:
                taken(*(answer_in(take, nodes) if take else ({}, [])))
            else:
                endpoint = chat_endpoint(settings, purpose="enrich", max_retries=MAX_RETRIES)
                ask_model(endpoint, nodes, missing, concurrency=settings.llm_concurrency, taken=taken)
        finally:
            warn_of_some(faults, remedy="the same command asks for them again")
            noted, tokens = count - len(without_notes(nodes, notes)), endpoint.tokens if endpoint else 0
            done = f"{noted:,} of {counted(count, 'node')} have notes, {len(faults):,} left out"
            note(f"{done}, {counted(tokens, 'token')} used")


def answer_in(place: str, nodes: Sequence[Node]) -> "tuple[Notes, list[str]]":
    """Return the notes in a file or on stdin, and why entries are left out."""
    from skillpager.enrichment.notes import MAX_BYTES, digest_of, notes_in
    from skillpager.remote.chat import json_in

    stdin = place == session.STDIN
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if stdin else read_bounded(Path(place), MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        return notes_in(json_in(data.decode()), {node.id: digest_of(node) for node in nodes})
    except (OSError, ValueError) as error:
        raise SkillPagerError(
            f"The answer in {'stdin' if stdin else place} cannot be used: {error}. Write it as one JSON "
            "object in the form that `skillpager enrich SKILL --print` shows."
        ) from error
