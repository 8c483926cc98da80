"""Asks a chat model, or the agent at hand, what the nodes of a skill are asked for."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.resources import files
from itertools import groupby

from skillpager.enrichment.notes import NodeNotes, read_answer
from skillpager.remote.chat import Message, chat_json, object_schema, tokens_in
from skillpager.remote.endpoint import Endpoint, shortened
from skillpager.sections import trail_of
from skillpager.types import Node

BATCH_NODES = 40
# beginning and end show what a long code block is needed for
MAX_TEXT_CHARS = 2000
PROMPT = files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8")

_TEXTS = {"type": "array", "items": {"type": "string"}}
_NODE = object_schema(id={"type": "string"}, asks=_TEXTS, **{"with": _TEXTS})
ANSWER_SCHEMA = object_schema(nodes={"type": "array", "items": _NODE})

Taken = Callable[[dict[str, NodeNotes], list[str], int], None]


def batches_of(nodes: Sequence[Node]) -> list[Sequence[Node]]:
    """Return nodes in batches for one request each."""
    return [nodes[start : start + BATCH_NODES] for start in range(0, len(nodes), BATCH_NODES)]


def batch_message(nodes: Sequence[Node]) -> str:
    """Return a batch as JSON, the nodes under their headings."""
    sections = [
        {
            "file": trail[0],
            "headings": trail[1:],
            "nodes": [{"id": node.id, "text": shortened(node.text, MAX_TEXT_CHARS)} for node in run],
        }
        for trail, run in groupby(nodes, key=trail_of)
    ]
    return json.dumps({"sections": sections}, ensure_ascii=False, indent=1)


def handout(nodes: Sequence[Node], command: str, count: Callable[[str], int], room: int | None) -> str:
    """Return the prompt and batches of nodes for an agent, which hands its answer in by a command.

    Args:
        nodes: The nodes that have no notes.
        command: Takes the answer from a file.
        count: Counts tokens.
        room: Most tokens of the batches; the first is there in any case. None for no limit.
    """
    shown: list[str] = []
    left = batches_of(nodes)
    while left and (not shown or room is None or count("".join(shown) + batch_message(left[0])) <= room):
        shown.append(batch_message(left.pop(0)))
    more = f"\n{sum(map(len, left))} nodes more follow when this answer is taken." if left else ""
    return (
        f"{PROMPT}\nThe nodes of all batches below have one answer. Write it to a file, such as answer.json, "
        f"and run\n\n  {command}\n\nwhich checks it, and says what it leaves out and why.{more}\n\n"
        + "\n\n".join(shown)
        + "\n"
    )


def ask_model(
    endpoint: Endpoint, nodes: Sequence[Node], wanted: Sequence[Node], *, concurrency: int, taken: Taken
) -> None:
    """Ask a model for notes, batch by batch.

    Args:
        endpoint: The model.
        nodes: All nodes of the skill.
        wanted: Those to ask for.
        concurrency: Most requests at a time.
        taken: Called in the calling thread with the notes of a batch, why entries are left out, and the
            tokens that its answers took.

    Raises:
        EndpointError: A batch failed. Requests under way are awaited, and their notes taken, first.
        MissingExtraError: The `openai` package is not installed.
    """

    def ask(batch: Sequence[Node]) -> tuple[dict[str, NodeNotes], list[str], int]:
        tokens: list[int] = []
        notes, faults = chat_json(
            endpoint,
            [Message("system", PROMPT), Message("user", batch_message(batch))],
            schema=ANSWER_SCHEMA,
            schema_name="node_notes",
            read=lambda data: read_answer(data, nodes),
            answered=lambda answer: tokens.append(tokens_in(answer)),
        )
        return notes, faults, sum(tokens)

    failures: list[BaseException] = []
    with ThreadPoolExecutor(concurrency, "skillpager-enrich") as pool:
        pending = [pool.submit(ask, batch) for batch in batches_of(wanted)]
        for future in as_completed(pending):
            if future.cancelled():
                continue
            if failure := future.exception():
                failures.append(failure)
                pool.shutdown(wait=False, cancel_futures=True)
            else:
                taken(*future.result())
    if failures:
        raise failures[0]
