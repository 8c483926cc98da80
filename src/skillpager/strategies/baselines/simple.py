"""The plainest selections: the most relevant nodes or sections, the whole skill, or its beginning.

Reference: paper §4.3, the retrieval step of Top-k + dependency completion, and Full-document prompting.
"""

from dataclasses import dataclass

import numpy as np

from skillpager.sections import sections_of
from skillpager.strategies.picking import Picker, cosines, falling
from skillpager.types import (
    Budget,
    FloatArray,
    Query,
    ScoreKind,
    Selection,
    SkillIndex,
    SkipReason,
    TokenMeter,
)

# tokens of each invoked skill that Claude Code keeps when it compacts a conversation (claude-code#94564,
# #96168)
HEAD_TOKENS = 5_000
JOINT_TOKENS = 1  # the line break or two between two nodes of a section


@dataclass(frozen=True, slots=True)
class TopK:
    """Nodes by falling relevance; redundancy is ignored."""

    name: str = "topk"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the most relevant first."""
        picker = Picker(index, query, budget=budget, meter=meter)
        picker.fill(falling(picker.relevance), compare=False)
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class Full:
    """The whole skill, or as many nodes as fit the given limits, in document order."""

    name: str = "full"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return every node in document order; the dynamic `max_nodes` does not apply."""
        total = len(index.nodes)
        limits = Budget(total if budget.max_nodes is None else budget.max_nodes, budget.max_tokens)
        picker = Picker(index, query, budget=limits, meter=meter)
        picker.fill(range(total), compare=False)
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class Head:
    """The first nodes in document order, for any query: what remains when a host cuts by position."""

    name: str = "head"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the first nodes, up to the first that does not fit.

        Without `max_tokens` the ceiling is `HEAD_TOKENS`; the dynamic `max_nodes` does not apply. The
        strategy has no score of its own: the recorded marginal value is the relevance.
        """
        nodes = len(index.nodes) if budget.max_nodes is None else budget.max_nodes
        tokens = HEAD_TOKENS if budget.max_tokens is None else budget.max_tokens
        picker = Picker(index, query, budget=Budget(nodes, tokens), meter=meter)
        for ordinal in range(len(index.nodes)):
            if picker.room <= 0 or not picker.admit(ordinal):
                break
            picker.compare(ordinal)
        reason = SkipReason.NOT_REACHED if picker.room else SkipReason.MAX_NODES
        return picker.selection(self.name, reason=reason)


@dataclass(frozen=True, slots=True)
class Sections:
    """Sections by falling score, each whole.

    The score of a section is the cosine of the query with the mean row of its nodes, weighted by their
    tokens. On training data it is sufficient for 71.5 % of queries at the dynamic budget and 67.6 % at
    half of the tokens; the largest cosine of a node, 70.6 % and 65.7 %; the mean cosine weighted by
    tokens, 71.1 % and 66.6 %.
    """

    name: str = "sections"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return whole sections, the best first, smaller ones in place of those that do not fit.

        The best section is cut to its most relevant nodes when it has more than `max_nodes`; so is the
        best of which anything fits when no whole section fits `max_tokens`. A section is priced by its
        nodes before it is added; should the page cost more than that, its last nodes are left out.
        """
        sections = sections_of(index)
        scores = section_scores(index, sections, query)
        of_nodes = np.repeat(scores, [len(section) for section in sections])
        kind = ScoreKind.SECTION
        picker = Picker(index, query, budget=budget, meter=meter, scores=of_nodes, score_kind=kind)
        ranked = [sections[place] for place in falling(scores)]
        limit = picker.budget.max_tokens
        for rank, section in enumerate(ranked):
            if len(section) > picker.room:
                if rank == 0:
                    picker.fill(_most_relevant(section, picker))
                continue
            rest = sum(index.nodes[ordinal].tokens + JOINT_TOKENS for ordinal in section[1:])
            if limit is None or meter.cost(section[0]) + rest <= limit:
                picker.fill(section)
            else:
                picker.refuse(section, SkipReason.MAX_TOKENS)
        for section in ranked:
            if not picker.picks:
                picker.fill(_most_relevant(section, picker))
        return picker.selection(self.name)


def section_scores(index: SkillIndex, sections: list[list[int]], query: Query) -> FloatArray:
    """Return `(n_sections,)`: the cosine of the query with the token-weighted mean row of each section."""
    if not sections:
        return np.zeros(0, dtype=np.float32)
    weights = np.array([node.tokens for node in index.nodes], dtype=np.float32)
    starts = [section[0] for section in sections]
    rows: FloatArray = np.add.reduceat(index.embeddings * weights[:, None], starts)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths == 0, 1, lengths)  # rows that cancel out have no direction
    return cosines(rows, query.embedding)


def _most_relevant(section: list[int], picker: Picker) -> list[int]:
    return [section[place] for place in falling(picker.relevance[section])]
