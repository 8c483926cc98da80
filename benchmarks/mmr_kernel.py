"""Our MMR against pyversity's and langchain-core's: same data and picks, interleaved in one process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from pyversity import Strategy, diversify

from options import Options
from results import Cell, Check, Report, Table
from skillpager.pages.render import NodeMeter
from skillpager.strategies import Mmr
from skillpager.strategies.mmr import MAX_KEPT_NODES
from skillpager.strategies.picking import Picker
from skillpager.types import (
    Budget,
    FloatArray,
    Node,
    NodeType,
    Query,
    Recipe,
    Skill,
    SkillIndex,
    Span,
    TileKind,
)
from timing import MILLISECONDS, Stopwatch, interleaved, median

NODES = (50, 100, 500, 1_000, 5_000)
QUICK_NODES = (50, 100)
PICKS = (20, 60)
DIM = 384
MMR_LAMBDA = 0.7
SEED = 3
REPETITIONS = 100
QUICK_REPETITIONS = 3
# langchain-core takes seconds for a large pool
SLOW_REPETITIONS = 5
NODES_PER_TOPIC = 12
PYVERSITY_RATIO = 1.5
QUERIES = 25  # of one index, in turn


@dataclass(frozen=True, slots=True)
class Result:
    """Milliseconds of one setting, medians."""

    nodes: int
    picks: int
    ours: float
    record: float
    pyversity: float
    langchain: float

    @property
    def row(self) -> list[Cell]:
        """The row of the table."""
        times = [self.ours, self.record, self.pyversity, self.langchain]
        return [self.nodes, self.picks, *times, self.pyversity / self.ours, self.langchain / self.ours]


def measure(options: Options) -> Report:
    """Return the report on the kernel."""
    sizes = QUICK_NODES if options.quick else NODES
    results = [_compare(nodes, picks, quick=options.quick) for nodes in sizes for picks in PICKS]
    columns = ["nodes", "k", "ours (ms)", "of which the record", "pyversity (ms)", "langchain-core (ms)"]
    ratios = ["pyversity ÷ ours", "langchain-core ÷ ours"]
    table = Table("One selection, median", [*columns, *ratios], [result.row for result in results])
    return Report("MMR kernel against peers", [table], _checks(results), _NOTE)


_NOTE = (
    f"{DIM} dimensions, λ = {MMR_LAMBDA}, one BLAS thread for all three, repetitions interleaved, "
    f"{QUERIES} queries in turn, same picks asserted. Ours is the whole `Mmr.select`: bare kernel and the "
    f"Selection; up to {MAX_KEPT_NODES:,} nodes it keeps the cosines of each pick with the other nodes for "
    "later queries. The Selection holds the numbers of each pick "
    "and arrays from which those of the nodes left out are made when read (“the record”), which the peers "
    "do not give. pyversity gets the relevance from one matrix product inside its time; langchain-core "
    "gets the array itself."
)


def _compare(nodes: int, picks: int, *, quick: bool) -> Result:
    index, queries = _problem(nodes)
    rows = index.embeddings
    turn: dict[str, Iterator[Query]] = {name: cycle(queries) for name in ("ours", "pyversity", "langchain")}
    watch = Stopwatch()
    plain = Picker.selection

    def ours() -> list[int]:
        budget, query = Budget(max_nodes=picks), next(turn["ours"])
        selection = Mmr(MMR_LAMBDA).select(index, query, budget=budget, meter=NodeMeter(index.nodes))
        return [pick.node.ordinal for pick in selection.picks]

    def pyversity() -> list[int]:
        scores = rows @ next(turn["pyversity"]).embedding
        found = diversify(rows, scores, picks, strategy=Strategy.MMR, diversity=1 - MMR_LAMBDA)
        return [int(ordinal) for ordinal in found.indices]

    def langchain() -> list[int]:
        # typed as lists, but an array is what it takes fastest
        row = next(turn["langchain"]).embedding
        return maximal_marginal_relevance(row, rows, MMR_LAMBDA, picks)  # type: ignore[arg-type]

    if not ours() == pyversity() == langchain() or any(ours() != pyversity() for _ in queries[1:]):
        raise AssertionError(f"the three disagree at {nodes} nodes, k = {picks}")
    number = QUICK_REPETITIONS if quick else REPETITIONS
    fast: dict[str, Callable[[], object]] = {"ours": ours, "pyversity": pyversity}
    times = interleaved(fast, number)
    slow = interleaved({"langchain": langchain}, min(number, SLOW_REPETITIONS))
    watch.on(Picker, "selection", "record")
    records = []
    try:
        for _ in range(number):
            watch.seconds.clear()
            ours()
            records.append(watch.seconds["record"])
    finally:
        Picker.selection = plain  # type: ignore[method-assign]
    values = {name: MILLISECONDS * median(each) for name, each in {**times, **slow}.items()}
    record = MILLISECONDS * median(records)
    return Result(nodes, picks, values["ours"], record, values["pyversity"], values["langchain"])


def _checks(results: list[Result]) -> list[Check]:
    pyversity = min(result.pyversity / result.ours for result in results)
    langchain = min(result.langchain / result.ours for result in results)
    return [
        Check("pyversity ÷ our MMR, smallest ratio", pyversity, PYVERSITY_RATIO, "×", at_most=False),
        Check("langchain-core ÷ our MMR, smallest ratio", langchain, 1.0, "×", at_most=False),
    ]


def _problem(nodes: int) -> tuple[SkillIndex, list[Query]]:
    """Return an index and queries whose cosines spread as those of a skill: topics around a centre.

    All cosines are positive, because pyversity cuts negative ones, and all marginals, because
    the peers do not stop below zero.
    """
    draw = np.random.default_rng(SEED)
    centre = draw.normal(size=DIM)
    topics = draw.normal(size=(max(4, nodes // NODES_PER_TOPIC), DIM))
    noise = draw.normal(size=(nodes, DIM))
    rows = _unit(0.8 * (centre + topics[draw.integers(len(topics), size=nodes)] + noise))
    asked = centre + 0.8 * topics[np.arange(QUERIES) % len(topics)] + 0.5 * draw.normal(size=(QUERIES, DIM))
    return _index(rows), [Query("a query", row) for row in _unit(asked)]


def _unit(rows: np.ndarray) -> FloatArray:
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _index(rows: FloatArray) -> SkillIndex:
    nodes = tuple(
        Node(
            kind=TileKind.SENTENCE,
            span=Span("SKILL.md", ordinal + 1, ordinal + 1, ordinal, ordinal + 1),
            text="x",
            ordinal=ordinal,
            heading_path=(),
            list_context=None,
            id=f"n{ordinal}",
            type=NodeType.STEP,
            type_confidence=1.0,
            tokens=1,
        )
        for ordinal in range(len(rows))
    )
    skill = Skill("kernel", "", {}, (), None)
    return SkillIndex(skill, nodes, (), (), rows, Recipe("", "", "", "", "", 0), "", len(nodes))
