"""Methods to compare: a strategy with its knobs, named by a label; and the suites of each table or figure.

    NAME[:ARGUMENT][@option=value,…]      mmr    mmr@lambda=0.9,k=20    chunk_mmr:128    head@tokens=40%

NAME[:ARGUMENT] is what `page --strategy` takes, or `chunk_mmr[:TOKENS]` (`windows`); `MODULE:NAME` and entry
points are strategies of others. Options:

    lambda=0.9       weight of relevance
    k=20  k=all      most nodes; without it 20 up to 100 nodes, else 60 (paper §3.2), and none for navigator
    boundary=80      up to so many nodes k is 20, else 60
    tokens=40%       ceiling on the context, as a share of the skill's tokens; k is `all` then unless given
    tokens=1500      the same in tokens
    sufficiency=0.9  estimated chance of sufficiency at which it ends (navigator)
    encoder=NAME     another encoder than the run's
    classifier=NAME  another classifier
    notes=FOLDER     notes on nodes from the files in a folder, as `skillpager enrich` writes them (navigator)

A label is read without loading what it names, so that a folder of others can be reported anywhere.
"""

import re
from dataclasses import dataclass

from skillpager.bench.run.windows import CHUNK_MMR, ENTRY, SECTION_BM25, chunk_tokens_of
from skillpager.errors import SettingsError
from skillpager.factories import STRATEGIES
from skillpager.strategies.picking import MAX_NODES_LARGE, MAX_NODES_SMALL

# more nodes than any skill has
ALL_NODES = 10**9
# strategies of methods: those of pages, and baselines that do not pick nodes
METHOD_STRATEGIES = (*STRATEGIES, CHUNK_MMR, ENTRY, SECTION_BM25)
# strategies that estimate sufficiency, and so can end at it (`types.EstimatingStrategy`)
ESTIMATING = ("navigator", "lean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A strategy with its knobs, as in the table of the module; None leaves a knob to the run."""

    strategy: str
    mmr_lambda: float | None = None
    max_nodes: int | None = None
    boundary: int | None = None
    share: float | None = None  # ceiling on the context as a share of the skill's tokens, 0 to 1
    max_tokens: int | None = None
    sufficiency: float | None = None
    encoder: str | None = None
    classifier: str | None = None
    notes: str | None = None

    @property
    def label(self) -> str:
        """The label that `parse_method` reads, options in the order of the module's table."""
        is_limited = self.share is not None or self.max_tokens is not None
        all_nodes = None if is_limited else "all"
        options = {
            "lambda": None if self.mmr_lambda is None else f"{self.mmr_lambda:g}",
            "k": all_nodes if self.max_nodes == ALL_NODES else self.max_nodes,
            "boundary": self.boundary,
            "tokens": self.max_tokens if self.share is None else f"{100 * self.share:g}%",
            "sufficiency": None if self.sufficiency is None else f"{self.sufficiency:g}",
            "encoder": self.encoder,
            "classifier": self.classifier,
            "notes": self.notes,
        }
        written = ",".join(f"{name}={value}" for name, value in options.items() if value is not None)
        return f"{self.strategy}@{written}" if written else self.strategy

    def budget(self, n_nodes: int, full_tokens: int) -> tuple[int | None, int | None]:
        """Return `max_nodes` and `max_tokens` for so many nodes and tokens (paper §3.2, equation (4))."""
        max_nodes = self.max_nodes
        if max_nodes is None and self.boundary is not None:
            max_nodes = MAX_NODES_SMALL if n_nodes <= self.boundary else MAX_NODES_LARGE
        return max_nodes, self.max_tokens if self.share is None else int(self.share * full_tokens)


def parse_method(label: str) -> Method:
    """Return the method that a label names; a strategy that is not ours is neither looked for nor loaded."""
    strategy, _, options = label.strip().partition("@")
    if not strategy:
        raise SettingsError(f"Method {label!r} names no strategy: write one before the @, such as mmr@k=20.")
    chunk_tokens_of(strategy)  # refuses a wrong size
    values: dict[str, object] = {}
    for option in filter(None, options.split(",")):
        name, _, text = option.partition("=")
        if name not in OPTIONS:
            raise SettingsError(f"Method {label!r} has an unknown option {name!r}: use {', '.join(OPTIONS)}.")
        try:
            values |= _read_option(name, text.strip())
        except ValueError as error:
            raise SettingsError(f"Method {label!r}: {name} cannot be {text!r}: {error}.") from error
    # of a strategy that is not ours it is known when it is loaded
    if values.keys() & {"sufficiency", "notes"} and is_ours(strategy) and strategy not in ESTIMATING:
        raise SettingsError(
            f"Method {label!r}: {strategy} does not estimate sufficiency or read notes, only "
            f"{' and '.join(ESTIMATING)} do."
        )
    if values.keys() & {"share", "max_tokens"}:
        values.setdefault("max_nodes", ALL_NODES)
    return Method(strategy=strategy, **values)  # type: ignore[arg-type]


OPTIONS = ("lambda", "k", "boundary", "tokens", "sufficiency", "encoder", "classifier", "notes")


def _read_option(name: str, text: str) -> dict[str, object]:
    """Return the field of a `Method` that an option sets."""
    match name:
        case "encoder" | "classifier" | "notes":
            if not text:
                raise ValueError("it must be a name")
            return {name: text}
        case "lambda":
            return {"mmr_lambda": _between_0_and_1(float(text))}
        case "sufficiency":
            chance = _between_0_and_1(float(text))
            if chance == 0.0:
                raise ValueError("it must be above 0, because every page reaches that")
            return {"sufficiency": chance}
        case "tokens" if text.endswith("%"):
            return {"share": _between_0_and_1(float(text[:-1]) / 100)}
        case "k" if text == "all":
            return {"max_nodes": ALL_NODES}
    if not re.fullmatch(r"[0-9]+", text):
        raise ValueError("it must be a whole number, 0 or more")
    return {{"k": "max_nodes", "tokens": "max_tokens"}.get(name, name): int(text)}


def _between_0_and_1(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError("it must lie between 0 and 1 (0 % and 100 %)")
    return value


def is_ours(strategy: str) -> bool:
    """Return whether `NAME[:ARGUMENT]` is one of SkillPager's strategies, or the chunk baseline."""
    return strategy.partition(":")[0] in METHOD_STRATEGIES


def read_labels(text: str) -> list[str]:
    """Return the labels of a list of methods and suites, each once; commas divide it, and options of a label.

    A part such as `k=20` that names no strategy belongs to the label before it.
    """
    labels: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if labels and "=" in part and "@" not in part:
            labels[-1] += f",{part}"
        else:
            labels.append(part)
    named = (label for part in labels for label in SUITES.get(part, (part,)))
    return list(dict.fromkeys(parse_method(label).label for label in named))


# ---- suites: paper §4.3 (main), table 1 (graph), §5.2.2 (concept), §5.3 (lambda, k, size, boundary)

# every method that runs offline on the shipped models, in the order of the tables
OFFLINE = (
    *("full", "navigator", "topk_dependency", "greedy_graph", "chunk_mmr", "mmr", "mmr_graph", "exec_only"),
    *("head", "sections", "bm25", "topk", "hybrid", "dpp", "msd", "cover"),
)
BUDGET_SHARES = tuple(range(10, 100, 10))
# every strategy that runs on the shipped models; the whole document has no budget
BUDGET_METHODS = (*OFFLINE[1:], "concept_only", "density:0.4")
# the paper's λ stops early with an encoder of low cosines, so that curves show a higher one too
BUDGET_LAMBDA = 0.9

FOLDER_TOKENS = (2000, 4000, 8000)

SUITES: dict[str, tuple[str, ...]] = {
    "main": ("full", "topk_dependency", "greedy_graph", "chunk_mmr", "mmr"),
    "offline": OFFLINE,
    "graph": ("mmr", "mmr_graph", "full"),
    "concept": ("concept_only", "exec_only", "density:0.3", "density:0.4", "density:0.5", "mmr", "full"),
    # skills of several files
    "folders": (
        *(ENTRY, "navigator", *(f"navigator@tokens={tokens}" for tokens in FOLDER_TOKENS)),
        *(*(f"{SECTION_BM25}@tokens={tokens}" for tokens in FOLDER_TOKENS), "full"),
    ),
    "lambda": tuple(f"mmr@lambda={value}" for value in (0.3, 0.5, 0.7, 0.9)),
    "k": (*(f"mmr@k={value}" for value in (5, 10, 20, 30, 40, 60)), "full"),
    "size": ("mmr@k=20", "mmr@k=60"),
    "boundary": tuple(f"mmr@boundary={value}" for value in (80, 100, 120)),
    "budget": (
        *(f"{name}@tokens={share}%" for name in BUDGET_METHODS for share in BUDGET_SHARES),
        *(f"mmr@lambda={BUDGET_LAMBDA},tokens={share}%" for share in BUDGET_SHARES),
    ),
    "granularity": ("mmr", *(f"chunk_mmr:{tokens}" for tokens in (64, 128, 256, 512))),
}
