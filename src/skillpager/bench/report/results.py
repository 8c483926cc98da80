"""The results of a benchmark folder under one judge, read once and without the texts of the pages."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
    read_records,
)
from skillpager.bench.report.table import MISSING
from skillpager.bench.run.learned import (
    classifier_folders,
    count_learned,
    count_seen,
    noted_learned,
    read_learned_from,
    refusal,
    trained_note,
)
from skillpager.bench.run.own_parts import OWN
from skillpager.errors import BenchError
from skillpager.json_types import JsonObject
from skillpager.types import NodeType

logger = logging.getLogger(__name__)

# a method is shown when this share of it is judged: a part, such as the pages that it has in common with
# another method, is easier or harder than the whole
MIN_JUDGED = 0.9

# the paper's ablations and sweeps are on the skills with curated answers (§5.2.2): the subset of the paper's
# data, and the evidence data that annotates the same skills
GROUND_TRUTH = frozenset({"gt", "skillsbench"})

# the numbers of a row, without the ids of its query and of the query's skill
NUMBERS = (
    "sufficient",  # 1 where the judge held the page for sufficient, else 0
    "coverage",  # share of the evidence in the page, 0 to 1; NaN where the judge measures none
    "unanimous",  # 1 where all votes agree, else 0; NaN where there is one vote
    "nodes",  # nodes in the page
    "concepts",  # concept nodes in the page
    "tokens",  # tokens of the page
    "full_tokens",  # tokens of the skill without front matter
    "node_tokens",  # tokens of the nodes in the page
    "pool_tokens",  # tokens of all typed nodes of the skill
    "seconds",  # time of selection and rendering
)


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
            each.types.get(NodeType.CONCEPT, 0),
            each.tokens,
            each.full_tokens,
            each.node_tokens,
            each.pool_tokens,
            each.seconds,
            " ".join(each.picks),
        )
    found = [rows[query] for query in queries if query in rows]
    columns = ["query", "skill", *NUMBERS, "picks"]
    return pd.DataFrame(found, columns=columns).astype(dict.fromkeys(NUMBERS, float))


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """People and the judge on the same pages."""

    cases: int
    rate: float  # share of equal verdicts, 0 to 1
    kappa: float | None  # Cohen's κ, where it is defined


class Results:
    """The verdicts of one judge on the methods of a benchmark folder."""

    def __init__(self, folder: BenchFolder, judge: str, *, allow_trained: bool = False) -> None:
        """Read data and manifest; the rows of a method are read when they are first asked for.

        Args:
            folder: Results of a run.
            judge: Id of the judge.
            allow_trained: Whether methods that have learned from the skills have rows.

        Raises:
            BenchError: The folder is none, the judge has judged nothing in it, or all methods have learned
                from its skills.
        """
        self.allow_trained = allow_trained
        self.folder = folder
        self.judge = judge
        self.manifest: JsonObject = folder.manifest()
        self.skills: list[SkillRecord] = folder.skills()
        self.queries: list[QueryRecord] = folder.queries()
        self._rows: dict[str, pd.DataFrame] = {}
        suites = [label for name in self.entry("suites") for label in self.suite(name)]
        # every method of the manifest, in the order of its suites
        self.labels = tuple(dict.fromkeys([*suites, *self.entry("methods")]))
        if not set(folder.judged_methods(judge)) & set(self.labels):
            raise BenchError(
                f"{folder.path} holds no verdicts of the judge {judge!r} on a method that was run: "
                "judge with `skillpager bench judge`, or name another with --judge."
            )
        if self.refused_note and set(self.labels) <= self.learned.keys():
            raise BenchError(self.refused_note)

    def entry(self, name: str) -> Mapping[str, object]:
        """Return an entry of the manifest; empty if it is not there."""
        found = self.manifest.get(name)
        return found if isinstance(found, Mapping) else {}

    def suite(self, name: str) -> tuple[str, ...]:
        """Return the methods that were run under the name of a suite."""
        labels = self.entry("suites").get(name, ())
        return tuple(map(str, labels)) if isinstance(labels, list) else ()

    def own_meaning(self, strategy: str) -> str:
        """Return what a strategy that is not ours said of itself when it was run."""
        found = self.entry(OWN).get(strategy)
        says = found.get("says") if isinstance(found, Mapping) else None
        return f"Not of SkillPager: {says}" if says else "Not of SkillPager; it says nothing about itself."

    @cached_property
    def nodes(self) -> list[NodeRecord]:
        """The nodes of all skills."""
        return self.folder.nodes()

    @cached_property
    def node_counts(self) -> Mapping[str, int]:
        """The number of nodes of each skill."""
        return Counter(node.skill for node in self.nodes)

    @cached_property
    def ablation_skills(self) -> frozenset[str]:
        """The skills of ablations and sweeps: the ground truth where the data has it, else all."""
        ground_truth = frozenset(skill.id for skill in self.skills if skill.subset in GROUND_TRUTH)
        return ground_truth or frozenset(skill.id for skill in self.skills)

    @cached_property
    def validation(self) -> Mapping[str, JudgeAgreement]:
        """How people agree with the judge, by vote pattern and for `all`; empty unless it was scored."""
        scored = self.entry("validation").get(self.judge)
        groups = scored if isinstance(scored, Mapping) else {}
        return {name: JudgeAgreement(**group) for name, group in groups.items()}

    # ---- rows

    def rows(self, label: str, skills: Collection[str] | None = None) -> pd.DataFrame:
        """Return the rows of a method, in the order of the queries; of the queries about `skills` if given.

        There are none if it was not run, if less than `MIN_JUDGED` of its pages were judged, or if it has
        learned from the skills and that is not allowed.
        """
        if label not in self._rows:
            refused = label in self.learned and not self.allow_trained
            self._rows[label] = join((), {}, ()) if refused else self._read(label)
        rows = self._rows[label]
        return rows if skills is None else rows[rows["skill"].isin(skills)]

    def has(self, label: str) -> bool:
        """Return True if a method was run and judged."""
        return len(self.rows(label)) > 0

    def common(self, *labels: str, skills: Collection[str] | None = None) -> list[pd.DataFrame]:
        """Return the rows of methods on the queries that all of them have."""
        rows = [self.rows(label, skills) for label in labels]
        shared = set.intersection(*(set(each["query"]) for each in rows))
        return [each[each["query"].isin(shared)] for each in rows]

    def _read(self, label: str) -> pd.DataFrame:
        judgments = {record.query: record for record in self.folder.judgments(self.judge, label)}
        if not judgments:
            return join((), {}, ())
        selections = read_records(self.folder.selections_file(label), SelectionRecord)
        rows = join(selections, judgments, [query.id for query in self.queries])
        judged, total = len(rows), len(self.queries)
        if judged < total:
            left_out = ", so that it is left out" if judged < MIN_JUDGED * total else ""
            logger.warning(
                "%s: %s has judged %d of %d contexts%s", label, self.judge, judged, total, left_out
            )
        return rows if judged >= MIN_JUDGED * total else rows[:0]

    # ---- skills that methods have learned from: there they look better than they are

    @cached_property
    def learned(self) -> Mapping[str, int]:
        """How many of the skills each method has learned from, without those that learned from none."""
        run = self.entry("run")
        parts = {name: str(run.get(name, "")) for name in ("encoder", "classifier")}
        # the run has noted what its encoder learned from; of shipped models it is known without it
        return {**count_learned(self.labels, self.skills, **parts), **noted_learned(self.manifest)}

    @cached_property
    def types_learned(self) -> int:
        """From how many of the skills the run's classifier has learned."""
        folders = classifier_folders(str(self.entry("run").get("classifier", "")))
        return count_seen(self.skills, frozenset[str]().union(*map(read_learned_from, folders)))

    @cached_property
    def trained_note(self) -> str:
        """A sentence for every table and picture if methods are shown that have learned from the skills."""
        if not self.allow_trained:
            return ""
        of_types = {"the classifier": self.types_learned} if self.types_learned else {}
        return trained_note({**of_types, **self.learned}, len(self.skills))

    @cached_property
    def refused_note(self) -> str:
        """Why methods are left out; empty if none is."""
        return "" if self.allow_trained or not self.learned else refusal(self.learned, len(self.skills))


def run_facts(results: Results) -> list[tuple[str, str]]:
    """Return name and value of everything that the results depend on."""
    manifest = results.manifest
    run, run_data, described = (_entry(manifest, name) for name in ("run", "run_data", "data"))
    data = {**run_data, **described}
    subsets = ", ".join(dict.fromkeys(skill.subset for skill in results.skills if skill.subset))
    origins = ", ".join(dict.fromkeys(query.origin for query in results.queries if query.origin))
    about = (str(described.get("source") or ""), subsets, f"queries by {origins}" if origins else "")
    facts: dict[str, object] = {
        "Data": "; ".join(filter(None, about)),
        "Skills, queries": f"{len(results.skills):,}, {len(results.queries):,}",
        "Digest of the skills": str(data.get("skills_sha256") or "")[:12],
        "Judge": results.judge,
    }
    for name in ("encoder", "embedded_text", "classifier", "splitter", "token_counter", "baselines"):
        facts[name.capitalize().replace("_", " ")] = run.get(name)
    facts |= {
        "Page style": run.get("style"),
        "Methods": f"{sum(map(results.has, results.labels)):,}",
        "Seed": manifest.get("seed"),
        "Version": f"skillpager {manifest.get('version', MISSING)}",
        "Command": f"skillpager bench report {results.folder.path.name} --judge {results.judge}",
    }
    return [(name, MISSING if value in (None, "") else str(value)) for name, value in facts.items()]


def _entry(manifest: Mapping[str, object], name: str) -> Mapping[str, object]:
    entry = manifest.get(name)
    return entry if isinstance(entry, Mapping) else {}
