"""A table of the strategies: the name, module, argument and permissions of each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """The argument of a strategy, as in `name:ARGUMENT`: a number, for a field; `sample` is a valid one."""

    field: str
    sample: str


@dataclass(frozen=True, slots=True)
class Family:
    """A strategy and its variants with other arguments: its class, and whether it takes `mmr_lambda`."""

    place: str
    weighs: bool = False
    argument: Argument | None = None


FAMILIES = {
    # learned from annotated skills
    "navigator": Family("navigator.strategy:Navigator"),
    "lean": Family("navigator.strategy:Lean"),
    # the paper's
    "mmr": Family("mmr:Mmr", weighs=True),
    "topk": Family("baselines.simple:TopK"),
    "full": Family("baselines.simple:Full"),
    # baselines and ablations of the paper
    "greedy_graph": Family("baselines.graph:GreedyGraph", argument=Argument("threshold", "0.1")),
    "topk_dependency": Family("baselines.graph:TopKDependency"),
    "mmr_graph": Family("baselines.graph:MmrGraph", weighs=True),
    "exec_only": Family("mmr:ExecOnly", weighs=True),
    "concept_only": Family("mmr:ConceptOnly", weighs=True),
    "density": Family("mmr:Density", weighs=True, argument=Argument("threshold", "0.4")),
    # other methods to compare with
    "head": Family("baselines.simple:Head"),
    "sections": Family("baselines.simple:Sections"),
    "bm25": Family("baselines.bm25:Bm25"),
    "hybrid": Family("baselines.bm25:Hybrid"),
    "dpp": Family("baselines.diversity:Dpp", argument=Argument("diversity", "0.5")),
    "msd": Family("baselines.diversity:Msd", argument=Argument("diversity", "0.01")),
    "cover": Family("baselines.diversity:Cover", argument=Argument("diversity", "0.005")),
}
