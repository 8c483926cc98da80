"""What the tests of all strategies share: indexes with given rows and texts, and one way to run them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from index_builder import build_index, unit_rows
from skillpager.pages.assemble import NodeMeter
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.model import NeedModel, shipped_model
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, Strategy


def index_with(
    rows: FloatArray | None = None,
    *,
    texts: Sequence[str] | None = None,
    tokens: Sequence[int] | None = None,
    count: int = 12,
) -> SkillIndex:
    """Return an index with the rows, texts and token counts given; eight nodes a section."""
    total = len(next((given for given in (rows, texts, tokens) if given is not None), range(count)))
    index = build_index(total)
    nodes = [
        replace(
            node,
            text=texts[place] if texts is not None else node.text,
            tokens=tokens[place] if tokens is not None else node.tokens,
        )
        for place, node in enumerate(index.nodes)
    ]
    return replace(
        index, nodes=tuple(nodes), embeddings=unit_rows(total, 8, seed=total) if rows is None else rows
    )


def near(*cosines: float) -> tuple[FloatArray, FloatArray]:
    """Return `(n, 2)` unit rows with the given cosines to the query, and the query."""
    rows = np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in cosines], dtype=np.float32)
    return rows, np.array([1, 0], dtype=np.float32)


def run(
    strategy: Strategy,
    index: SkillIndex,
    query: FloatArray | None = None,
    *,
    text: str = "what to do",
    **limits: int | None,
) -> Selection:
    """Return what a strategy selects from bare nodes."""
    row = index.embeddings.mean(axis=0) if query is None and len(index.nodes) else query
    if row is None:
        row = np.zeros(index.embeddings.shape[1], dtype=np.float32)
    asked = Query(text, row.astype(np.float32))
    return strategy.select(index, asked, budget=Budget(**limits), meter=NodeMeter(index.nodes))


def indifferent(factor: float = 0.0) -> NeedModel:
    """Return the shipped navigator's model without its last layer, or with less of it: nodes are needed alike."""
    model = shipped_model()
    last = (".out.weight", ".direct.weight")
    arrays = {
        name: np.float32(factor) * array if name.endswith(last) else array
        for name, array in model.net.arrays.items()
    }
    breadth = np.zeros(8, np.float32), 0.0
    return replace(model, net=SequenceNet(arrays), breadth=breadth, topics=None)


def ordinals(selection: Selection) -> list[int]:
    """Return the picked nodes in the order of picking."""
    return [pick.node.ordinal for pick in selection.picks]


def reasons(selection: Selection) -> dict[int, SkipReason]:
    """Return why each other node was left out."""
    return {skip.node.ordinal: skip.reason for skip in selection.skipped}


def assert_sound(selection: Selection, index: SkillIndex, query: FloatArray) -> None:
    """Fail unless every node has one verdict, the budget holds and the numbers are what they are called."""
    picked = ordinals(selection)
    assert sorted([*picked, *reasons(selection)]) == list(range(len(index.nodes)))
    most = selection.budget
    assert most.max_nodes is not None
    assert len(picked) <= most.max_nodes
    if most.max_tokens is not None:
        assert sum(pick.node.tokens for pick in selection.picks) <= most.max_tokens
    for rank, pick in enumerate(selection.picks):
        row = index.embeddings[pick.node.ordinal]
        earlier = index.embeddings[picked[:rank]] @ row
        assert pick.rank == rank
        assert abs(pick.relevance - row @ query) < 2e-6
        assert abs(pick.redundancy - (earlier.max() if rank else 0)) < 2e-6
