"""The folder of a benchmark: one JSONL file for each kind of record, and a manifest.

    skills.jsonl  queries.jsonl  nodes.jsonl
    selections/<method>.jsonl    judgments/<judge>/<method>.jsonl
    queries/<skill>.json         votes/<judge>.jsonl    what models and people answered
    manifest.json                seeds, ids of models and prompts, versions, digests of the data

Records are appended as they come, so that a killed run loses the line it was writing at most: a line cut
short is dropped, with a warning, when the file is read again.
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from skillpager.atomic_write import write_file
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    Record,
    SelectionRecord,
    SkillRecord,
)
from skillpager.errors import BenchError
from skillpager.output.json import JsonObject, JsonValue

logger = logging.getLogger(__name__)

AnyRecord = TypeVar("AnyRecord", bound=Record)

SKILLS, QUERIES, NODES = "skills.jsonl", "queries.jsonl", "nodes.jsonl"
MANIFEST = "manifest.json"
JSONL = ".jsonl"


class BenchFolder:
    """Reads and writes one benchmark folder. One process writes at a time."""

    def __init__(self, path: Path) -> None:
        """Name the folder; it is made at the first write."""
        self.path = path

    # ---- data

    def skills(self) -> list[SkillRecord]:
        """Return the skills.

        Raises:
            BenchError: There are none, or a line is damaged.
        """
        return list(self._required(SKILLS, SkillRecord))

    def queries(self) -> list[QueryRecord]:
        """Return the queries; none before they are generated.

        Raises:
            BenchError: A line is damaged.
        """
        return list(read_records(self.path / QUERIES, QueryRecord))

    def nodes(self) -> list[NodeRecord]:
        """Return the nodes; none before a run."""
        return list(read_records(self.path / NODES, NodeRecord))

    # ---- results

    def selections_file(self, method: str) -> Path:
        """Return where the selections of a method stand."""
        return self.path / "selections" / f"{file_name(method)}{JSONL}"

    def judgments_file(self, judge: str, method: str) -> Path:
        """Return where a judge's verdicts on a method stand."""
        return self.path / "judgments" / file_name(judge) / f"{file_name(method)}{JSONL}"

    def selections(self, method: str) -> list[SelectionRecord]:
        """Return the selections of a method, none if it did not run."""
        return list(read_records(self.selections_file(method), SelectionRecord))

    def judgments(self, judge: str, method: str) -> list[JudgmentRecord]:
        """Return a judge's verdicts on a method, none if it did not judge."""
        return list(read_records(self.judgments_file(judge, method), JudgmentRecord))

    def methods(self) -> list[str]:
        """Return the labels of the methods that have selections, sorted."""
        return _labels((self.path / "selections").glob(f"*{JSONL}"))

    def judges(self) -> list[str]:
        """Return the ids of the judges that have judged something, sorted."""
        return _labels(path for path in (self.path / "judgments").glob("*") if path.is_dir())

    def judged_methods(self, judge: str) -> list[str]:
        """Return the labels of the methods that a judge has judged, sorted."""
        return _labels((self.path / "judgments" / file_name(judge)).glob(f"*{JSONL}"))

    def find_judge(self, name: str) -> str:
        """Return the judge of that id, or the only one whose id begins so, such as `llm`.

        Raises:
            BenchError: There is none, or there are several.
        """
        if not self.path.is_dir():
            raise BenchError(
                f"There is no benchmark folder at {self.path}: make one with `skillpager bench run`."
            )
        judges = self.judges()
        found = [judge for judge in judges if judge == name] or [j for j in judges if j.startswith(name)]
        if len(found) == 1:
            return found[0]
        known = (
            f"name one of {', '.join(found or judges)}" if judges else "run `skillpager bench judge` first"
        )
        what = "has several judges that begin with" if found else "holds no verdicts of the judge"
        raise BenchError(f"{self.path} {what} {name!r}: {known}.")

    # ---- manifest

    def manifest(self) -> JsonObject:
        """Return the manifest, empty when there is none.

        Raises:
            BenchError: It is damaged.
        """
        path = self.path / MANIFEST
        try:
            loaded = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise BenchError(
                f"{path} cannot be read ({error}): restore it, or use another folder."
            ) from error
        if not isinstance(loaded, dict):
            raise BenchError(f"{path} is no JSON object: restore it, or use another folder.")
        return loaded

    def update_manifest(self, changes: Mapping[str, JsonValue]) -> None:
        """Add entries to the manifest, atomically; entries of the same name are replaced."""
        merged = {**self.manifest(), **changes}
        write_file(self.path / MANIFEST, json.dumps(merged, indent=2, ensure_ascii=False) + "\n")

    def _required(self, name: str, kind: type[AnyRecord]) -> Iterator[AnyRecord]:
        path = self.path / name
        if not path.is_file():
            raise BenchError(
                f"{self.path} is no benchmark folder, it has no {name}: "
                "make one with `skillpager bench data`."
            )
        return read_records(path, kind)


def _labels(paths: Iterable[Path]) -> list[str]:
    """Return the labels that files or folders were named for, sorted."""
    return sorted(unquote(path.name.removesuffix(JSONL)) for path in paths)


def file_name(label: str) -> str:
    """Return the name of a file for a method or judge, whatever characters it has."""
    name = quote(label, safe="@=,.+- ()")
    # no hidden files, and no `..`, which is another folder
    return f"%2E{name[1:]}" if name.startswith(".") else name


def read_records(path: Path, kind: type[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the records of a JSONL file, none when it is missing; a cut last line is dropped.

    Raises:
        BenchError: A line is no such record; the message names file and line.
    """
    try:
        lines = path.open("rb")
    except FileNotFoundError:
        return
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield kind.from_json(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    logger.warning("%s:%d was cut short and is dropped", path, number)
                    return
                raise BenchError(
                    f"{path}:{number} is no {kind.__name__} ({error}): mend or remove the line."
                ) from error


def append_records(path: Path, records: Iterable[Record]) -> None:
    """Append records to a JSONL file, made if need be; a cut last line is removed first.

    A last line that lacks nothing but its line break is kept: it counts as done for those who read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        _mend_last_line(file.fileno())
        file.write("".join(f"{record.to_json()}\n" for record in records).encode())


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a JSONL file anew, atomically."""
    write_file(path, "".join(f"{record.to_json()}\n" for record in records))


def _mend_last_line(descriptor: int) -> None:
    """End the last line of a file with a line break, or cut it off where it is not whole."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    end, block = size, 65_536
    while end > 0:
        start = max(0, end - block)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end == size:
        return
    if _is_json(os.pread(descriptor, size - end, end)):
        os.lseek(descriptor, 0, os.SEEK_END)
        os.write(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, end)
    os.lseek(descriptor, 0, os.SEEK_END)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
