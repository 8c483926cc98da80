"""The graphs of the skills: edges by kind, how connected nodes are, how far needed nodes are from the entry.

The paper says in words that its graphs are sparse, that needed nodes are often disconnected or far from the
entry node, and that a walk from there is biased towards it. These tables measure it.

Reference: paper §1 (Challenge 2), §3.1 (Edge Inference), §5.2.1 (Greedy graph).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.data.records import NodeRecord, QueryRecord
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import bootstrap
from skillpager.bench.report.tables.table import Cell, Table
from skillpager.errors import BenchError, require_extra
from skillpager.graph.edges import MAX_NEIGHBOURS, SEMANTIC_THRESHOLD
from skillpager.types import EdgeKind

# last hop of each band of distances
BANDS = (2, 8, 32)
# the walk from the entry node, and methods on nodes that see all of them
WALK, GLOBAL = "greedy_graph", ("topk_dependency", "mmr", "sections", "navigator")
STRUCTURE = tuple(EdgeKind)
WITHOUT_SEQUENCE = tuple(kind for kind in EdgeKind if kind is not EdgeKind.SEQUENCE)

_REFERENCE = "paper §1, Challenge 2; §3.1, Edge Inference (no numbers)"

Hops = NDArray[np.float64]  # `(n_nodes,)`, infinite where no way leads
Places = NDArray[np.int64]  # positions among the nodes of a skill


@dataclass(frozen=True, slots=True)
class SkillGraph:
    """The graph of one skill.

    Attributes:
        skill: Id of the skill.
        nodes: Its nodes in document order, at least one; the first is the entry node.
        edges: Positions of source and target of each edge, by kind.
    """

    skill: str
    nodes: Sequence[NodeRecord]
    edges: Mapping[str, Sequence[tuple[int, int]]]

    def components(self, kinds: Collection[str]) -> list[int]:
        """Return the sizes of the components that edges of some kinds make, directions ignored."""
        graphs = require_extra("scipy.sparse.csgraph", extra="bench", purpose="The table of graphs")
        _, labels = graphs.connected_components(self._matrix(kinds), directed=False)
        return [int(size) for size in np.bincount(labels)]

    def hops(self, kinds: Collection[str]) -> Hops:
        """Return the number of edges of some kinds on the shortest way from the entry node to each node."""
        graphs = require_extra("scipy.sparse.csgraph", extra="bench", purpose="The table of graphs")
        ways: Hops = graphs.shortest_path(self._matrix(kinds), unweighted=True, indices=0)
        return ways

    def _matrix(self, kinds: Collection[str]) -> object:
        """Return the adjacency matrix of the edges of some kinds, `(n_nodes, n_nodes)`."""
        sparse = require_extra("scipy.sparse", extra="bench", purpose="The table of graphs")
        edges = np.array([edge for kind in kinds for edge in self.edges.get(kind, ())], dtype=np.int64)
        sources, targets = edges.reshape(-1, 2).T
        size = len(self.nodes)
        return sparse.csr_array((np.ones(len(sources)), (sources, targets)), shape=(size, size))


@dataclass(frozen=True, slots=True)
class NeededNodes:
    """The nodes of a skill's entry file that share a line with the critical ones of a query."""

    query: str
    skill: str
    places: Places


def read_graphs(results: Results) -> list[SkillGraph]:
    """Return the graphs of all skills with nodes; none of a run that did not record edges.

    Raises:
        BenchError: An edge joins nodes that are not there.
    """
    nodes: defaultdict[str, list[NodeRecord]] = defaultdict(list)
    for node in results.nodes:
        nodes[node.skill].append(node)
    graphs = []
    for record in results.folder.indexes():
        places = {node.id: place for place, node in enumerate(nodes[record.skill])}
        edges: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for source, target, kind, _ in record.edges:
            if source not in places or target not in places:
                raise BenchError(
                    f"The edge {source} → {target} of skill {record.skill!r} joins no nodes of this run: run "
                    "the methods in a folder of their own."
                )
            edges[kind].append((places[source], places[target]))
        if places:
            graphs.append(SkillGraph(record.skill, nodes[record.skill], edges))
    return graphs


def find_needed(queries: Iterable[QueryRecord], graphs: Iterable[SkillGraph]) -> list[NeededNodes]:
    """Return the nodes that each query needs; queries without critical lines in a node are left out."""
    nodes_of = {graph.skill: graph.nodes for graph in graphs}
    found = []
    for query in queries:
        nodes = nodes_of.get(query.skill, ())
        places = [
            place
            for place, node in enumerate(nodes)
            if node.file == nodes[0].file
            and any(node.start_line <= last and first <= node.end_line for first, last in query.critical)
        ]
        if places:
            found.append(NeededNodes(query.id, query.skill, np.array(places, dtype=np.int64)))
    return found


# ---- tables


def edge_kinds(results: Results) -> Table | None:
    """Return the number of edges of each kind; None if the run did not record them."""
    graphs = read_graphs(results)
    if not graphs:
        return None
    nodes = sum(len(graph.nodes) for graph in graphs)
    counts = {str(kind): [len(graph.edges.get(kind, ())) for graph in graphs] for kind in EdgeKind}
    counts["total"] = [sum(each) for each in zip(*counts.values(), strict=True)]
    total = max(sum(counts["total"]), 1)
    return Table(
        "edge-kinds",
        "Edges of the skills' graphs by kind",
        [
            {
                "Kind": kind,
                "Edges": sum(numbers),
                "Share (%)": 100 * sum(numbers) / total,
                "Edges a node": sum(numbers) / nodes,
                "Skills that have any (%)": 100 * fmean(map(bool, numbers)),
            }
            for kind, numbers in counts.items()
        ],
        note=f"{len(graphs):,} skills, {nodes:,} nodes. The encoder decides how many semantic edges there "
        f"are: they join nodes whose cosine exceeds {SEMANTIC_THRESHOLD}, at most {MAX_NEIGHBOURS} from one.",
        reference=_REFERENCE,
        digits={"Share (%)": 1, "Skills that have any (%)": 1},
        strong={"total"},
    )


def topology(results: Results) -> Table | None:
    """Return how connected the graphs are and how far needed nodes are from the entry; None without edges."""
    graphs = read_graphs(results)
    if not graphs:
        return None
    needed = find_needed(results.queries, graphs)
    all_edges, others = (_measure(graphs, kinds, needed) for kinds in (STRUCTURE, WITHOUT_SEQUENCE))
    return Table(
        "topology",
        "Topology of the skills' graphs, and the way from the entry node to the nodes that queries need",
        [
            {"": name, "All edges": number, "Without sequence edges": others[name]}
            for name, number in all_edges.items()
        ],
        note="Components ignore the direction of edges; ways follow it, as a walk from the entry node (the "
        "first one) does. Needed nodes share a line with the critical ones of a query, and count once for "
        "each query. Sequence edges alone lead through a whole file, one node at a time: the second column "
        "is what the other kinds add. The paper calls its graphs sparse, and needed nodes “frequently "
        "disconnected or topologically distant” from the entry.",
        reference=_REFERENCE,
    )


def _measure(
    graphs: Sequence[SkillGraph], kinds: Collection[str], needed: Sequence[NeededNodes]
) -> dict[str, Cell]:
    """Return the rows of `topology` for the edges of some kinds."""
    components = [graph.components(kinds) for graph in graphs]
    hops = {graph.skill: graph.hops(kinds) for graph in graphs}
    nodes = sum(len(graph.nodes) for graph in graphs)
    # the entry node itself is no hop away from nothing
    others = np.concatenate([ways[1:] for ways in hops.values()])
    wanted = np.concatenate([hops[each.skill][each.places] for each in needed] or [np.empty(0)])
    edges = sum(len(graph.edges.get(kind, ())) for graph in graphs for kind in kinds)
    return {
        "Edges that leave a node, mean": edges / nodes,
        "Nodes without any edge (%)": 100 * sum(sizes.count(1) for sizes in components) / nodes,
        "Connected components of a skill, mean": fmean(map(len, components)),
        "Nodes in the largest component, mean (%)": 100 * fmean(max(s) / sum(s) for s in components),
        "Nodes that a way from the entry leads to (%)": _share_reached(others),
        "… hops to these, median": _quantile(others, 0.5),
        "Needed nodes": len(wanted),
        "… that a way from the entry leads to (%)": _share_reached(wanted),
        "… hops to needed nodes, median": _quantile(wanted, 0.5),
        "… hops to needed nodes, 90th percentile": _quantile(wanted, 0.9),
    }


def _share_reached(hops: Hops) -> Cell:
    return 100 * float(np.isfinite(hops).mean()) if len(hops) else None


def _quantile(hops: Hops, quantile: float) -> Cell:
    """Return a quantile of the finite numbers of hops; None if there are none."""
    finite = hops[np.isfinite(hops)]
    return float(np.quantile(finite, quantile)) if len(finite) else None


def entry_bias(results: Results) -> Table | None:
    """Return which needed nodes methods show, by distance from the entry; None without walk or evidence."""
    labels = [label for label in (WALK, *GLOBAL) if results.has(label)]
    graphs = read_graphs(results) if WALK in labels else []
    needed = find_needed(results.queries, graphs)
    if not needed:
        return None
    hops = {graph.skill: graph.hops(STRUCTURE) for graph in graphs}
    distances = np.concatenate([hops[each.skill][each.places] for each in needed])
    skills = np.concatenate([[each.skill] * len(each.places) for each in needed])
    shown = {label: _are_shown(results, label, graphs, needed) for label in labels}
    rows: list[dict[str, Cell]] = []
    for name, inside in _bands(distances):
        cells: dict[str, Cell] = {"Hops from the entry": name, "Needed nodes": int(inside.sum())}
        for label, found in shown.items():
            judged = inside & ~np.isnan(found)
            rate = (
                bootstrap(found[judged], clusters=list(skills[judged])).scaled(100) if judged.any() else None
            )
            cells[f"{label} (%)"] = rate
        rows.append(cells)
    return Table(
        "entry-bias",
        "Entry bias: the share of needed nodes that methods show, by distance from the entry node",
        rows,
        note="A node counts once for each query that needs it. Intervals draw skills. Methods stop at "
        "different sizes: compare how a method's share falls with the distance, not its level.",
        reference="paper §5.2.1, Greedy graph: “vulnerable to entry-point bias” (no numbers)",
        digits={f"{label} (%)": 1 for label in labels},
        strong={"all"},
    )


def _bands(distances: Hops) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the name of each band of distances that has nodes, and which nodes are in it."""
    first = 0
    for last in BANDS:
        yield from _if_any(f"{first} to {last}", (distances >= first) & (distances <= last))
        first = last + 1
    yield from _if_any(f"{first} or more", (distances >= first) & np.isfinite(distances))
    yield from _if_any("no way", ~np.isfinite(distances))
    yield "all", np.ones(len(distances), dtype=bool)


def _if_any(name: str, inside: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    if inside.any():
        yield name, inside


def _are_shown(
    results: Results, label: str, graphs: Iterable[SkillGraph], needed: Iterable[NeededNodes]
) -> NDArray[np.float64]:
    """Return 1 for each needed node that a method shows, else 0; NaN for queries that it was not run on."""
    ids = {graph.skill: [node.id for node in graph.nodes] for graph in graphs}
    shown = {each.query: frozenset(each.nodes) for each in results.folder.selections(label)}
    return np.array(
        [
            float(ids[each.skill][place] in shown[each.query]) if each.query in shown else np.nan
            for each in needed
            for place in each.places
        ]
    )
