"""Suites: the methods of each table or figure.

Reference: paper §4.3 (main), table 1 (graph), §5.2.2 (concept), §5.3 (lambda, k, size, boundary).
"""

from collections.abc import Sequence
from dataclasses import replace

from skillpager.errors import BenchError

# every method that runs offline on the shipped models, in the order of the tables
OFFLINE = (
    "full",
    "navigator",
    "topk_dependency",
    "greedy_graph",
    "chunk_mmr",
    "mmr",
    "mmr_graph",
    "exec_only",
    "head",
    "sections",
    "bm25",
    "topk",
    "hybrid",
    "dpp",
    "msd",
    "cover",
)
BUDGET_SHARES = tuple(range(10, 100, 10))
# every strategy that runs on the shipped models; the whole document has no budget
BUDGET_METHODS = (*OFFLINE[1:], "concept_only", "density:0.4")
# the paper's λ stops early with an encoder of low cosines, so that curves show a higher one too
BUDGET_LAMBDA = 0.9

SUITES: dict[str, tuple[str, ...]] = {
    "main": ("full", "topk_dependency", "greedy_graph", "chunk_mmr", "mmr"),
    "offline": OFFLINE,
    "graph": ("mmr", "mmr_graph", "full"),
    "concept": ("concept_only", "exec_only", "density:0.3", "density:0.4", "density:0.5", "mmr", "full"),
    "lambda": tuple(f"mmr@lambda={value}" for value in (0.3, 0.5, 0.7, 0.9)),
    "k": (*(f"mmr@k={value}" for value in (5, 10, 20, 30, 40, 60)), "full"),
    "size": ("mmr@k=20", "mmr@k=60"),
    "boundary": tuple(f"mmr@boundary={value}" for value in (80, 100, 120)),
    "budget": tuple(
        f"{name}@{weight}tokens={share}%"
        for name, weight in (*((name, "") for name in BUDGET_METHODS), ("mmr", f"lambda={BUDGET_LAMBDA},"))
        for share in BUDGET_SHARES
    ),
    "granularity": ("mmr", *(f"chunk_mmr:{tokens}" for tokens in (64, 128, 256, 512))),
    "encoder": ("mmr", "mmr@encoder=hashing"),
    "classifier": (
        "exec_only",
        "exec_only@classifier=labels",
        "concept_only",
        "concept_only@classifier=labels",
    ),
}

# `bench sweep`: the value that is swept, and its suite
SWEEPS = {"lambda": "lambda", "k": "k", "size": "size", "threshold": "boundary", "budget": "budget"}
# `bench ablate`
ABLATIONS = ("concept", "graph", "granularity", "encoder", "classifier")


def suite(name: str, *, extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the labels of a suite; `extra` are encoders or classifiers to add to the suite of that name.

    Raises:
        BenchError: There is no such suite, or it takes no further parts.
    """
    if name not in SUITES:
        raise BenchError(f"Unknown suite {name!r}: choose one of {', '.join(SUITES)}.")
    if not extra:
        return SUITES[name]
    if name == "encoder":
        added = [f"mmr@encoder={part}" for part in extra]
    elif name == "classifier":
        added = [
            f"{strategy}@classifier={part}" for part in extra for strategy in ("exec_only", "concept_only")
        ]
    else:
        raise BenchError(f"The suite {name} takes no further parts: {', '.join(extra)}.")
    return (*SUITES[name], *(label for label in added if label not in SUITES[name]))


def sweep_methods(name: str, methods: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a sweep's suite with these methods in place of its own, each at every value.

    A method keeps its other options; the whole document stays, where the suite has it to compare with.

    Raises:
        BenchError: A label cannot be read.
    """
    # what reads labels imports numpy, which the help of the command line need not wait for
    from skillpager.bench.run.methods import parse_method

    swept = [parse_method(label) for label in SUITES[name] if label != "full"]
    # each value once, from the methods of the suite, which differ in the rest
    knobs = ("mmr_lambda",) if name == "lambda" else ("max_nodes", "boundary", "share")
    values = dict.fromkeys(tuple((knob, getattr(method, knob)) for knob in knobs) for method in swept)
    labels = [
        replace(parse_method(label), **{knob: value for knob, value in each if value is not None}).label
        for label in methods
        for each in values
    ]
    return (*dict.fromkeys(labels), *(label for label in SUITES[name] if label == "full"))
