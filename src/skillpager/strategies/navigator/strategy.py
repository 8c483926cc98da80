"""Nodes by estimated need instead of similarity: a small network says what the query needs.

    p(n)      = chance that the query needs node n (a network over `features`)
    weight(n) = −log(1 − p(n))
    value(n)  = weight(n) / cost(n)^COST_EXPONENT; the cost is its tokens and those of opening a gap
    next      = the node of the largest value, with its `required_context`
    chance    = that nothing is missing, from the weight that is left out and how large the page is (`Odds`)

As in MMR, nodes of every type are in the pool. Redundancy counts for nothing: to discount near-copies of the
picks helped no page in cross-validation.
The page ends where its chance less the price of its tokens is largest, or, if the budget has a `sufficiency`,
where the chance reaches it. A fixed price of a token gives more sufficiency per token than a fixed target
chance, because it spends less where doubt remains anyway. `max_nodes` and `max_tokens` may end it earlier;
only a budget with `fill` goes on to them.

Reference: paper §3.2 for the ideas; the estimate is this package's (docs/measured.md).
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np

from skillpager.strategies.navigator.features import IndexFeatures
from skillpager.strategies.navigator.lexical import clauses_of, terms_of
from skillpager.strategies.navigator.model import QUERY_KINDS, NeedModel, Odds, kinds_of, shipped_model
from skillpager.strategies.picking import PerIndex, Picker, falling
from skillpager.types import (
    Budget,
    FloatArray,
    Node,
    NodeType,
    Query,
    ScoreKind,
    Selection,
    SkillIndex,
    SkipReason,
    TileKind,
    TokenMeter,
)

# chosen by cross-validation over skills (training/train_navigator.py)
COST_EXPONENT = 0.6  # of the tokens that a node costs
OPENING_TOKENS = 12.0  # surcharge of a node that is not beside a shown one: neighbours are missed most
# a page without limits rather suffices than not, whatever its tokens cost: a query that needs much of a large
# skill would else get a node or two
LEAST_CHANCE = 0.5
# a page without limits has about no more tokens: of folders of thousands of nodes the chance would grow too
# slowly. A request in few words about one thing rarely needs half of that
MOST_TOKENS = (4800, 8000, 8000)  # by kind of query (`QUERY_KINDS`)
# a page that saves less than this share of the skill is the whole skill: so little is not worth a doubt
LEAST_SAVING = 0.2
# below this chance that the skill answers the query at all, its page is lean, and as short as pays off
LEAN_BELOW = 0.1
WORTH_DIGITS = 9  # of a page's worth; machines whose logarithms differ in the last bits agree on these

# share of the files of the smaller folder whose paths are those of files of the other; or of its headings
LEAST_SHARED = 0.5
LEAST_FILES, LEAST_HEADINGS = 2, 8  # so many at least: fewer are chance
MAX_TOLD = 2  # groups of variants of which a page names those that it does not show
MAX_IMPORT_TOKENS = 120  # a longer node is an example, not a list of imports, and is not required
# a longer one is worth its tokens only to queries that need it; these cost no saving, on folds
MAX_OPENING_TOKENS = 60
MAX_LIST_TOKENS = 400  # of a numbered list that comes whole or not at all: six more tokens a page of folders

# behind most words "go" is no language: "where do breakpoints go", "how do I go about it"
_VERB_GO = re.compile(r"\b(?!(?:and|for|from|in|or|to|using|vs|with) )(\w+) go\b")

# `import a.b as c, d`, `from x import y as z`, `from x import (y, z)`, `import {y as z} from "x"`,
# `const y = require("x")`; what is in brackets may be on several lines
_IMPORTS = re.compile(
    r"^[ \t]*(?:from\s+[\w.]+\s+import\s*(?:(?<=\s)(?P<python>[\w ,.*]+)|\((?P<bracketed>[^()]*)\))"
    r"|import\s+(?P<braced>(?:\w+\s*,\s*)?\{[^{}]*\})\s*from\b.*"
    r"|import\s+(?P<names>[\w ,.{}*]+?)(?:\s+from\b.*)?"
    r"|(?:const|let|var)\s+(?P<required>[\w ,{}]+?|\{[^{}]*\})\s*=\s*require\b.*)\s*(?:#.*)?$",
    re.MULTILINE,
)
_NUMBERED = re.compile(r"\s*\d+[.)]\s")
_COMMENT = re.compile(r"(?:#|//).*")
_WORD = re.compile(r"[^\W\d]\w*")
_RENAMED = re.compile(r"[\w.]+\s+as\s+")


def required_context(
    nodes: Sequence[Node], sections: Sequence[Sequence[int]] = ()
) -> dict[int, tuple[int, ...]]:
    """Return, by ordinal, the nodes that a node cannot be read without, if it has any; in document order.

    An item, or part of a table, requires the node that holds its lead-in, parent item or header rows, and an
    item of a short numbered list all others. Code requires the code before it that imports a name which it
    uses. A step requires the node that opens its section, if that is short: what the procedure needs, does,
    or must never do. `sections` are the ordinals of each section; without them, no step requires an opening.
    """
    in_file: dict[str, list[Node]] = {}
    for node in nodes:
        in_file.setdefault(node.span.file, []).append(node)
    lists: dict[tuple[str, int], list[Node]] = {}
    for node in nodes:
        if node.list_context and _NUMBERED.match(node.text):
            # the ordinal before the list, the same for all items that no other node separates
            before = node.ordinal - node.list_context.position
            lists.setdefault((node.span.file, before), []).append(node)
    whole: dict[int, set[int]] = {}
    for items in lists.values():
        if sum(item.tokens for item in items) <= MAX_LIST_TOKENS:
            whole |= {item.ordinal: {each.ordinal for each in items if each is not item} for item in items}
    required: dict[int, tuple[int, ...]] = {}
    imported: dict[tuple[str, str], int] = {}
    openings = {
        ordinal: section[0]
        for section in sections
        if nodes[section[0]].tokens <= MAX_OPENING_TOKENS
        for ordinal in section[1:]
        if nodes[ordinal].type is NodeType.STEP
    }
    for node in nodes:
        needed = {opening} if (opening := openings.get(node.ordinal)) is not None else set()
        needed |= whole.get(node.ordinal, set())
        lead_in = node.list_context.lead_in_span if node.list_context else None
        if lead_in:
            neighbours = in_file[lead_in.file]
            behind = bisect_right(neighbours, lead_in.start, key=lambda other: other.span.start)
            holder = neighbours[behind - 1] if behind else node
            if holder is not node and holder.span.end > lead_in.start:
                needed.add(holder.ordinal)
        if node.kind is TileKind.CODE:
            own: set[str] = set()
            for match in _IMPORTS.finditer(node.text):
                listed = _COMMENT.sub("", next(filter(None, match.groups()), ""))
                own.update(_WORD.findall(_RENAMED.sub("", listed)))
            used = {(node.span.file, name) for name in _WORD.findall(node.text) if name not in own}
            needed |= {imported[name] for name in used & imported.keys()}
            if node.tokens <= MAX_IMPORT_TOKENS:
                imported |= {(node.span.file, name): node.ordinal for name in own}
        if needed:
            required[node.ordinal] = tuple(sorted(needed))
    return required


class Variants:
    """Which nodes are in folders that say the same for other languages or systems: a query needs one."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        ordinals: dict[str, list[int]] = {}
        headings: dict[str, set[str]] = {}
        for node in nodes:
            ordinals.setdefault(node.span.file, []).append(node.ordinal)
            headings.setdefault(node.span.file, set()).update(node.heading_path[1:])
        self._groups = [
            [
                (
                    folder,
                    frozenset(terms_of(re.sub("[-_]", " ", folder.rpartition("/")[2]))),
                    np.concatenate([ordinals[file] for file in files]),
                )
                for folder, files in group.items()
            ]
            for group in variant_groups(headings)
        ]

    def choose(self, query: Query, needs: FloatArray) -> dict[str, list[str]]:
        """Set the needs of nodes to 0 if they are in other variants than those that a query needs.

        It needs the variants that it names; of variants of which it names none, those that its context names,
        or else the one whose nodes it needs most. Return `Selection.variants`.
        """
        unnamed: dict[str, list[str]] = {}
        for group in self._groups:
            for words in (set(terms_of(_VERB_GO.sub(r"\1", query.text))), set(terms_of(query.context))):
                wanted = [bool(terms) and terms <= words for _, terms, _ in group]
                if any(wanted):
                    break
            else:
                totals = [float(needs[ordinals].sum()) for _, _, ordinals in group]
                wanted[best := int(np.argmax(totals))] = True
                # without needs it is part of a variant that is left out
                if totals[best] > 0.0 and len(unnamed) < MAX_TOLD:
                    unnamed[group[best][0]] = [each[0] for each in group if each is not group[best]]
            for (_, _, ordinals), is_wanted in zip(group, wanted, strict=True):
                needs[ordinals] *= is_wanted
        return unnamed


def variant_groups(headings: Mapping[str, Set[str]]) -> list[dict[str, list[str]]]:
    """Return groups of sibling folders that are variants, outermost first: the files of each, by its path.

    `headings` are those of each file, by its path. Two folders are variants of each other if they share two
    files, and half of those of the smaller one, such as `go/batches.md` and `ruby/batches.md`; or eight
    headings, and half of the smaller one's. Variants of a variant are of its group.
    """
    below: dict[str, dict[str, dict[str, str]]] = {}
    for file in headings:
        parts = file.split("/")
        for depth in range(1, len(parts)):
            parent, folder = "/".join(parts[: depth - 1]), "/".join(parts[:depth])
            below.setdefault(parent, {}).setdefault(folder, {})["/".join(parts[depth:])] = file
    groups: list[dict[str, list[str]]] = []
    for children in below.values():
        group_of = {name: name for name in children}
        for one, other in combinations(children, 2):
            if _are_alike(children[one], children[other], headings):
                old, new = group_of[other], group_of[one]
                group_of = {name: new if group == old else group for name, group in group_of.items()}
        for group in dict.fromkeys(group_of.values()):
            names = [name for name in children if group_of[name] == group]
            if len(names) > 1:
                groups.append({name: list(children[name].values()) for name in names})
    return groups


def _are_alike(one: Mapping[str, str], other: Mapping[str, str], headings: Mapping[str, Set[str]]) -> bool:
    """Return whether two folders, their files by the paths below them, are variants of each other."""
    titles, others = ({title for file in each.values() for title in headings[file]} for each in (one, other))
    pairs: list[tuple[Set[str], Set[str], int]]
    pairs = [(one.keys(), other.keys(), LEAST_FILES), (titles, others, LEAST_HEADINGS)]
    return any(len(a & b) >= max(least, LEAST_SHARED * min(len(a), len(b))) for a, b, least in pairs)


class _Prepared:
    """Cached for an index: its features and required context."""

    def __init__(self, index: SkillIndex) -> None:
        self.features = IndexFeatures(index)
        self.required = required_context(index.nodes, self.features.sections)
        self.variants = Variants(index.nodes)


@dataclass(frozen=True, slots=True)
class Navigator:
    """Nodes by estimated need per token, until the page probably suffices.

    Attributes:
        model: Estimates needs; None for the shipped one.
        cost_exponent: Exponent of the tokens that a node costs.
        opening_tokens: Surcharge of a node that is not beside a shown one; its mark if that costs more.
        closure: Whether a pick adds its required context.
        lean: Whether a page without limits ends where it probably suffices; by default it ends where it
            almost certainly does.
    """

    name: str = "navigator"
    model: NeedModel | None = None
    cost_exponent: float = COST_EXPONENT
    opening_tokens: float = OPENING_TOKENS
    closure: bool = True
    lean: bool = False
    prepared: PerIndex[_Prepared] = field(default_factory=PerIndex, repr=False, compare=False)

    @property
    def embedding(self) -> str:
        """The embeddings that it reads: encoder id, `/` and text form."""
        return self._model.embedding

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the nodes of the largest value while they are worth their tokens, or as the budget says.

        `max_nodes` bounds the picks if it is given; their required context comes on top. The default is the
        number of all nodes.

        Raises:
            StrategyError: The shipped model cannot be read.
        """
        most = len(index.nodes) if budget.max_nodes is None else budget.max_nodes
        bounded = replace(budget, max_nodes=most)
        picker = Picker(index, query, budget=bounded, meter=meter, score_kind=ScoreKind.NEED)
        if not index.nodes:
            return picker.selection(self.name, reason=SkipReason.NOT_REACHED)
        prepared = self.prepared.of(index, _Prepared)
        model = self._model
        needs = model.needs(prepared.features, query)
        covered = model.covered(prepared.features, query, needs)
        breadth = model.breadth_of(query)
        kinds = kinds_of(query, breadth)
        limits = model.limits_of(noted=index.notes is not None)
        variants = prepared.variants.choose(query, needs)
        picker.marginal = needs
        gap = max(float(meter.gap_tokens), self.opening_tokens)
        odds = limits.odds_of(query, needs, index.full_tokens, breadth)
        begin = partial(_Walk, self, prepared, needs, odds, gap)
        most = len(index.nodes)
        unanswered = covered is not None and covered < LEAN_BELOW
        lean = self.lean or unanswered
        if budget.sufficiency is None and not budget.fill:
            several, full = len(index.skill.files) > 1, index.full_tokens
            price = limits.price_of(kinds, full, lean=lean, several=several)
            least = 0.0 if unanswered else LEAST_CHANCE
            most = _best_length(begin(), price, least, float(kinds @ MOST_TOKENS))
        walk = begin()
        reason = walk.run(picker, most, budget.sufficiency)
        ceiling = index.full_tokens if budget.max_tokens is None else budget.max_tokens
        saves_little = walk.page_share >= 1 - LEAST_SAVING and index.full_tokens <= ceiling
        if saves_little and picker.room >= len(index.nodes) - len(picker.picks) and not lean:
            reason = walk.run(picker, len(index.nodes), None)
        picker.compare_picks()
        broad = bool(kinds[QUERY_KINDS.index("broad")] > 0.5)
        chosen = picker.selection(self.name, reason=reason, covered=covered)
        return replace(chosen, variants=variants, broad=broad)

    def clauses(self, query: str) -> Sequence[str]:
        """Return the clauses of a query, which are embedded in addition to the whole."""
        return clauses_of(query)

    def reasons(self, index: SkillIndex, query: Query) -> Sequence[Mapping[str, float]]:
        """Return for each node the share of each group of features in its estimated need.

        Raises:
            StrategyError: The shipped model cannot be read.
        """
        if not index.nodes:
            return []
        return self._model.reasons(self.prepared.of(index, _Prepared).features, query)

    @property
    def _model(self) -> NeedModel:
        return self.model or shipped_model()


@dataclass(frozen=True, slots=True)
class Lean(Navigator):
    """The navigator with pages that end where they probably suffice."""

    name: str = "lean"
    lean: bool = True


class _Walk:
    """Nodes in the order of picking: which are open or shown, and the weight and value of each."""

    def __init__(
        self, navigator: Navigator, prepared: _Prepared, needs: FloatArray, odds: Odds, gap: float
    ) -> None:
        self._navigator, self._prepared, self._odds = navigator, prepared, odds
        count = len(needs)
        self._weight = -np.log1p(-needs)
        self._open = np.ones(count, bool)
        self._is_shown = np.zeros(count, bool)
        self._left = float(self._weight.sum())
        # by falling weight, of which the first that is not shown is the largest that is left out; 0 ends them
        self._order = falling(self._weight)
        self._falling = [*self._weight[self._order].tolist(), 0.0]
        self._place = 0
        # shown neighbours of each node
        self._beside = np.zeros(count, np.intp)
        costs = prepared.features.tokens.astype(np.float64) + gap * np.array([[1.0], [0.0], [-1.0]])
        # by number of shown neighbours
        self._divisor = np.maximum(costs, 1.0) ** navigator.cost_exponent
        self._values = self._weight / self._divisor[0]
        # nodes that were picked or refused, tokens of those that are shown, and the chance that these suffice
        self.steps, self.shown, self.chance = 0, 0, 0.0
        self._gap, self._runs = gap, 0

    @property
    def page_share(self) -> float:
        """The tokens of a page of the shown nodes, about, as a share of those of all nodes."""
        return (self.shown + self._gap * self._runs) / max(1, int(self._prepared.features.tokens.sum()))

    def run(self, picker: Picker, most: int, target: float | None) -> SkipReason:
        """Pick until the budget or the nodes end, the chance is `target` or `most` were tried; say why."""
        while True:
            best = self.best()
            if best is None:
                return SkipReason.MAX_TOKENS
            if picker.room <= 0:
                return SkipReason.MAX_NODES
            if target is not None and picker.picks and self.chance >= target:
                return SkipReason.SUFFICIENCY
            if self.steps >= most and picker.picks:
                return SkipReason.BELOW_THRESHOLD
            self.pick(best, picker)

    def best(self) -> int | None:
        """Return the open node of the largest value; None if no node is open."""
        best = int(self._values.argmax())
        # values of open nodes are 0 or more, those of others -1
        return best if self._open[best] else None

    def pick(self, ordinal: int, picker: Picker | None, *, completes: bool = False) -> None:
        """Pick an open node with its required context; `completes` if it is that of another node.

        The picker records the pick, or refuses it if it does not fit; None to see what would be picked.
        """
        if not self._open[ordinal]:
            return
        self._open[ordinal], self._values[ordinal] = False, -1.0
        self.steps += 1
        left = max(0.0, self._left - float(self._weight[ordinal]))
        shown = self.shown + int(self._prepared.features.tokens[ordinal])
        # the place in falling order of the largest weight that is left out when this node is shown, too
        place = self._place
        while place < len(self._order) and (
            self._is_shown[self._order[place]] or self._order[place] == ordinal
        ):
            place += 1
        chance = self._odds.chance(left, self._falling[place], shown)
        if picker is not None:
            if not picker.admit(ordinal, sufficiency=chance):
                return
            if completes:
                picker.completions.add(ordinal)
        self._is_shown[ordinal] = True
        self._left, self.shown, self._place, self.chance = left, shown, place, chance
        self._runs += 1 - int(self._beside[ordinal])
        for near in (ordinal - 1, ordinal + 1):
            if 0 <= near < len(self._open):
                self._beside[near] += 1
                if self._open[near]:
                    self._values[near] = self._weight[near] / self._divisor[self._beside[near], near]
        if self._navigator.closure:
            for needed in self._prepared.required.get(ordinal, ()):
                self.pick(needed, picker, completes=True)


def _best_length(walk: _Walk, price: float, least: float, most_tokens: float) -> int:
    """Return the steps of a walk at which its chance less the price of its tokens is largest.

    Only lengths whose chance is at least `least` count; if none is, the walk goes to its end, or to
    `most_tokens`.
    """
    found, largest, last = None, -np.inf, 1
    # no chance is above 1, so a page that has more tokens is worth less than that
    while 1 - price * walk.shown > largest and (ordinal := walk.best()) is not None:
        walk.pick(ordinal, None)
        if walk.shown > most_tokens:
            break
        last = walk.steps
        worth = round(walk.chance - price * walk.shown, WORTH_DIGITS)
        if worth > largest and walk.chance >= least:
            found, largest = last, worth
    return found or last
