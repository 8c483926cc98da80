"""What a worker process of a run does: all contexts of one skill, each judged on the spot by its evidence.

The work is shared: a skill is indexed once, a query embedded once, whatever the number of methods.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from skillpager.bench.data import to_skill
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
)
from skillpager.bench.judge.evidence import EVIDENCE, judge_evidence
from skillpager.bench.run.methods import LABELS, Method, parse_method
from skillpager.bench.run.windows import chunk_tokens_of, window_index
from skillpager.bench.validate.node_types import LabelClassifier
from skillpager.indexing import Builder
from skillpager.pager import SkillPager
from skillpager.settings import Settings
from skillpager.types import Page, SkillIndex

# the strategy that pages windows
MMR = "mmr"


@dataclass(frozen=True, slots=True)
class Plan:
    """How the contexts of a run are made.

    Attributes:
        settings: Encoder, classifier, style, store and endpoints.
        keep_contexts: Whether selections hold the text of their context.
        judge_evidence: Whether each context is judged by its evidence at once.
    """

    settings: Settings
    keep_contexts: bool = True
    judge_evidence: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """What is left to do for one skill.

    Attributes:
        skill: The skill.
        cases: Queries about it, each with the labels of the methods to run.
    """

    skill: SkillRecord
    cases: tuple[tuple[QueryRecord, tuple[str, ...]], ...]

    def __len__(self) -> int:
        return sum(len(labels) for _, labels in self.cases)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the work on one skill, in the order of its cases."""

    nodes: tuple[NodeRecord, ...]
    selections: tuple[SelectionRecord, ...]
    judgments: tuple[JudgmentRecord, ...]


def select_all(work: Work, plan: Plan) -> Outcome:
    """Return the contexts of one skill, and the verdicts on them.

    Raises:
        SkillPagerError: The skill cannot be indexed, or a strategy fails.
    """
    index = _pager(work.skill, plan.settings, None, None).index(to_skill(work.skill))
    selections = tuple(_select(work, plan, index))
    judgments = tuple(_judge(work, selections)) if plan.judge_evidence else ()
    if not plan.keep_contexts:
        selections = tuple(replace(selection, context=None) for selection in selections)
    return Outcome(tuple(_node_records(work.skill.id, index)), selections, judgments)


def _select(work: Work, plan: Plan, index: SkillIndex) -> Iterator[SelectionRecord]:
    skill = to_skill(work.skill)
    pool_tokens = sum(node.tokens for node in index.nodes)
    built: dict[tuple[str | None, str | None, int], SkillIndex] = {}
    for query, labels in work.cases:
        for method in map(parse_method, labels):
            pager = _pager(work.skill, plan.settings, method.encoder, method.classifier)
            own = pager.index(skill)
            windows, chunk_tokens = None, chunk_tokens_of(method.strategy)
            if chunk_tokens is not None:
                parts = (method.encoder, method.classifier, chunk_tokens)
                if parts not in built:
                    form = pager.recipe.embedded_text
                    builder = Builder(pager.encoder, pager.classifier, pager.token_counter, form)
                    built[parts] = window_index(builder, skill, chunk_tokens, pager.store)
                windows = built[parts]
            strategy = method.strategy if windows is None else MMR
            pager.pool(own, strategy)
            pager.embed_query(query.query, strategy)
            start = time.perf_counter()
            context = _page(pager, own, query, method, windows)
            seconds = time.perf_counter() - start
            yield _record(query, method, context, pool_tokens=pool_tokens, seconds=seconds)


def _page(
    pager: SkillPager, index: SkillIndex, query: QueryRecord, method: Method, windows: SkillIndex | None
) -> Page:
    max_nodes, max_tokens = method.budget(len(index.nodes), index.full_tokens)
    return pager.page(
        index if windows is None else windows,
        query.query,
        max_nodes=max_nodes,
        max_tokens=max_tokens,
        sufficiency=method.sufficiency,
        strategy=method.strategy if windows is None else MMR,
        mmr_lambda=method.mmr_lambda,
    )


def _record(
    query: QueryRecord, method: Method, context: Page, *, pool_tokens: int, seconds: float
) -> SelectionRecord:
    selection = context.selection
    if selection is None:
        raise ValueError("a page fault is no selection")
    return SelectionRecord(
        query=query.id,
        skill=query.skill,
        method=method.label,
        nodes=tuple(node.id for node in context.nodes),
        picks=tuple(pick.node.id for pick in selection.picks),
        types=dict(sorted(Counter(str(node.type) for node in context.nodes).items())),
        pool_nodes=len(selection.picks) + len(selection.skipped),
        tokens=context.tokens,
        full_tokens=context.full_tokens,
        node_tokens=sum(node.tokens for node in context.nodes),
        pool_tokens=pool_tokens,
        seconds=round(seconds, 6),
        context=context.text,
        context_sha256=hashlib.sha256(context.text.encode()).hexdigest(),
    )


def _judge(work: Work, selections: tuple[SelectionRecord, ...]) -> Iterator[JudgmentRecord]:
    queries = {query.id: query for query, _ in work.cases}
    for selection in selections:
        query = queries[selection.query]
        coverage, sufficient = judge_evidence(work.skill, query, selection.context or "")
        yield JudgmentRecord(
            query=query.id,
            skill=query.skill,
            method=selection.method,
            judge=EVIDENCE,
            sufficient=sufficient,
            votes=(sufficient,),
            coverage=coverage,
            reason="",
            context_sha256=selection.context_sha256,
        )


def _node_records(skill: str, index: SkillIndex) -> Iterator[NodeRecord]:
    for node in index.nodes:
        span = node.span
        yield NodeRecord(
            skill=skill,
            id=node.id,
            type=str(node.type),
            confidence=round(node.type_confidence, 4),
            file=span.file,
            start_line=span.start_line,
            end_line=span.end_line,
            start=span.start,
            end=span.end,
            tokens=node.tokens,
        )


def _pager(skill: SkillRecord, settings: Settings, encoder: str | None, classifier: str | None) -> SkillPager:
    """Return the pager of a method's parts; a process keeps those that do not depend on the skill."""
    shared = _shared_pager(settings, encoder or settings.encoder, classifier or settings.classifier)
    if classifier != LABELS:
        return shared
    return SkillPager(
        encoder=shared.encoder, classifier=LabelClassifier(skill), store=shared.store, settings=settings
    )


@cache
def _shared_pager(settings: Settings, encoder: str, classifier: str) -> SkillPager:
    return SkillPager(encoder=encoder, classifier=classifier, settings=settings)
