"""The paper's baselines on the graph: picks with the nodes they depend on, and a greedy walk.

- Dependencies: picks with the sources of the edges into them. `max_nodes` counts what is picked for the
  query; one-hop predecessors come on top, as in the paper, where 17.9 picks became 28.1 nodes. `max_tokens`
  bounds both.
- A greedy walk over the graph from the entry node. The frontier holds every node that an edge of any kind
  enters from a visited node, and the walk visits the most relevant one next, until its relevance is below a
  threshold. A node that no path of relevant nodes leads to is not found.

The paper gives neither the threshold of the walk nor the k of top-k with dependency completion, only how many
nodes they select. `skillpager bench fit` finds the values that select as many with an encoder; a file holds
those of several, one object each, and `fitted.json` those that ship.

Reference: paper §3.3, Graph Augmentation at Query Time and From Graph Traversal to Global Retrieval; §4.3,
Top-k + dependency completion and Greedy graph traversal; table tab:main-results.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from heapq import heappop, heappush
from pathlib import Path
from typing import Self

from skillpager.errors import SettingsError
from skillpager.files import write_file
from skillpager.settings import Settings
from skillpager.strategies.mmr import Mmr
from skillpager.strategies.picking import Picker, falling
from skillpager.types import Budget, FloatArray, Query, Recipe, Selection, SkillIndex, SkipReason, TokenMeter

logger = logging.getLogger(__name__)

SHIPPED = Path(__file__).with_name("fitted.json")
# without a fit greedy traversal has no threshold: it ends at max_nodes, or where no edge leads on
NO_THRESHOLD = -1.0
# without a fit; k depends on the graph more than on the encoder: it was 9 for each of those that ship
DEFAULT_SEEDS = 9
ENTRY = 0  # the node from which the walk begins


@dataclass(frozen=True, slots=True)
class FittedBaselines:
    """The settings for one encoder and text form, and what they were fitted on.

    Attributes:
        encoder: Id of the encoder.
        embedded_text: Which text of a node is embedded: `context`, `heading` or `bare`.
        threshold: Least gain of `greedy_graph`, -1 to 1.
        seeds: The k of `topk_dependency`.
        greedy_nodes: Mean number of nodes that `greedy_graph` selects with that threshold.
        dependency_nodes: Mean number of nodes that `topk_dependency` selects with that k.
        skills: Number of training skills.
        queries: Number of queries about them.
        mean_nodes: Mean number of nodes of a skill.
        skills_sha256: Digest of the training skills, as in the manifest of a benchmark folder.
    """

    encoder: str
    embedded_text: str
    threshold: float
    seeds: int
    greedy_nodes: float
    dependency_nodes: float
    skills: int
    queries: int
    mean_nodes: float
    skills_sha256: str

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ValueError: The threshold is not a cosine, or `seeds` is below 1.
        """
        if not -1.0 <= self.threshold <= 1.0 or self.seeds < 1:
            raise ValueError(f"threshold is {self.threshold} and seeds is {self.seeds}")

    def fits(self, recipe: Recipe) -> bool:
        """Return whether these are the settings for the encoder and text form of an index."""
        return (self.encoder, self.embedded_text) == (recipe.encoder, recipe.embedded_text)


@cache
def read_fits(path: Path = SHIPPED) -> tuple[FittedBaselines, ...]:
    """Return the settings that a file holds.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    try:
        loaded = json.loads(path.read_bytes())
        if not isinstance(loaded, list):
            raise ValueError("it is no list")
        return tuple(FittedBaselines(**each) for each in loaded)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise SettingsError(
            f"{path} holds no fitted baselines ({error}): make it with `skillpager bench fit`."
        ) from error


def write_fit(path: Path, fit: FittedBaselines) -> None:
    """Add the settings for an encoder and text form to a file; earlier ones for both are replaced.

    Raises:
        SettingsError: The file holds something else, or cannot be written.
    """
    kept = read_fits(path) if path.exists() else ()
    by_recipe = {(each.encoder, each.embedded_text): asdict(each) for each in (*kept, fit)}
    try:
        write_file(path, json.dumps([by_recipe[key] for key in sorted(by_recipe)], indent=2) + "\n")
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written ({error.strerror or error}): choose another file."
        ) from error
    read_fits.cache_clear()


def fits_of(settings: Settings) -> tuple[FittedBaselines, ...]:
    """Return the settings of the user's file, if one is named, then those that ship.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    own = read_fits(settings.baselines) if settings.baselines else ()
    return (*own, *read_fits())


def find_fit(recipe: Recipe, fits: Sequence[FittedBaselines] | None = None) -> FittedBaselines | None:
    """Return the first of `fits`, by default those that ship, for the encoder and text form of an index."""
    return next((fit for fit in (read_fits() if fits is None else fits) if fit.fits(recipe)), None)


def describe_fit(recipe: Recipe, fits: Sequence[FittedBaselines] | None = None) -> str:
    """Return the settings that apply to an index, as the labels of methods that have them."""
    if fit := find_fit(recipe, fits):
        return f"greedy_graph:{fit.threshold:g} and topk_dependency@k={fit.seeds}"
    return f"not fitted: greedy_graph:{NO_THRESHOLD:g} and topk_dependency@k={DEFAULT_SEEDS}"


@cache
def _warn_of_no_fit(encoder: str, embedded_text: str) -> None:
    """Log once in a process that greedy traversal has no threshold for an encoder."""
    logger.warning(
        "greedy_graph has no threshold for the encoder %s (text %s) and ends at max_nodes alone: fit one "
        "with `skillpager bench fit`, or write greedy_graph:GAIN.",
        encoder,
        embedded_text,
    )


def predecessors(index: SkillIndex, relevance: FloatArray) -> dict[int, list[int]]:
    """Return the sources of the edges, of all four kinds, into each node that has any.

    The most relevant is first, the earlier of equals first. `relevance` is `(n,)`, the cosine of the query
    and each node.
    """
    sources: dict[int, set[int]] = {}
    for edge in index.edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    values = relevance.tolist()
    return {
        target: sorted(found, key=lambda ordinal: (-values[ordinal], ordinal))
        for target, found in sources.items()
    }


@dataclass(frozen=True, slots=True)
class MmrGraph(Mmr):
    """The picks of MMR, each followed by its predecessors.

    MMR does not see the predecessors: without `max_tokens` its picks are those of `mmr`.
    """

    name: str = "mmr_graph"

    def completions(self, index: SkillIndex, relevance: FloatArray) -> dict[int, list[int]]:
        """Return the predecessors of each node."""
        return predecessors(index, relevance)


@dataclass(frozen=True, slots=True)
class TopKDependency:
    """The top k nodes by relevance, each followed by its predecessors.

    `max_nodes` is k for skills of any size, else `seeds`; None for the number that was fitted for the encoder
    of the index, of `fits` or of those that ship.
    """

    seeds: int | None = None
    fits: Sequence[FittedBaselines] | None = None
    name: str = "topk_dependency"

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the strategy with the fits of the settings.

        Raises:
            SettingsError: The file of fits cannot be read.
        """
        return cls(fits=fits_of(settings))

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` nodes by falling relevance, each with its predecessors."""
        fit = find_fit(index.recipe, self.fits)
        fitted = fit.seeds if fit else DEFAULT_SEEDS
        seeds = next(k for k in (budget.max_nodes, self.seeds, fitted) if k is not None)
        picker = Picker(index, query, budget=Budget(seeds, budget.max_tokens), meter=meter)
        sources = predecessors(index, picker.relevance)
        picker.fill(falling(picker.relevance), compare=False, completions=sources)
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class GreedyGraph:
    """The nodes that a greedy walk from the first node of the skill picks.

    The walk ends when no frontier node has a gain of at least `threshold`, -1 to 1; None for the one that was
    fitted for the encoder of the index, of `fits` or of those that ship. It also visits a node that does not
    fit `max_tokens`, so that one large node at the entry does not hide the rest.
    """

    threshold: float | None = None
    fits: Sequence[FittedBaselines] | None = None
    name: str = "greedy_graph"

    @classmethod
    def from_settings(cls, settings: Settings, *, threshold: float | None = None) -> Self:
        """Return the strategy with the fits of the settings.

        Raises:
            SettingsError: The file of fits cannot be read.
        """
        return cls(threshold, fits_of(settings))

    def __post_init__(self) -> None:
        """Check the threshold.

        Raises:
            ValueError: `threshold` is not a cosine.
        """
        if self.threshold is not None and not -1.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold must be between -1 and 1, not {self.threshold}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks in the order of the walk; the entry node needs no gain."""
        threshold = self.threshold
        if threshold is None:
            fit = find_fit(index.recipe, self.fits)
            threshold = fit.threshold if fit else NO_THRESHOLD
            if not fit:
                _warn_of_no_fit(index.recipe.encoder, index.recipe.embedded_text)
        successors: dict[int, list[int]] = {}
        for edge in index.edges:
            successors.setdefault(edge.source, []).append(edge.target)
        picker = Picker(index, query, budget=budget, meter=meter)
        gains: list[float] = picker.relevance.tolist()
        frontier = [(-gains[ENTRY], ENTRY)] if gains else []
        reached = {ENTRY}
        while frontier and picker.room > 0:
            if frontier[0][1] != ENTRY and -frontier[0][0] < threshold:
                picker.refuse((ordinal for _, ordinal in frontier), SkipReason.BELOW_THRESHOLD)
                break
            _, best = heappop(frontier)
            picker.admit(best)
            for target in successors.get(best, ()):
                if target not in reached:
                    reached.add(target)
                    heappush(frontier, (-gains[target], target))
        ended = SkipReason.NOT_REACHED if picker.room > 0 else SkipReason.MAX_NODES
        return picker.selection(self.name, reason=ended)
