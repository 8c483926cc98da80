"""The evaluator: pages of a method, judged by their evidence; and the work of one process of a run.

`page_by` makes a page and `page_row` measures it, here as in `benchmarks/` and `training/`. In a run the work
is shared: a skill is indexed once, a query embedded once, for any number of methods.
"""

import hashlib
import platform
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

from skillpager.bench.data import to_skill
from skillpager.bench.data.evidence import AnnotatedQuery, Document
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
)
from skillpager.bench.judge.judges import Case, EvidenceJudge, judge_evidence
from skillpager.bench.run.methods import Method, parse_method
from skillpager.bench.run.windows import ENTRY, SECTION_BM25, chunk_tokens_of, window_index
from skillpager.caches import LRUCache
from skillpager.enrichment.notes import Notes, notes_on, read_notes
from skillpager.errors import BenchError, SkillPagerError
from skillpager.pager import SkillPager
from skillpager.parsing.skill import skill_from_files
from skillpager.settings import Settings
from skillpager.types import EdgeKind, Page, Skill, SkillIndex, Strategy, Style

# windows, sections and indexes with notes of the latest skills
_POOLS = LRUCache[tuple[SkillPager, str, int | str | None], SkillIndex](16)


def page_by(
    pager: SkillPager,
    skill: Skill,
    query: str,
    method: Method,
    *,
    strategy: Strategy | None = None,
    style: Style | str | None = None,
) -> tuple[Page, float]:
    """Return the page of a skill by a method, and the seconds that selection and rendering took.

    Encoder and classifier are the pager's; those of the method are not looked at. `strategy` is one in place
    of the method's, which has the same name.
    """
    index = pager.index(skill)
    pool, chosen = index, strategy or method.strategy
    if (chunk_tokens := chunk_tokens_of(method.strategy)) is not None:
        pool, chosen = _window_index(pager, index, chunk_tokens), "mmr"
    elif method.strategy == SECTION_BM25:
        pool, chosen, style = _window_index(pager, index, None), "bm25", Style.PLAIN
    elif method.strategy == ENTRY:
        entry = index.skill.files[0]
        alone = skill_from_files([(entry.path, entry.text)], name=index.skill.name)
        pool, chosen = pager.index(alone), "full"
    elif method.notes is not None:
        pool = _noted_index(pager, pager.pool(index, chosen), method.strategy, method.notes)
    # so that the time below is neither that of indexing nor that of embedding
    pager.pool(pool, chosen)
    pager.query(query, pager.strategy(chosen))
    max_nodes, max_tokens = method.budget(len(index.nodes), index.full_tokens)
    start = time.perf_counter()
    page = pager.page(
        pool,
        query,
        max_nodes=max_nodes,
        max_tokens=max_tokens,
        sufficiency=method.sufficiency,
        # strategies are compared at equal sizes, so each fills its limits
        fill=(max_nodes, max_tokens) != (None, None),
        strategy=chosen,
        mmr_lambda=method.mmr_lambda,
        style=style,
        force=True,  # what is measured are pages
    )
    return replace(page, full_tokens=index.full_tokens), time.perf_counter() - start


def _window_index(pager: SkillPager, index: SkillIndex, chunk_tokens: int | None) -> SkillIndex:
    """Return the index of a skill's windows or sections, which the queries about the skill share."""
    key = (pager, index.key, chunk_tokens)
    return _POOLS.get_or_make(key, lambda: window_index(pager.builder, index.skill, chunk_tokens))


def _noted_index(pager: SkillPager, index: SkillIndex, strategy: str, folder: str) -> SkillIndex:
    """Return an index with the notes in a folder, which the queries about the skill share."""
    encoder = pager.builder.for_strategy(pager.strategy(strategy)).encoder
    cached = pager.settings.cache_dir / "notes" / f"bench-{index.key}.npz"
    return _POOLS.get_or_make(
        (pager, index.key, folder),
        lambda: replace(index, notes=notes_on(index.nodes, notes_in_folder(folder), encoder, cached)),
    )


@cache
def notes_in_folder(folder: str) -> Notes:
    """Return the notes in the JSON files of a folder and of those below it; a node is known by its digest."""
    return read_notes(sorted(Path(folder).expanduser().rglob("*.json")))


def page_row(
    skill: SkillRecord | Document, query: QueryRecord | AnnotatedQuery, page: Page
) -> dict[str, str | float]:
    """Return how much evidence a page holds and what it costs: a row for the measures of `bench.report`."""
    coverage, sufficient = judge_evidence(skill, query, page.text)
    return {
        "query": query.id,
        "coverage": coverage,
        "sufficient": sufficient,
        "tokens": page.tokens,
        "full_tokens": page.full_tokens,
    }


# ---- the work of one process of a run


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a run: how its pagers are set up, and how much of each context is written.

    `allow_trained` also runs methods on skills that they have learned from (`learned`).
    """

    settings: Settings
    keep_contexts: bool = True
    judge_evidence: bool = True
    allow_trained: bool = False


class Made(NamedTuple):
    """The results of one skill: its nodes, and by method what was selected and how it was judged."""

    nodes: list[NodeRecord]
    selections: dict[str, list[SelectionRecord]]
    judgments: dict[str, list[JudgmentRecord]]  # empty lists if nothing is judged


def select_all(
    record: SkillRecord, queries: Sequence[QueryRecord], labels: Sequence[str], plan: Plan
) -> Made:
    """Return the results of methods on the queries about one skill."""
    judge, made = EvidenceJudge(), Made([], {label: [] for label in labels}, {label: [] for label in labels})
    try:
        skill = to_skill(record)
        index = _pager(plan.settings, None, None).index(skill)
        dependencies = (e for e in index.edges if e.kind in (EdgeKind.REFERENCE, EdgeKind.CONDITION))
        edges = Counter(place for edge in dependencies for place in (edge.source, edge.target))
        for node in index.nodes:
            confidence = round(node.type_confidence, 4)
            facts = {**asdict(node.span), "tokens": node.tokens, "edges": edges[node.ordinal]}
            made.nodes.append(NodeRecord(record.id, node.id, node.type, confidence, **facts))
        pool_tokens = sum(node.tokens for node in index.nodes)
        for label, query in product(labels, queries):
            method = parse_method(label)
            pager = _pager(plan.settings, method.encoder, method.classifier)
            page, seconds = page_by(pager, skill, query.query, method)
            selection = _selection(page, query, label, pool_tokens, seconds)
            if plan.judge_evidence:
                verdict = judge.judge(Case(record, query, page.text))
                made.judgments[label].append(verdict.on(selection, judge.id))
            if not plan.keep_contexts:
                selection = replace(selection, context=None)
            made.selections[label].append(selection)
    except SkillPagerError as error:
        raise BenchError(f"The run stopped at the skill {record.id}: {error}") from error
    return made


def _selection(
    page: Page, query: QueryRecord, label: str, pool_tokens: int, seconds: float
) -> SelectionRecord:
    assert page.selection is not None, "a page fault is no selection"
    picks, skipped = page.selection.picks, page.selection.skipped
    return SelectionRecord(
        query=query.id,
        skill=query.skill,
        method=label,
        nodes=tuple(node.id for node in page.nodes),
        picks=tuple(pick.node.id for pick in picks),
        types=dict(sorted(Counter(str(node.type) for node in page.nodes).items())),
        pool_nodes=len(picks) + len(skipped),
        tokens=page.tokens,
        full_tokens=page.full_tokens,
        node_tokens=sum(node.tokens for node in page.nodes),
        pool_tokens=pool_tokens,
        seconds=round(seconds, 6),
        context=page.text,
        context_sha256=hashlib.sha256(page.text.encode()).hexdigest(),
    )


@cache
def _pager(settings: Settings, encoder: str | None, classifier: str | None) -> SkillPager:
    """Return the pager of a method's parts, those of the run by default; a process makes each once.

    Indexes are stored apart for each machine, because embeddings differ in their last digits.
    """
    place = settings.cache_dir / f"bench-{hashlib.sha256(repr(machine()).encode()).hexdigest()[:12]}"
    settings = replace(
        settings, encoder=encoder or settings.encoder, classifier=classifier or settings.classifier
    )
    return SkillPager(store=settings.store or place, settings=settings)


@cache
def machine() -> dict[str, str]:
    """Return what changes the last digits of embeddings, and so some picks: versions and processor."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.+)", info.read_text(errors="replace") if info.exists() else "")
    name = model[1] if model else platform.processor() or platform.machine()
    return {**{package: version(package) for package in ("onnxruntime", "numpy")}, "processor": name}
