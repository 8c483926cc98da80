"""A folder of the layout that SkillRouter-Eval-Core is published in, of any size."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

Line = Mapping[str, object]

NAMESPACES = ("other", "development", "data", "design", "devops", "testing", "documents")


def truth(name: str, body: str = "# Title\n\nRun the tool.\n") -> Line:
    """Return a ground-truth skill."""
    fields = {"skill_id": f"gt/{name}", "name": name, "description": f"About {name}."}
    return {**fields, "body": body, "source": "gt"}


def pool(namespace: str, number: int, *, words: int = 20) -> Line:
    """Return a skill of the pool, whose body is told by its id."""
    name = f"skill-{number:05}"
    body = f"# {namespace} {number}\n\n" + f"Do step {number} of {namespace}. " * words
    fields = {"skill_id": f"{namespace}/{name}", "name": name, "description": ""}
    return {**fields, "body": body, "source": "pool"}


def pool_of(sizes: Mapping[str, int], *, words: int = 20) -> Iterator[Line]:
    """Yield so many skills of each namespace, the namespaces mixed."""
    left = dict(sizes)
    while left:
        for namespace in list(left):
            left[namespace] -= 1
            if left[namespace] < 0:
                del left[namespace]
            else:
                yield pool(namespace, left[namespace], words=words)


def write_skillrouter_folder(
    folder: Path,
    lines: Iterable[Line],
    *,
    parts: int = 3,
    tasks: Sequence[Line] = (),
    relevance: Mapping[str, Line] | None = None,
) -> Path:
    """Write the lines, dealt out over parts, with a manifest, tasks and relevance; return the folder."""
    (folder / "easy").mkdir(parents=True)
    names = [f"easy/part-{number:05}.jsonl.gz" for number in range(parts)]
    counts = dict.fromkeys(names, 0)
    with ExitStack() as stack:
        files = {name: stack.enter_context(_writer(folder / name)) for name in names}
        for number, line in enumerate(lines):
            name = names[number % parts]
            files[name].write(json.dumps(line) + "\n")
            counts[name] += 1
    easy = {
        "records": sum(counts.values()),
        "parts": [{"path": name, "records": counts[name]} for name in names],
    }
    (folder / "manifest.json").write_text(json.dumps({"dataset_name": "skillrouter-eval-core", "easy": easy}))
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    (folder / "relevance.json").write_text(json.dumps(relevance or {}))
    return folder


def _writer(path: Path) -> TextIO:
    return gzip.open(path, "wt", encoding="utf-8", compresslevel=1)
