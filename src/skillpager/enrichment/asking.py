"""Asks a chat model, or the agent at hand, what the nodes of a skill are asked for."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from itertools import groupby
from threading import Lock

from skillpager.enrichment.notes import Notes, digest_of, notes_in
from skillpager.errors import EnrichmentError
from skillpager.remote.chat import Message, chat_json, object_schema
from skillpager.remote.endpoint import Endpoint, EndpointError, sendable, shortened
from skillpager.sections import trail_of
from skillpager.types import Node

BATCH_NODES = 40
# beginning and end show what a long code block is needed for
MAX_TEXT_CHARS = 2000
PROMPT = files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8")

_TEXTS = {"type": "array", "items": {"type": "string"}}
_NODE = object_schema(id={"type": "string"}, asks=_TEXTS, **{"with": _TEXTS})
ANSWER_SCHEMA = object_schema(nodes={"type": "array", "items": _NODE})


def batches_of(nodes: Sequence[Node]) -> list[str]:
    """Return nodes as JSON in batches for one request each, under their headings, a line for each section."""
    batches = []
    for start in range(0, len(nodes), BATCH_NODES):
        sections = []
        for (file, *headings), run in groupby(nodes[start : start + BATCH_NODES], key=trail_of):
            texts = [{"id": node.id, "text": shortened(node.text, MAX_TEXT_CHARS)} for node in run]
            section = {"file": file, "headings": headings, "nodes": texts}
            sections.append(sendable(json.dumps(section, ensure_ascii=False)))
        batches.append('{"sections": [\n' + ",\n".join(sections) + "\n]}\n")
    return batches


def handout(nodes: Sequence[Node], command: str) -> str:
    """Return the prompt and nodes for an agent, which hands in its answer by a command that reads a file."""
    task = f"Write one answer for all nodes below to a file, answer.json, and run\n\n  {command}\n"
    return "\n".join([PROMPT, task, *batches_of(nodes)])


def ask_model(
    endpoint: Endpoint,
    nodes: Sequence[Node],
    wanted: Sequence[Node],
    *,
    concurrency: int,
    taken: Callable[[Notes, list[str]], None],
) -> None:
    """Ask a model for notes on the `wanted` of all nodes of a skill, at most `concurrency` batches at a time.

    `taken` is called with the notes of each batch and why entries are left out; one call at a time.

    Raises:
        EnrichmentError: A batch failed. Requests under way are awaited, and their notes taken, first.
        MissingExtraError: The `openai` package is not installed.
    """
    digests, taking = {node.id: digest_of(node) for node in nodes}, Lock()

    def ask(batch: str) -> None:
        messages = [Message("system", PROMPT), Message("user", batch)]
        read = partial(notes_in, digests=digests)
        found = chat_json(endpoint, messages, schema=ANSWER_SCHEMA, schema_name="node_notes", read=read)
        with taking:
            taken(*found)

    with ThreadPoolExecutor(concurrency, "skillpager-enrich") as pool:
        try:
            # a failure cancels the batches that have not begun
            list(pool.map(ask, batches_of(wanted)))
        except EndpointError as error:
            raise EnrichmentError(
                f'The model "{endpoint.model}" could not be asked: {error}. What was answered is kept: '
                "correct the cause and repeat the command, which asks for what is missing."
            ) from None
