"""Data into a benchmark folder: the same input gives the same bytes, and results are never orphaned."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from skillpager.bench.data.folder import QUERIES, SKILLS, BenchFolder, write_records
from skillpager.bench.data.records import QueryRecord, Record, SkillRecord
from skillpager.errors import BenchError
from skillpager.output.json import JsonObject, JsonValue

DATA = "data"


def write_data(
    folder: BenchFolder,
    skills: Sequence[SkillRecord],
    queries: Sequence[QueryRecord],
    *,
    source: str,
    details: Mapping[str, JsonValue],
) -> JsonObject:
    """Write skills, queries and the manifest's entry `data`; return that entry.

    Queries that are already in the folder stay when there are none to write: they may have been
    generated for these very skills.

    Args:
        folder: Where to.
        skills: At least one.
        queries: May be empty.
        source: Kind of the source, such as `evidence`.
        details: What else the manifest says of it, such as seeds.

    Raises:
        BenchError: There are no skills, or the folder holds results or generated queries for other data.
    """
    if not skills:
        raise BenchError(f"The source {source} has no skills: nothing was written to {folder.path}.")
    same_skills = _digest_of(folder, SKILLS) in (None, records_digest(skills))
    same_queries = not queries or _digest_of(folder, QUERIES) in (None, records_digest(queries))
    if not (same_skills and same_queries):
        _check_replaceable(folder)
    kept = queries if queries or not same_skills else folder.queries()
    # queries first: whoever is interrupted finds other skills and writes both again
    write_records(folder.path / QUERIES, kept)
    write_records(folder.path / SKILLS, skills)
    entry = data_entry(skills, kept, source=source, details=details)
    folder.update_manifest({DATA: entry})
    return entry


def data_entry(
    skills: Sequence[SkillRecord],
    queries: Sequence[QueryRecord],
    *,
    source: str,
    details: Mapping[str, JsonValue],
) -> JsonObject:
    """Return the manifest's entry `data`: source, details, counts, digests and the version that made it."""
    return {
        "source": source,
        **details,
        "skills": len(skills),
        "queries": len(queries),
        "skills_sha256": records_digest(skills),
        "queries_sha256": records_digest(queries),
        "version": version("skillpager"),
    }


def records_digest(records: Iterable[Record]) -> str:
    """Return the SHA-256 of the JSONL file that holds the records, hexadecimal."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(f"{record.to_json()}\n".encode())
    return digest.hexdigest()


def _digest_of(folder: BenchFolder, name: str) -> str | None:
    """Return the SHA-256 of a file of the folder, None when it is not there."""
    try:
        return hashlib.sha256((folder.path / name).read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _check_replaceable(folder: BenchFolder) -> None:
    """Make sure that no results, and no queries that cost something, rest on the data in the folder."""
    for name in ("selections", "judgments"):
        found = next((folder.path / name).rglob("*.jsonl"), None)
        if found:
            raise BenchError(
                f"{folder.path} holds results for other data ({found.relative_to(folder.path)}): "
                "choose another --out, or remove the folder."
            )
    generated = next((query for query in folder.queries() if query.origin.startswith("llm:")), None)
    if generated:
        raise BenchError(
            f"{folder.path} holds generated queries ({generated.origin}), which other data would "
            "replace: choose another --out, or remove the folder."
        )
