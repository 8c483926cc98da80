"""The sample of query–context pairs that people judge after a judge did.

Balanced over methods, verdicts and vote patterns.

Reference: paper §4.2.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import JudgmentRecord, SelectionRecord
from skillpager.bench.run.methods import parse_method
from skillpager.bench.validate.drawing import (
    SAMPLE_SIZE,
    SEED,
    Identity,
    Sample,
    Stratum,
    case_id,
    in_drawn_order,
    skills_by_id,
)
from skillpager.bench.validate.key import JudgmentKey
from skillpager.bench.validate.sheet import Case, Sheet, SheetKind, verdict_label
from skillpager.errors import BenchError

# the paper names no four; these are its methods without the full document, which it calls a reference (§4.3)
METHODS = ("greedy_graph", "topk_dependency", "chunk_mmr", "mmr")


@dataclass(frozen=True, slots=True)
class _Judged:
    """A verdict with the selection it should be about; None when there is none."""

    verdict: JudgmentRecord
    selection: SelectionRecord | None

    @property
    def cell(self) -> tuple[str, bool, str]:
        """Method, verdict and vote pattern."""
        return self.verdict.method, self.verdict.sufficient, self.verdict.pattern

    @property
    def identity(self) -> Identity:
        """What tells it from all others."""
        verdict = self.verdict
        return verdict.judge, verdict.method, verdict.query, verdict.context_sha256

    @property
    def is_current(self) -> bool:
        """Whether the context that was judged is the one the selection holds."""
        chosen = self.selection
        return chosen is not None and chosen.context_sha256 == self.verdict.context_sha256


def sample_judgments(
    folder: BenchFolder,
    judge: str,
    *,
    methods: Sequence[str] = METHODS,
    per_cell: int | None = None,
    seed: int = SEED,
) -> Sample:
    """Return a sample balanced over methods, verdicts and vote patterns.

    The vote patterns are those that the judge's number of votes allows: 3-0 and 2-1 for three votes, 1-0
    alone for one. A stratum with too few cases gives what it has; no other is drawn on to fill it.

    Args:
        folder: Benchmark with judgments and the contexts that were judged.
        judge: Id of the judge.
        methods: Labels of the methods.
        per_cell: Cases of each stratum; as many as make 96 in all when not given.
        seed: Another seed draws other cases.

    Raises:
        BenchError: A method is unknown, the judge did not judge it, or the run kept no contexts.

    Reference: paper §4.2.
    """
    methods = list(dict.fromkeys(parse_method(method).label for method in methods))
    found = [judged for method in methods for judged in _verdicts(folder, judge, method)]
    current = [judged for judged in found if judged.is_current]
    votes = _usual_votes(current)
    whole = [judged for judged in current if len(judged.verdict.votes) == votes]
    cells = list(product(methods, (True, False), vote_patterns(votes)))
    wanted = max(1, SAMPLE_SIZE // len(cells)) if per_cell is None else per_cell
    strata, drawn = list[Stratum](), list[_Judged]()
    for cell in cells:
        members = [judged for judged in whole if judged.cell == cell]
        taken = in_drawn_order(members, seed, _identity)[:wanted]
        method, sufficient, pattern = cell
        strata.append(Stratum((method, verdict_label(sufficient), pattern), len(members), len(taken), wanted))
        drawn += taken
    cases, keys = _shuffled(folder, drawn, seed)
    reasons = {
        "judged on another context": len(found) - len(current),
        f"not judged by {votes} votes": len(current) - len(whole),
    }
    set_aside = {reason: count for reason, count in reasons.items() if count}
    return Sample(Sheet(SheetKind.SUFFICIENCY, cases), keys, tuple(strata), set_aside)


def vote_patterns(votes: int) -> tuple[str, ...]:
    """Return the patterns that so many votes can have, larger side first and unanimous ones first."""
    return tuple(f"{more}-{votes - more}" for more in range(votes, votes // 2, -1))


def _identity(judged: _Judged) -> Identity:
    return judged.identity


def _usual_votes(found: Iterable[_Judged]) -> int:
    """Return how many votes most verdicts have; 1 when there are none."""
    numbers = Counter(len(judged.verdict.votes) for judged in found)
    return numbers.most_common(1)[0][0] if numbers else 1


def _verdicts(folder: BenchFolder, judge: str, method: str) -> Iterator[_Judged]:
    """Yield the last verdict on each query."""
    verdicts = {verdict.query: verdict for verdict in folder.judgments(judge, method)}
    if not verdicts:
        raise BenchError(_nothing_judged(folder, judge, method))
    selections = {selection.query: selection for selection in folder.selections(method)}
    for query, verdict in verdicts.items():
        yield _Judged(verdict, selections.get(query))


def _nothing_judged(folder: BenchFolder, judge: str, method: str) -> str:
    """Return what is wrong and what could be asked for instead."""
    if methods := folder.judged_methods(judge):
        return (
            f"Judge {judge} has no verdicts on {method} in {folder.path}: judge it with "
            f"`skillpager bench judge`, or choose --methods among {', '.join(methods)}."
        )
    judges = folder.judges()
    known = f"choose --judge among {', '.join(judges)}" if judges else "run `skillpager bench judge` first"
    return f"Judge {judge} has no verdicts in {folder.path}: {known}."


def _shuffled(
    folder: BenchFolder, drawn: Sequence[_Judged], seed: int
) -> tuple[tuple[Case, ...], tuple[JudgmentKey, ...]]:
    """Return cases and keys, strata mixed."""
    queries = {query.id: query.query for query in folder.queries()}
    skills = skills_by_id(folder, (judged.verdict.skill for judged in drawn))
    cases, keys = list[Case](), list[JudgmentKey]()
    for number, judged in enumerate(in_drawn_order(drawn, seed, _identity), 1):
        verdict = judged.verdict
        if verdict.query not in queries:
            raise BenchError(
                f"{folder.path} has a verdict on query {verdict.query!r}, which it does not have: restore "
                "its queries.jsonl, or run again."
            )
        name = case_id(number, seed, judged.identity)
        skill = skills[verdict.skill]
        texts = (skill.name, skill.description, queries[verdict.query], _context(judged, folder))
        cases.append(Case(name, texts))
        keys.append(_key(name, verdict))
    return tuple(cases), tuple(keys)


def _context(judged: _Judged, folder: BenchFolder) -> str:
    context = judged.selection.context if judged.selection else None
    if context is None:
        raise BenchError(
            f"The selections of {judged.verdict.method} in {folder.path} keep no contexts, so that nobody "
            "can read them: run the method again with `--contexts`."
        )
    return context


def _key(case: str, verdict: JudgmentRecord) -> JudgmentKey:
    return JudgmentKey(
        case=case,
        query=verdict.query,
        skill=verdict.skill,
        method=verdict.method,
        judge=verdict.judge,
        sufficient=verdict.sufficient,
        pattern=verdict.pattern,
        context_sha256=verdict.context_sha256,
    )
