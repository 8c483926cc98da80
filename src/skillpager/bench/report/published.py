"""Published results: the rows of a run without its texts, from which every number of a report comes back.

    manifest.json    settings, data, suites and methods of the run, and the judge
    skills.csv       subset, SHA-256 and node counts of each skill
    rows.csv.xz      a row for each query and method: ids, verdict, counts, picks; `pandas.read_csv` reads it

Times are left out: two runs of the same models on the same data give the same rows. The format is
described in docs/measured.md.
"""

import lzma
from functools import cached_property
from pathlib import Path

import pandas as pd

from skillpager.bench.data.folder import MANIFEST, BenchFolder
from skillpager.bench.data.records import NodeRecord, QueryRecord, SkillRecord
from skillpager.bench.report.results import NUMBERS, Results, join
from skillpager.errors import BenchError
from skillpager.files import write_file
from skillpager.types import NodeType

SKILL_ROWS, ROWS = "skills.csv", "rows.csv.xz"
JUDGE = "judge"  # entry of the manifest
PRESET = 6  # of xz: higher ones save 7 % of the bytes for several times the time
COVERAGE_DIGITS = 6
TIMES = "seconds"
COUNTS = tuple(name for name in NUMBERS if name not in (TIMES, "coverage"))
IDS = ("query", "skill", "difficulty", "method")
COLUMNS = (*IDS, *(name for name in NUMBERS if name != TIMES), "picks")
KINDS = {**dict.fromkeys(COLUMNS, "float"), **dict.fromkeys((*IDS, "picks"), "str")}
SKILL_KINDS = {
    **dict.fromkeys(("skill", "subset", "sha256"), "str"),
    **dict.fromkeys(map(str, NodeType), "int"),
}


def publish(results: Results, target: Path) -> None:
    """Write the rows of every method that a judge has judged, and what tables need to know of the data.

    Raises:
        BenchError: The folder of the results is damaged.
    """
    skills = pd.DataFrame(
        [(skill.id, skill.subset, skill.text_sha256) for skill in results.skills],
        columns=["skill", "subset", "sha256"],
    )
    nodes = pd.DataFrame([(node.skill, str(node.type)) for node in results.nodes], columns=["skill", "type"])
    types = pd.crosstab(nodes["skill"], nodes["type"])
    types = types.reindex(index=skills["skill"], columns=list(map(str, NodeType)), fill_value=0)
    rows = pd.concat(
        [results.rows(label).assign(method=label) for label in filter(results.has, results.labels)]
    )
    # by query, so that similar picks stand together, which xz makes small
    places = {query.id: place for place, query in enumerate(results.queries)}
    rows = rows.sort_values("query", key=lambda ids: ids.map(places), kind="stable")
    rows = rows.assign(
        difficulty=rows["query"].map({query.id: query.difficulty for query in results.queries}),
        coverage=rows["coverage"].round(COVERAGE_DIGITS),
        **{name: rows[name].astype("Int64") for name in COUNTS},
    )[list(COLUMNS)]
    BenchFolder(target).update_manifest({**results.manifest, JUDGE: results.judge})
    text = skills.join(types, on="skill").to_csv(index=False, lineterminator="\n")
    write_file(target / SKILL_ROWS, text)
    text = rows.to_csv(index=False, lineterminator="\n")
    write_file(target / ROWS, lzma.compress(text.encode(), preset=PRESET))


class PublishedFolder(BenchFolder):
    """Reads published results as a benchmark folder; skills and queries have no texts, nodes no places.

    Its methods raise `BenchError` where a file is missing or damaged.
    """

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows of all methods, with the columns `COLUMNS`."""
        return self._read(ROWS, KINDS)

    @cached_property
    def _skills(self) -> pd.DataFrame:
        return self._read(SKILL_ROWS, SKILL_KINDS)

    def skills(self) -> list[SkillRecord]:
        """Return the skills, without their texts."""
        pairs = self._skills[["skill", "subset"]].itertuples(index=False)
        return [SkillRecord(skill, skill, "", (("", ""),), subset) for skill, subset in pairs]

    def queries(self) -> list[QueryRecord]:
        """Return the queries that have rows, without their texts."""
        asked = self.rows.drop_duplicates("query")[["query", "skill", "difficulty"]].itertuples(index=False)
        return [QueryRecord(query, skill, "", "", difficulty) for query, skill, difficulty in asked]

    def nodes(self) -> list[NodeRecord]:
        """Return the nodes of the skills by type, without their places."""
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
        return self.methods() if judge in self.judges() else []

    def methods(self) -> list[str]:
        """Return the labels of the methods that have rows."""
        return sorted(self.rows["method"].unique())

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
        none = join((), {}, ())
        rows = self.folder.rows.assign(**{TIMES: float("nan")})
        grouped = rows.groupby("method", sort=False)
        return {str(label): group[list(none)].reset_index(drop=True) for label, group in grouped}

    def _read(self, label: str) -> pd.DataFrame:
        return self._by_method.get(label, join((), {}, ()))
