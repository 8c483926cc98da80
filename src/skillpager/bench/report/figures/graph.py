"""The graph of one skill, as stage 1 infers it."""

from collections import Counter

from skillpager.bench.data import to_skill
from skillpager.bench.data.records import SkillRecord
from skillpager.bench.report.figures.drawing import Picture
from skillpager.bench.report.results import Results
from skillpager.output.graph_text import draw
from skillpager.output.palette import visible
from skillpager.pager import SkillPager

# nodes of the skill in the paper's figure
NODES = 42


def graph_figure(results: Results, pager: SkillPager) -> Picture | None:
    """Return the graph of the skill that has nearest 42 nodes; None if stage 1 was not run.

    Args:
        results: Whose skills.
        pager: Indexes the skill, or reads its index from the store.

    Raises:
        SkillPagerError: The skill cannot be indexed.

    Reference: paper §5.1, figure dag-example.
    """
    chosen = _choose(results)
    if chosen is None:
        return None
    index = pager.index(to_skill(chosen))
    name = visible(index.skill.name)
    types = Counter(str(node.type) for node in index.nodes)
    kinds = Counter(str(edge.kind) for edge in index.edges)
    return Picture(
        name="node-graph",
        title=f"Nodes and edges of a skill of {len(index.nodes)} nodes: {name}",
        caption="Nodes in document order, with type, id and first words. Edges: sequence along the line; "
        "semantic, reference and condition as arcs. Selection by MMR does not read the edges; the graph "
        "baselines do.",
        alt=f"Graph of the skill {name}: {_told(types)}; edges: {_told(kinds)}.",
        png=draw(index, "png"),
        svg=draw(index, "svg"),
    )


def _choose(results: Results) -> SkillRecord | None:
    """Return the first skill whose number of nodes is nearest to the paper's figure."""
    parsed = [skill for skill in results.skills if skill.id in results.node_counts]
    return min(parsed, key=lambda skill: abs(results.node_counts[skill.id] - NODES), default=None)


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.most_common())
