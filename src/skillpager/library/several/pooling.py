"""One pool of the nodes of several skills: which of them share a page, under one budget.

Each skill's strategy says which of its nodes it picks, in which order, and with what chance the picks so far
suffice. A page suffices if each of its parts does, with the product of these chances. So the pool merges the
orders by

    value(picks) = gain in the logarithm of the chance / tokens

of each run of picks of one skill, where the runs are chosen so that their values fall: what completes a pick
is not left behind for having little value of its own. The first pick of a skill costs its frame, too. Picks
of strategies that estimate no chance are merged so that all parts grow evenly.

The chances of the skills have no part in it. They decided which skills are chosen; weighed by them, too, a
pool starves the less likely skill, and the page lacks its task.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import log

from skillpager.pages.render import PageMeter, PageRenderer
from skillpager.types import SKILL_DIR, Pick, Selection, Skip, SkipReason

# number of a skill, and ordinal of a node in it
Place = tuple[int, int]

# the chance of a part without a node, as which smaller chances count, too
LEAST_SUFFICIENCY = 0.01
VALUE_DIGITS = 9  # of a value; machines whose logarithms differ in the last bits agree on these
# the mark in the place of a shorter node takes as many tokens
LEAST_REPEATED_TOKENS = 16
# A link or path to a file of the skill itself, such as `references/details.md`, which is another file in
# another skill; no address of the web, path of the system or `owner/name`
_OWN_FILE = re.compile(
    r"\]\(\s*<?(?![a-z][a-z\d+.-]*:|[/#])[^)\s]"
    r"|(?<![\w/:.~@$\\-])(?:\.{1,2}/|\w[\w.-]*/)[\w./-]*\.[a-z]\w*"
    r"|(?<![\w/:.~@$\\-])\w[\w.-]*\.md\b"
    rf"|{re.escape(SKILL_DIR)}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A skill whose nodes are in the pool.

    Attributes:
        renderer: Renders its part of the page.
        selection: What its strategy picks without a limit on tokens.
    """

    renderer: PageRenderer
    selection: Selection


@dataclass(slots=True, eq=False)
class Share:
    """What the page holds of a skill, as it grows.

    Attributes:
        source: The skill.
        repeated: Of the picks whose text an earlier skill has, too, by ordinal: number of that skill, and
            ordinal there.
        picks: Those on the page, each with the tokens that it adds and those of the page after it.
        refused: Those that did not fit.
    """

    source: Source
    repeated: dict[int, Place]
    picks: list[Pick] = field(default_factory=list)
    refused: list[Pick] = field(default_factory=list)

    @property
    def shown(self) -> list[int]:
        """Ordinals of the nodes to show, in order of picking."""
        return [pick.node.ordinal for pick in self.picks if pick.node.ordinal not in self.repeated]

    @property
    def sufficiency(self) -> float | None:
        """Estimated chance that its part holds all that is needed of it, or a lower bound of it.

        None if its strategy does not estimate it.
        """
        held = {pick.node.ordinal for pick in self.picks}
        chance: float | None = 0.0
        for pick in self.source.selection.picks:
            if pick.sufficiency is None or pick.node.ordinal not in held:
                return None if pick.sufficiency is None else chance
            chance = pick.sufficiency  # after this pick and all before it
        return chance

    def drop_last(self) -> None:
        """Take the pick that was added last off the page."""
        while self.picks:
            pick = self.picks.pop()
            self.refused.append(pick)
            if pick.node.ordinal not in self.repeated:
                break

    def drop_lost(self, shares: "Sequence[Share]") -> None:
        """Take the picks off the page whose text the earlier skill does not show after all."""
        for pick in list(self.picks):
            twin = self.repeated.get(pick.node.ordinal)
            if twin and twin[1] not in shares[twin[0]].shown:
                self.picks.remove(pick)
                self.refused.append(pick)

    def selection(self, limit: int | None) -> Selection:
        """Return the selection with the picks on the page; those that did not fit are skipped.

        Args:
            limit: Ceiling on the tokens of the page.
        """
        made = self.source.selection
        picks = tuple(replace(pick, rank=rank) for rank, pick in enumerate(self.picks))
        made = replace(made, picks=picks, budget=replace(made.budget, max_tokens=limit))
        if not self.refused:
            return made
        late = [
            Skip(pick.node, SkipReason.MAX_TOKENS, pick.relevance, pick.redundancy, pick.marginal)
            for pick in self.refused
        ]
        skipped = sorted([*made.skipped, *late], key=lambda skip: skip.node.ordinal)
        return replace(made, skipped=tuple(skipped))


def share_budget(sources: Sequence[Source], limit: int | None, frame_tokens: int = 0) -> list[Share]:
    """Return what a page holds of each source: the most valuable picks that fit, texts in two skills once.

    Args:
        sources: The skills, in the order of their parts.
        limit: Ceiling on the tokens of the page; None for none.
        frame_tokens: Tokens of the page besides its parts.
    """
    shares = [Share(source, repeated) for source, repeated in zip(sources, _repeated(sources), strict=True)]
    meters = [PageMeter(source.renderer, covered=source.selection.covered) for source in sources]
    started = [False] * len(sources)
    total = frame_tokens
    for number, pick in _merged(sources):
        share, meter, ordinal = shares[number], meters[number], pick.node.ordinal
        if ordinal in share.repeated:
            share.picks.append(replace(pick, tokens=0, total_tokens=total))
            continue
        cost = meter.cost(ordinal) - (meter.tokens if started[number] else 0)
        if limit is not None and total + cost > limit:
            share.refused.append(pick)
            continue
        meter.add(ordinal)
        started[number] = True
        total += cost
        share.picks.append(replace(pick, tokens=cost, total_tokens=total))
    for share in shares:
        share.drop_lost(shares)
    return shares


def _merged(sources: Sequence[Source]) -> Iterator[tuple[int, Pick]]:
    """Yield the picks of all sources, each with the number of its own, the most valuable first."""
    keyed = [
        (-value, number, place)
        for number, source in enumerate(sources)
        for place, value in enumerate(_values(source))
    ]
    for _, number, place in sorted(keyed):
        yield number, sources[number].selection.picks[place]


def _values(source: Source) -> list[float]:
    """Return the values of the picks of a source, which never rise."""
    tokens = source.renderer.frame_tokens(source.selection.covered)
    # runs of picks: how many, their tokens, and what they add to the logarithm of the chance
    runs: list[tuple[int, int, float]] = []
    values: list[float] = []
    before = log(LEAST_SUFFICIENCY)
    for pick in source.selection.picks:
        tokens += pick.node.tokens
        if pick.sufficiency is None:
            values.append(-float(sum(size for _, size, _ in runs) + tokens))
            runs.append((1, tokens, 0.0))
        else:
            chance = log(max(pick.sufficiency, LEAST_SUFFICIENCY))
            run = (1, max(1, tokens), chance - before)
            while runs and run[2] * runs[-1][1] >= runs[-1][2] * run[1]:
                count, size, gain = runs.pop()
                run = (count + run[0], size + run[1], gain + run[2])
            runs.append(run)
            before = chance
        tokens = 0
    return values or [round(gain / size, VALUE_DIGITS) for count, size, gain in runs for _ in range(count)]


def _repeated(sources: Sequence[Source]) -> list[dict[int, Place]]:
    """Return for each source, by ordinal, where an earlier source picks the same text.

    The same text that leads to a file of its skill says something else in each. Nearly the same text is no
    repetition: rules that are right about it find too little (docs/library.md).
    """
    first: dict[str, Place] = {}
    found: list[dict[int, Place]] = []
    for number, source in enumerate(sources):
        nodes = [pick.node for pick in source.selection.picks if pick.node.tokens >= LEAST_REPEATED_TOKENS]
        texts = {node.ordinal: " ".join(node.text.split()) for node in nodes}
        found.append(
            {
                ordinal: first[text]
                for ordinal, text in texts.items()
                if text in first and not _OWN_FILE.search(text)
            }
        )
        for ordinal, text in texts.items():
            first.setdefault(text, (number, ordinal))
    return found
