"""The results of a run under one judge, without the texts of the pages; and results that are published.

Published results are the rows of a run without times, from which every number of a report comes back:

    manifest.json    settings, data, suites and methods of the run, and the judge
    skills.csv       subset, SHA-256 and node counts of each skill
    rows.csv.xz      a row for each query and method: ids, verdict, counts, picks; `pandas.read_csv` reads it
"""

import logging
import lzma
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from skillpager.bench.data.evidence import MANIFEST
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import JudgmentRecord, QueryRecord, SelectionRecord, expand, read_records
from skillpager.bench.judge.evidence_measure import rank_measures
from skillpager.bench.run import learned
from skillpager.bench.run.methods import SUITES, parse_method
from skillpager.bench.run.windows import CHUNK_MMR, SECTION_BM25
from skillpager.errors import BenchError
from skillpager.files import write_file
from skillpager.json_types import JsonObject
from skillpager.parsing.lines import LINE_END
from skillpager.types import NodeType

logger = logging.getLogger(__name__)

# a method is shown when this share of it is judged: a part, such as the pages that it has in common with
# another method, is easier or harder than the whole
MIN_JUDGED = 0.9

# the paper's ablations and sweeps are on the skills with curated answers (§5.2.2): the subset of the paper's
# data, and the evidence data that annotates the same skills
GROUND_TRUTH = frozenset({"gt", "skillsbench"})

# the method that the others are compared with: the paper's
BASELINE = "mmr"

# the numbers of a row, without the ids of its query and of the query's skill
NUMBERS = (
    "sufficient",  # 1 where the judge held the page for sufficient, else 0
    "coverage",  # share of the evidence in the page, 0 to 1; NaN where the judge measures none
    "unanimous",  # 1 where all votes agree, else 0; NaN where there is one vote
    "nodes",  # nodes in the page
    "tokens",  # tokens of the page
    "full_tokens",  # tokens of the skill without front matter
    "node_tokens",  # tokens of the nodes in the page
    "pool_tokens",  # tokens of all typed nodes of the skill
    "seconds",  # time of selection and rendering; NaN in published rows
)
# of the picks against the nodes that hold needed lines, 0 to 1; NaN where picks are not nodes (chunks)
RANKED = ("recall", "ap", "ndcg")
COLUMNS = ["query", "skill", *NUMBERS, *RANKED, "picks"]
TYPE_NAMES = [str(kind) for kind in NodeType]
LINKED = "linked"  # nodes with an edge of reference or condition


class Results:
    """The verdicts of one judge on the methods of a benchmark folder.

    Attributes:
        judge: Id of the judge.
        skills: By id, `subset`, `sha256` of the entry file, and numbers of nodes: of each type, and `linked`.
        queries: The columns `query`, `skill`, `difficulty`, and `depth`: where the needed lines are in the
            skill, their mean from 0 (the first line) to 1 (the last); NaN without any.
        labels: Every method that was run, in the order of the suites.
        learned: How many of the skills each method has learned from, without those that learned from none.
        allow_trained: Whether these methods have rows.
        baseline: Label of the method that the others are compared with.
    """

    skills: pd.DataFrame
    queries: pd.DataFrame
    learned: Mapping[str, int]

    def __init__(
        self, folder: BenchFolder, judge: str, *, allow_trained: bool = False, baseline: str = BASELINE
    ) -> None:
        """Read data and manifest; the rows of a method are read when they are first asked for.

        Raises:
            BenchError: The folder is none, the judge has judged nothing in it, all methods have learned
                from its skills, or the baseline is another than the paper's and was not run.
        """
        self.folder, self.judge, self.allow_trained = folder, judge, allow_trained
        self.baseline = parse_method(baseline).label
        self.manifest: JsonObject = folder.manifest()
        run = self.folder.entry("methods")
        known = [label for name in ("offline", *SUITES) for label in SUITES[name] if label in run]
        self.labels = tuple(dict.fromkeys([*known, *run]))
        self._rows: dict[str, pd.DataFrame] = {}
        self._open()
        if self.refused_note and set(self.labels) <= self.learned.keys():
            raise BenchError(self.refused_note)
        if self.baseline not in (BASELINE, *self.labels):
            raise BenchError(
                f"{folder.path} has no run of the baseline {self.baseline}: run it with "
                f"`skillpager bench run --methods`, or choose from {', '.join(self.labels)}."
            )

    def _open(self) -> None:
        """Read skills and queries."""
        folder, run = self.folder, self.folder.entry("run")
        records = [(skill.id, skill.subset, skill.text_sha256) for skill in folder.skills()]
        skills = pd.DataFrame(records, columns=["skill", "subset", "sha256"]).set_index("skill")
        places = [(node.skill, node.type, node.edges > 0) for node in folder.nodes()]
        nodes = pd.DataFrame(places, columns=["skill", "type", LINKED])
        counts = pd.crosstab(nodes["skill"], nodes["type"])
        counts = counts.reindex(index=skills.index, columns=TYPE_NAMES, fill_value=0)
        self.skills = skills.join(counts).join(nodes.groupby("skill")[LINKED].sum())
        lengths = {skill.id: len(LINE_END.findall(skill.text)) + 1 for skill in folder.skills()}
        asked = [
            (query.id, query.skill, query.difficulty, depth(query, lengths[query.skill]))
            for query in folder.queries()
        ]
        self.queries = pd.DataFrame(asked, columns=[*QUERY_COLUMNS, "depth"])
        if not set(folder.judged_methods(self.judge)) & set(self.labels):
            raise BenchError(
                f"{folder.path} holds no verdicts of the judge {self.judge!r} on a method that was run: "
                "judge with `skillpager bench judge`, or name another with --judge."
            )
        parts = {name: str(run.get(name, "")) for name in ("encoder", "classifier")}
        self._digests: list[Collection[str]] = [skill.digests for skill in folder.skills()]
        known = learned.count_learned(self.labels, self._digests, **parts)
        # the run has noted what its encoder learned from; of shipped models it is known without it
        self.learned = {**known, **self.folder.entry(learned.LEARNED)}

    @property
    def node_counts(self) -> "pd.Series[int]":
        """The number of nodes of each skill."""
        return self.skills[TYPE_NAMES].sum(axis=1)

    @property
    def ablation_skills(self) -> frozenset[str]:
        """The skills of ablations and sweeps: the ground truth where the data has it, else all."""
        curated = self.skills.index[self.skills["subset"].isin(GROUND_TRUTH)]
        return frozenset(curated if len(curated) else self.skills.index)

    # ---- rows

    def rows(self, label: str, skills: Collection[str] | None = None) -> pd.DataFrame:
        """Return the rows of a method, in the order of the queries; of the queries about `skills` if given.

        There are none if it was not run, if less than `MIN_JUDGED` of its pages were judged, or if it has
        learned from the skills and that is not allowed.
        """
        if label not in self._rows:
            refused = label in self.learned and not self.allow_trained
            self._rows[label] = pd.DataFrame(columns=COLUMNS) if refused else self._read(label)
        rows = self._rows[label]
        return rows if skills is None else rows[rows["skill"].isin(skills)]

    def has(self, label: str) -> bool:
        """Return True if a method was run and judged."""
        return len(self.rows(label)) > 0

    def common(self, *labels: str) -> list[pd.DataFrame]:
        """Return the rows of methods on the queries that all of them have."""
        rows = [self.rows(label) for label in labels]
        shared = set.intersection(*(set(each["query"]) for each in rows))
        return [each[each["query"].isin(shared)] for each in rows]

    def _read(self, label: str) -> pd.DataFrame:
        judgments = {record.query: record for record in self.folder.judgments(self.judge, label)}
        selections = read_records(self.folder.selections_file(label), SelectionRecord) if judgments else ()
        rows = join(selections, judgments, self.queries["query"])
        if not label.startswith((CHUNK_MMR, SECTION_BM25)):  # which pick no nodes
            pairs = zip(rows["query"], rows["picks"], strict=True)
            ranked = [rank_measures(picks.split(), self._needed_nodes.get(query)) for query, picks in pairs]
            rows[list(RANKED)] = np.array(ranked, dtype=float).reshape(-1, len(RANKED))
        judged, total = len(rows), len(self.queries)
        if 0 < judged < total:
            left_out = ", so that it is left out" if judged < MIN_JUDGED * total else ""
            logger.warning(
                "%s: %s has judged %d of %d contexts%s", label, self.judge, judged, total, left_out
            )
        return rows if judged >= MIN_JUDGED * total else rows[:0]

    @cached_property
    def _needed_nodes(self) -> Mapping[str, Collection[str]]:
        """By query, the ids of the nodes that hold needed lines; without the queries that have none."""
        before = {  # lines of the files before a file
            (skill.id, path): sum(len(LINE_END.findall(text)) + 1 for _, text in skill.files[:place])
            for skill in self.folder.skills()
            for place, (path, _) in enumerate(skill.files)
        }
        nodes: dict[str, list[tuple[str, range]]] = {}
        for node in self.folder.nodes():
            first = before.get((node.skill, node.file), 0)
            lines = range(first + node.start_line, first + node.end_line + 1)
            nodes.setdefault(node.skill, []).append((node.id, lines))
        needed = {query: expand(query.critical) for query in self.folder.queries() if query.critical}
        return {
            query.id: {node for node, places in nodes.get(query.skill, ()) if not lines.isdisjoint(places)}
            for query, lines in needed.items()
        }

    # ---- skills that methods have learned from: there they look better than they are

    @property
    def types_learned(self) -> bool:
        """Whether the run's classifier has learned from some of the skills."""
        folders = learned.classifier_folders(str(self.folder.entry("run").get("classifier", "")))
        known = frozenset[str]().union(*map(learned.read_learned_from, folders))
        return not all(known.isdisjoint(digests) for digests in self._digests)

    @cached_property
    def trained_note(self) -> str:
        """A sentence for every table and picture if methods are shown that have learned from the skills."""
        return learned.trained_note(self.learned, len(self.skills)) if self.allow_trained else ""

    @cached_property
    def refused_note(self) -> str:
        """Why methods are left out; empty if none is."""
        is_refused = bool(self.learned) and not self.allow_trained
        return learned.refusal(self.learned, len(self.skills)) if is_refused else ""


def depth(query: QueryRecord, lines: int) -> float:
    """Return the mean place of a query's needed lines in a skill of so many lines, 0 to 1; NaN if none."""
    needed = [*expand(query.critical)]
    return (float(np.mean(needed)) - 1) / max(1, lines - 1) if needed else np.nan


def join(
    selections: Iterable[SelectionRecord], judgments: Mapping[str, JudgmentRecord], queries: Iterable[str]
) -> pd.DataFrame:
    """Return the rows of a method's selections that have a verdict, in the order of `queries`.

    A verdict on another page than the selection's is ignored. Of two selections for one query the last
    counts. The texts of the pages are left out; `picks` are ids in the order of picking.
    """
    rows: dict[str, tuple[object, ...]] = {}
    for each in selections:
        verdict = judgments.get(each.query)
        if verdict is None or verdict.context_sha256 != each.context_sha256:
            continue
        rows[each.query] = (
            each.query,
            each.skill,
            verdict.sufficient,
            np.nan if verdict.coverage is None else verdict.coverage,
            len(set(verdict.votes)) == 1 if len(verdict.votes) > 1 else np.nan,
            len(each.nodes),
            each.tokens,
            each.full_tokens,
            each.node_tokens,
            each.pool_tokens,
            each.seconds,
            " ".join(each.picks),
        )
    found = [rows[query] for query in queries if query in rows]
    frame = pd.DataFrame(found, columns=["query", "skill", *NUMBERS, "picks"]).reindex(columns=COLUMNS)
    return frame.astype(dict.fromkeys((*NUMBERS, *RANKED), float))


# ---- published results

SKILL_ROWS, ROWS = "skills.csv", "rows.csv.xz"
JUDGE = "judge"  # entry of the manifest
PRESET = 6  # of xz: higher ones save 7 % of the bytes for several times the time
COVERAGE_DIGITS = 6
QUERY_COLUMNS = ("query", "skill", "difficulty")
IDS = (*QUERY_COLUMNS, "method")
MEASURED = tuple(name for name in NUMBERS if name != "seconds")
ADDED = (*RANKED, "depth")  # rows that were published earlier lack them
PUBLISHED = [*IDS, *MEASURED, *ADDED, "picks"]


def publish(results: Results, target: Path) -> None:
    """Write the rows of every method that a judge has judged, and what tables need to know of the data."""
    judged = filter(results.has, results.labels)
    rows = pd.concat([results.rows(label).assign(method=label) for label in judged])
    # by query, so that similar picks stand together, which xz makes small
    places = pd.Series(results.queries.index, index=results.queries["query"])
    rows = rows.sort_values("query", key=lambda ids: ids.map(places), kind="stable")
    rows = rows.merge(results.queries.drop(columns="skill"), on="query", how="left")
    whole = {name: rows[name].astype("Int64") for name in MEASURED if name != "coverage"}
    shares = rows[["coverage", *ADDED]].round(COVERAGE_DIGITS)
    rows = rows.assign(**shares, **whole)[PUBLISHED]
    BenchFolder(target).update_manifest({**results.manifest, JUDGE: results.judge})
    write_file(target / SKILL_ROWS, results.skills.to_csv(lineterminator="\n"))
    text = rows.to_csv(index=False, lineterminator="\n")
    write_file(target / ROWS, lzma.compress(text.encode(), preset=PRESET))


class PublishedResults(Results):
    """Results of published rows: tables and figures are made of them as of the run itself, but for times."""

    def __init__(self, path: Path) -> None:
        """Read what is published.

        Raises:
            BenchError: Nothing is, or a file is damaged.
        """
        folder = BenchFolder(path)
        judge = folder.manifest().get(JUDGE)
        if not isinstance(judge, str):
            raise BenchError(f"{path} holds no published results: its {MANIFEST} names no judge.")
        super().__init__(folder, judge, allow_trained=True)

    def _open(self) -> None:
        texts = dict.fromkeys(("skill", "subset", "sha256"), "str")
        skills = self._read_csv(SKILL_ROWS, texts | dict.fromkeys(TYPE_NAMES, "int") | {LINKED: "float"})
        self.skills = skills.set_index("skill")
        self._digests = [(digest,) for digest in skills["sha256"]]
        kinds = dict.fromkeys((*IDS, "picks"), "str") | dict.fromkeys((*MEASURED, *ADDED), "float")
        self._published = self._read_csv(ROWS, kinds).assign(seconds=np.nan)
        self.queries = self._published.drop_duplicates("query")[[*QUERY_COLUMNS, "depth"]]
        self.learned = self.folder.entry(learned.LEARNED)

    def _read(self, label: str) -> pd.DataFrame:
        rows = self._published
        return rows.loc[rows["method"] == label, COLUMNS].reset_index(drop=True)

    def _read_csv(self, name: str, kinds: dict[str, str]) -> pd.DataFrame:
        path = self.folder.path / name
        # an id may be `null`, and picks may be none
        missing = {column: [""] for column, kind in kinds.items() if kind == "float"}
        try:
            read = pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values=missing)
            lacking = {name: np.nan for name in (*ADDED, LINKED) if name in kinds and name not in read}
            return read.assign(**lacking)[list(kinds)]
        except (OSError, EOFError, lzma.LZMAError, ValueError, KeyError) as error:
            raise BenchError(
                f"{path} cannot be read ({error}): restore it, or publish the run again with "
                "`python benchmarks/publish.py`."
            ) from error
