"""Published results: the rows of a run without its texts, from which every number of a report comes back.

    manifest.json    settings, data, suites and methods of the run, and the judge
    skills.csv       subset, SHA-256 and node counts of each skill
    rows.csv.xz      a row for each query and method: ids, verdict, counts, picks; `pandas.read_csv` reads it

Times are left out: two runs of the same models on the same data give the same rows. The format is
described in docs/benchmark-format.md.
"""

import lzma
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pandas as pd

from skillpager.bench.data.folder import MANIFEST, BenchFolder
from skillpager.bench.data.records import NodeRecord, QueryRecord, SkillRecord
from skillpager.bench.report.measures import NUMBERS, join
from skillpager.bench.report.results import Results
from skillpager.errors import BenchError
from skillpager.files import write_file
from skillpager.types import NodeType

SKILL_ROWS, ROWS = "skills.csv", "rows.csv.xz"
# entry of the manifest
JUDGE = "judge"
# of xz: higher ones save 7 % of the bytes for several times the time
PRESET = 6
COVERAGE_DIGITS = 6
NAMES = ("query", "skill", "difficulty", "method")
TIMES = "seconds"
COUNTS = tuple(name for name in NUMBERS if name not in (TIMES, "coverage"))
COLUMNS = (*NAMES, *(name for name in NUMBERS if name != TIMES), "picks")
TEXTS = (*NAMES, "picks")


def publish(results: Results, target: Path) -> None:
    """Write the rows of every method that a judge has judged, and what tables need to know of the data.

    Raises:
        BenchError: The folder of the results is damaged.
    """
    made_of = {kind: Counter[str]() for kind in NodeType}
    for node in results.nodes:
        made_of[NodeType(node.type)][node.skill] += 1
    skills = pd.DataFrame(
        {
            "skill": skill.id,
            "subset": skill.subset,
            "sha256": skill.text_sha256,
            **{str(kind): made_of[kind][skill.id] for kind in NodeType},
        }
        for skill in results.skills
    )
    manifest = BenchFolder(target)
    manifest.update_manifest({**results.manifest, JUDGE: results.judge})
    write_file(target / SKILL_ROWS, skills.to_csv(index=False, lineterminator="\n"))
    text = _all_rows(results).to_csv(index=False, lineterminator="\n")
    write_file(target / ROWS, lzma.compress(text.encode(), preset=PRESET))


def _all_rows(results: Results) -> pd.DataFrame:
    """Return the rows of all methods, by query: similar picks stand together, which xz makes small."""
    difficulty = {query.id: query.difficulty for query in results.queries}
    labels = filter(results.has, results.labels)
    rows = pd.concat([results.rows(label).assign(method=label) for label in labels])
    places = {query.id: place for place, query in enumerate(results.queries)}
    ordered = rows.sort_values("query", key=lambda ids: ids.map(places), kind="stable")
    return ordered.assign(
        difficulty=ordered["query"].map(difficulty),
        coverage=ordered["coverage"].round(COVERAGE_DIGITS),
        **{name: ordered[name].astype("Int64") for name in COUNTS},
    )[list(COLUMNS)]


class PublishedFolder(BenchFolder):
    """Reads published results as a benchmark folder; skills and queries have no texts, nodes no places."""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows of all methods, with the columns `COLUMNS`.

        Raises:
            BenchError: The file is missing or damaged.
        """
        kinds = {**dict.fromkeys(COLUMNS, "float"), **dict.fromkeys(TEXTS, "str")}
        return self._read(ROWS, kinds)

    def skills(self) -> list[SkillRecord]:
        """Return the skills, without their texts.

        Raises:
            BenchError: The file is missing or damaged.
        """
        return [
            SkillRecord(row["skill"], row["skill"], "", (("", ""),), row["subset"])
            for row in self._skills.to_dict("records")
        ]

    def queries(self) -> list[QueryRecord]:
        """Return the queries that have rows, without their texts.

        Raises:
            BenchError: The file is missing or damaged.
        """
        asked = self.rows.drop_duplicates("query")[["query", "skill", "difficulty"]]
        return [
            QueryRecord(query, skill, "", "", difficulty)
            for query, skill, difficulty in asked.itertuples(index=False)
        ]

    def nodes(self) -> list[NodeRecord]:
        """Return the nodes of the skills by type, without their places.

        Raises:
            BenchError: The file is missing or damaged.
        """
        return [
            NodeRecord(row["skill"], "", str(kind), 0.0, "", 0, 0, 0, 0, 0)
            for row in self._skills.to_dict("records")
            for kind in NodeType
            for _ in range(int(row[str(kind)]))
        ]

    def judges(self) -> list[str]:
        """Return the id of the judge, if anything is published here."""
        judge = self.manifest().get(JUDGE)
        return [judge] if isinstance(judge, str) else []

    def judged_methods(self, judge: str) -> list[str]:
        """Return the labels of the methods that have rows."""
        return sorted(self.rows["method"].unique()) if judge in self.judges() else []

    def methods(self) -> list[str]:
        """Return the labels of the methods that have rows."""
        return sorted(self.rows["method"].unique())

    @cached_property
    def _skills(self) -> pd.DataFrame:
        counts = dict.fromkeys(map(str, NodeType), "int")
        return self._read(SKILL_ROWS, {"skill": "str", "subset": "str", "sha256": "str", **counts})

    def _read(self, name: str, kinds: dict[str, str]) -> pd.DataFrame:
        path = self.path / name
        # an id may be `null`, and picks may be none
        missing = {column: [""] for column, kind in kinds.items() if kind == "float"}
        try:
            read = pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values=missing)
            return read[list(kinds)]
        except (OSError, EOFError, lzma.LZMAError, ValueError, KeyError) as error:
            raise BenchError(
                f"{path} cannot be read ({error}): restore it, or publish the run again with "
                "`python benchmarks/publish.py`."
            ) from error


class PublishedResults(Results):
    """Results of published rows: tables and figures are made of them as of the run itself, but for times."""

    folder: PublishedFolder

    def __init__(self, path: Path) -> None:
        """Read what is published.

        Raises:
            BenchError: Nothing is, or a file is damaged.
        """
        folder = PublishedFolder(path)
        judges = folder.judges()
        if not judges:
            raise BenchError(f"{path} holds no published results: its {MANIFEST} names no judge.")
        super().__init__(folder, judges[0])

    @cached_property
    def _by_method(self) -> dict[str, pd.DataFrame]:
        return dict(self._split())

    def _split(self) -> Iterator[tuple[str, pd.DataFrame]]:
        columns = list(join((), {}, ()).columns)
        for label, rows in self.folder.rows.groupby("method", sort=False):
            yield str(label), rows.assign(**{TIMES: float("nan")})[columns].reset_index(drop=True)

    def _read(self, label: str) -> pd.DataFrame:
        return self._by_method.get(label, join((), {}, ()))
