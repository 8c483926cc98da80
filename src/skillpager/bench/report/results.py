"""The results of a benchmark folder under one judge, read once and without the texts of the pages."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import pandas as pd

from skillpager.bench.data.evidence import read_published
from skillpager.bench.data.folder import BenchFolder, read_records
from skillpager.bench.data.records import NodeRecord, QueryRecord, SelectionRecord, SkillRecord
from skillpager.bench.report.measures import join
from skillpager.bench.run.own_parts import OWN
from skillpager.classifiers.local import LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID
from skillpager.errors import BenchError
from skillpager.json_types import JsonObject

logger = logging.getLogger(__name__)

# a method is shown when this share of it is judged: a part, such as the pages that it has in common with
# another method, is easier or harder than the whole
MIN_JUDGED = 0.9

# the paper's ablations and sweeps are on the skills with curated answers (§5.2.2)
GROUND_TRUTH = "gt"


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """People and the judge on the same pages."""

    cases: int
    rate: float  # share of equal verdicts, 0 to 1
    kappa: float | None  # Cohen's κ, where it is defined


class Results:
    """The verdicts of one judge on the methods of a benchmark folder."""

    def __init__(self, folder: BenchFolder, judge: str) -> None:
        """Read data and manifest; the rows of a method are read when they are first asked for.

        Raises:
            BenchError: The folder is none, or the judge has judged nothing in it.
        """
        self.folder = folder
        self.judge = judge
        self.manifest: JsonObject = folder.manifest()
        self.skills: list[SkillRecord] = folder.skills()
        self.queries: list[QueryRecord] = folder.queries()
        self._rows: dict[str, pd.DataFrame] = {}
        if not set(folder.judged_methods(judge)) & set(self.labels):
            raise BenchError(
                f"{folder.path} holds no verdicts of the judge {judge!r} on a method that was run: "
                "judge with `skillpager bench judge`, or name another with --judge."
            )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Every method of the manifest, in the order of its suites."""
        suites = [label for name in self._entry("suites") for label in self.suite(name)]
        return tuple(dict.fromkeys([*suites, *self._entry("methods")]))

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
        ground_truth = frozenset(skill.id for skill in self.skills if skill.subset == GROUND_TRUTH)
        return ground_truth or frozenset(skill.id for skill in self.skills)

    @cached_property
    def validation(self) -> Mapping[str, JudgeAgreement]:
        """How people agree with the judge, by vote pattern and for `all`; empty unless it was scored."""
        scored = self._entry("validation").get(self.judge)
        groups = scored if isinstance(scored, Mapping) else {}
        return {name: JudgeAgreement(**group) for name, group in groups.items()}

    def suite(self, name: str) -> tuple[str, ...]:
        """Return the methods that were run under the name of a suite."""
        labels = self._entry("suites").get(name, ())
        return tuple(map(str, labels)) if isinstance(labels, list) else ()

    def own_meaning(self, strategy: str) -> str:
        """Return what a strategy that is not ours said of itself when it was run."""
        entry = self._entry(OWN).get(strategy)
        says = entry.get("says") if isinstance(entry, Mapping) else None
        return f"Not of SkillPager: {says}" if says else "Not of SkillPager; it says nothing about itself."

    def rows(self, label: str, skills: Collection[str] | None = None) -> pd.DataFrame:
        """Return the rows of a method, in the order of the queries; of the queries about `skills` if given.

        There are none if it was not run, or if less than `MIN_JUDGED` of its pages were judged.
        """
        if label not in self._rows:
            self._rows[label] = self._read(label)
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

    def _entry(self, name: str) -> Mapping[str, object]:
        entry = self.manifest.get(name)
        return entry if isinstance(entry, Mapping) else {}

    # ---- skills that the shipped models were trained on: there the models look better than they are

    def classifier_note(self) -> str:
        """Return a sentence for a table of types; empty unless the classifier was fitted on skills here."""
        if self._entry("run").get("classifier") != LocalClassifier().id:
            return ""
        if not (shared := self._count_published()):
            return ""
        card = json.loads(files("skillpager").joinpath("models/types/training.json").read_bytes())
        scores = card["scores"]
        return (
            f"The parser's numbers flatter it: the shipped classifier was fitted on {shared} of these "
            f"{len(self.skills)} skills. On skills left out of the fit ({card['folds']} folds by skill, the "
            f"published train and dev skills) its accuracy is {100 * scores['accuracy']:.1f} % and its "
            f"macro-F1 {100 * scores['macro_f1']:.1f}."
        )

    def encoder_note(self) -> str:
        """Return a sentence for a table of methods; empty unless the encoder was trained on skills here."""
        if self._entry("run").get("encoder") != ENCODER_ID or not (shared := self._count_published()):
            return ""
        return (
            "The numbers flatter every method that uses the built-in encoder: it and the navigator were "
            f"trained on {shared} of these {len(self.skills)} skills. For numbers on skills left out of the "
            "training, by cross-validation, see docs/models.md."
        )

    def _count_published(self) -> int:
        """Return how many skills of the run are published ones, from which every shipped model is made."""
        known = {document.sha256 for split in ("train", "dev") for document in read_published(split)}
        return sum(hashlib.sha256(skill.text.encode()).hexdigest() in known for skill in self.skills)
