"""What nodes depend on: the sources of the edges into them.

Reference: paper §3.3, Graph Augmentation at Query Time; §4.3, Top-k + dependency completion.
"""

from skillpager.types import FloatArray, SkillIndex


def predecessors(index: SkillIndex, relevance: FloatArray) -> dict[int, list[int]]:
    """Return the one-hop predecessors of each node that has any, the most relevant first.

    Edges of all four kinds count. Ties go to the earlier node.

    Args:
        index: The skill's index.
        relevance: `(n,)` cosine of query and each node.
    """
    sources: dict[int, set[int]] = {}
    for edge in index.edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    values = relevance.tolist()
    return {
        target: sorted(found, key=lambda ordinal: (-values[ordinal], ordinal))
        for target, found in sources.items()
    }
