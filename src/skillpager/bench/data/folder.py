"""The folder of a benchmark: one JSONL file for each kind of record, and a manifest.

    skills.jsonl  queries.jsonl  nodes.jsonl
    selections/<method>.jsonl    judgments/<judge>/<method>.jsonl
    votes/<judge>.jsonl          what models and people answered
    manifest.json                seeds, ids of models and prompts, versions, digests of the data

Records are appended as they come; a line cut short is dropped, with a warning, when the file is read again.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from skillpager.bench.data import evidence
from skillpager.bench.data.records import (
    JSONL,
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
    read_json,
    read_records,
    to_jsonl,
    write_records,
)
from skillpager.errors import BenchError
from skillpager.files import ENTRY_FILE, write_file
from skillpager.json_types import JsonObject, JsonValue
from skillpager.library import discover
from skillpager.parsing.skill import read_skill, skill_from_files
from skillpager.types import Skill

SKILLS, QUERIES, NODES = "skills.jsonl", "queries.jsonl", "nodes.jsonl"
# entry of the manifest
DATA = "data"


class BenchFolder:
    """Reads and writes one benchmark folder, created at the first write. One process writes at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def skills(self) -> list[SkillRecord]:
        """Return the skills."""
        path = self.path / SKILLS
        if not path.is_file():
            raise BenchError(
                f"{self.path} is no benchmark folder, it has no {SKILLS}: "
                "make one with `skillpager bench data`."
            )
        return list(read_records(path, SkillRecord))

    def queries(self) -> list[QueryRecord]:
        """Return the queries; none before they are generated."""
        return list(read_records(self.path / QUERIES, QueryRecord))

    def nodes(self) -> list[NodeRecord]:
        """Return the nodes; none before a run."""
        return list(read_records(self.path / NODES, NodeRecord))

    def selections_file(self, method: str) -> Path:
        """Return the path of the selections of a method."""
        return self.path / "selections" / f"{file_name(method)}{JSONL}"

    def judgments_file(self, judge: str, method: str) -> Path:
        """Return the path of a judge's verdicts on a method."""
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
        """Return the judge of that id, or the only one whose id begins so, such as `llm`."""
        judges = self.judges()
        found = [judge for judge in judges if judge == name] or [j for j in judges if j.startswith(name)]
        if len(found) == 1:
            return found[0]
        what = "has several judges that begin with" if found else "holds no verdicts of the judge"
        known = f"name one of {', '.join(judges)}" if judges else "run `skillpager bench judge` first"
        raise BenchError(f"{self.path} {what} {name!r}: {known}.")

    def manifest(self) -> JsonObject:
        """Return the manifest, empty when there is none."""
        path = self.path / evidence.MANIFEST
        return read_json(path, dict[str, Any]) if path.exists() else {}

    def entry(self, name: str) -> dict[str, Any]:
        """Return an entry of the manifest that is an object; empty if it is not there."""
        found = self.manifest().get(name)
        return found if isinstance(found, dict) else {}

    def update_manifest(self, changes: Mapping[str, JsonValue]) -> None:
        """Add entries to the manifest, atomically; entries of the same name are replaced."""
        merged = {**self.manifest(), **changes}
        write_file(self.path / evidence.MANIFEST, json.dumps(merged, indent=2, ensure_ascii=False) + "\n")


def _labels(paths: Iterable[Path]) -> list[str]:
    """Return the labels after which files or folders are named, sorted."""
    return sorted(unquote(path.name.removesuffix(JSONL)) for path in paths)


def file_name(label: str) -> str:
    """Return the file name for a method or judge; special characters are percent-encoded."""
    name = quote(label, safe="@=,.+- ()")
    # no hidden files, and no `..`, which is another folder
    return f"%2E{name[1:]}" if name.startswith(".") else name


def load_data(path: Path) -> tuple[list[SkillRecord], list[QueryRecord]]:
    """Return the skills and queries of a benchmark folder, or of a folder of evidence data.

    The subset of evidence data is the name of its folder.
    """
    if (path / SKILLS).is_file():
        folder = BenchFolder(path)
        skills, queries = folder.skills(), folder.queries()
    elif any(next(path.glob(f"*{name}"), None) for name in (evidence.ANNOTATION, evidence.FOLDER_ANNOTATION)):
        skills, queries = evidence.read_evidence(path, subset=path.resolve().name)
    else:
        raise BenchError(
            f"{path} holds no data: name a benchmark folder (with {SKILLS}) or evidence data (with "
            f"*{evidence.ANNOTATION}); `skillpager bench data` makes both."
        )
    _check_ids(path, skills, queries)
    return skills, queries


def _check_ids(path: Path, skills: Sequence[SkillRecord], queries: Sequence[QueryRecord]) -> None:
    known = Counter(skill.id for skill in skills)
    for name, ids in ((SKILLS, known), (QUERIES, Counter(query.id for query in queries))):
        if repeated := [identifier for identifier, times in ids.items() if times > 1]:
            raise BenchError(f"{path}: the id {repeated[0]!r} is twice in {name}: ids must be unique.")
    for query in queries:
        if query.skill not in known:
            raise BenchError(
                f"{path}: query {query.id!r} is about the skill {query.skill!r}, which is not in the data."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuery(QueryRecord):
    """A line of a file of queries: a `QueryRecord` in which only `skill` and `query` are required."""

    id: str = ""
    origin: str = "people"


def read_skills(paths: Sequence[Path]) -> list[SkillRecord]:
    """Return skills with all their files, those below a folder in the order of their paths.

    `paths` are skill folders, Markdown files, or folders that contain skills.
    """
    records = []
    for given in paths:
        places = [given]
        if not given.is_file() and not (given / ENTRY_FILE).is_file():
            places = [skill.path for skill in discover([given])]
        if not places:
            raise BenchError(f"{given} contains no skill: name a skill, or a folder with skills below it.")
        for path in places:
            skill = read_skill(path, scope="skill")
            source = {"folder": skill.root.name if skill.root else ""}
            source["license"] = skill.metadata.get("license", "")
            records.append(
                SkillRecord(
                    id=skill.name,
                    name=skill.name,
                    description=skill.description,
                    files=tuple((file.path, file.text) for file in skill.files),
                    subset="own",  # not of a published source
                    source={name: value for name, value in source.items() if value},
                )
            )
    return records


def read_queries(path: Path, skills: Sequence[SkillRecord]) -> list[QueryRecord]:
    """Return the queries of a JSONL file, by skill; one without an id gets `<skill>#<n>`."""
    if not path.is_file():
        raise BenchError(f"There is no file of queries at {path}.")
    numbers: Counter[str] = Counter()
    records = []
    for own in read_records(path, OwnQuery):
        numbers[own.skill] += 1
        records.append(QueryRecord(**{**asdict(own), "id": own.id or f"{own.skill}#{numbers[own.skill]}"}))
    _check_ids(path, skills, records)
    places = {skill.id: place for place, skill in enumerate(skills)}
    for record in records:
        skill = skills[places[record.skill]]
        document = f"{skill.files[0][0]} of {skill.id}"
        evidence.check_ranges(path, evidence.evidence_ranges(record), document=document, text=skill.text)
    return sorted(records, key=lambda record: places[record.skill])


def to_skill(record: SkillRecord) -> Skill:
    """Return the skill of a record, all its files included.

    Name and description are those of the front matter, else of the record.
    """
    skill = skill_from_files(record.files, name=record.name or record.id)
    return skill if skill.description else replace(skill, description=record.description)


def write_data(
    folder: BenchFolder,
    skills: Sequence[SkillRecord],
    queries: Sequence[QueryRecord],
    *,
    source: str,
    details: Mapping[str, JsonValue],
) -> None:
    """Write skills, queries and the manifest's entry `data`.

    The same data can be written again; without queries, those that are there are kept.
    `source` is its kind, such as `evidence`; `details` are further entries, such as seeds.
    """
    if not skills:
        raise BenchError(f"The source {source} has no skills: nothing was written to {folder.path}.")
    _check_ids(folder.path, skills, queries)
    if (folder.path / SKILLS).is_file():
        # they may have been generated for these skills
        queries = queries or folder.queries()
        if (folder.skills(), folder.queries()) != ([*skills], [*queries]):
            raise BenchError(f"{folder.path} holds other data: choose another --out, or remove the folder.")
    write_records(folder.path / QUERIES, queries)
    # last, because they make it a benchmark folder
    write_records(folder.path / SKILLS, skills)
    folder.update_manifest({DATA: {"source": source, **details, **data_entry(skills, queries)}})


def data_entry(skills: Sequence[SkillRecord], queries: Sequence[QueryRecord]) -> JsonObject:
    """Return of the manifest's entry `data` counts, digests and our version."""
    return {
        "skills": len(skills),
        "queries": len(queries),
        "skills_sha256": hashlib.sha256(to_jsonl(skills)).hexdigest(),
        "queries_sha256": hashlib.sha256(to_jsonl(queries)).hexdigest(),
        "version": version("skillpager"),
    }
