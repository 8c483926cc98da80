"""What pages promise on skills never seen: how many suffice, what they save, and how their chances hold."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import train_navigator
from data import BROAD, LONG, SHORT, UNANSWERED
from data import Example as Document
from skillpager.sections import sections_of
from skillpager.strategies.navigator.lexical import stems_of, terms_of
from skillpager.strategies.navigator.model import NeedModel
from skillpager.strategies.navigator.strategy import LEAN_BELOW, LEAST_CHANCE, LEAST_SAVING
from skillpager.types import FloatArray
from train_navigator import Case, Walk
from train_types import calibration_error, reliability

# series of queries that pages are judged on
ANSWERED = (LONG, SHORT, BROAD)
# pages without limits: row of `Limits.price`, and by how much that is multiplied
PAGES = {
    "default": (0, 1.0),
    "half the price": (0, 0.5),
    "twice the price": (0, 2.0),
    "three times the price": (0, 3.0),
    "lean": (1, 1.0),
}
# tokens that pages of folders are filled to
CEILINGS = (2000, 4000, 8000)
# behind the name of skills with notes on their nodes
WITH_NOTES = " with notes"


def pages_of(model: NeedModel, walks: Sequence[Walk]) -> Iterator[dict[str, object]]:
    """Yield a row for each walk and kind of pages of a calibrated model: tokens, and whether it suffices."""
    for walk in walks:
        limits = model.limits_of(noted=walk.noted)
        assert limits.chance is not None
        chances = train_navigator.chances_of(walk, limits.chance)
        skills = ("one file" if walk.alone else "several files") if walk.typical else "one file, older"
        skills += WITH_NOTES * walk.noted
        of_walk = {"skills": skills, "queries": walk.series, "full": walk.full_tokens}
        unanswered = walk.covered is not None and walk.covered < LEAN_BELOW
        for pages, (row, factor) in PAGES.items():
            is_lean = row == 1 or unanswered
            price = limits.price_of(walk.kinds, walk.full_tokens, lean=is_lean, several=not walk.alone)
            least = 0.0 if unanswered else LEAST_CHANCE
            length = train_navigator.length_at(walk, chances, price * factor, least)
            if not is_lean and walk.shown[length - 1] >= (1 - LEAST_SAVING) * walk.full_tokens:
                length = len(walk.shown)
            yield of_walk | _page(pages, walk, length, chances)
        for ceiling in CEILINGS if not walk.alone else ():
            length = max(1, int(np.searchsorted(walk.shown, ceiling, side="right")))
            yield of_walk | _page(f"filled to {ceiling}", walk, length, chances)


def pages_by_words(case: Case, document: Document) -> Iterator[dict[str, object]]:
    """Yield a row for each page of a folder filled with whole sections, the best by BM25 first."""
    sections = sections_of(case.index)
    scores = case.known.in_section.score(stems_of(dict.fromkeys(terms_of(case.query.text))))[0]
    best = [sections[number] for number in np.argsort(-scores, kind="stable")]
    needed = list(chain.from_iterable(best[: train_navigator.enough(case, document, best)]))
    least, full = case.known.tokens[needed].sum(), case.index.full_tokens
    of_case = {"skills": "several files", "queries": case.asked.series, "full": full}
    for ceiling in CEILINGS:
        row = {"pages": f"BM25 to {ceiling}", "suffices": least <= ceiling, "tokens": min(ceiling, full)}
        yield of_case | row


def _page(pages: str, walk: Walk, length: int, chances: FloatArray) -> dict[str, object]:
    return {
        "pages": pages,
        "suffices": length >= walk.enough,
        "promised": chances[length - 1],
        "tokens": int(walk.shown[length - 1]),
    }


def table_of(rows: Sequence[dict[str, object]], covered: Sequence[tuple[Case, float | None]]) -> pd.DataFrame:
    """Return by pages, skills and queries how many suffice, what is saved, and how the promise holds.

    Args:
        rows: Those of `pages_of`.
        covered: Queries, near misses among them, and the chance that they are covered, if estimated.
    """
    frame = pd.DataFrame(rows)
    plain = frame[frame["skills"].isin(("one file", "several files")) & frame["pages"].isin(PAGES)]
    keys = ["pages", "skills", "queries"]
    found = [
        {**dict(zip(keys, names, strict=True)), **_figures(part)}
        for names, part in [
            *frame.groupby(keys),
            *(((*names, "all"), part) for names, part in frame.groupby(keys[:2])),
            *(((name, "all", "all"), part) for name, part in plain.groupby("pages")),
        ]
    ]
    for noted, skills in (False, "all"), (True, f"all{WITH_NOTES}"):
        told = [
            (case.asked.series, chance)
            for case, chance in covered
            if chance is not None and (case.index.notes is not None) is noted
        ]
        for name, series in (("all", ANSWERED), ("long and short", (LONG, SHORT))):
            kept = [(of != UNANSWERED, chance) for of, chance in told if of in (*series, UNANSWERED)]
            if kept:
                area = round(float(roc_auc_score(*zip(*kept, strict=True))), 4)
                row = {"pages": "covered", "skills": skills, "queries": name}
                found.append({**row, "count": len(kept), "auc": area})
    return pd.DataFrame(found)


def _figures(part: pd.DataFrame) -> dict[str, object]:
    suffices = part["suffices"].to_numpy(bool)
    found: dict[str, object] = {
        "count": len(part),
        "sufficient": round(float(suffices.mean()), 4),
        "saved": round(1 - part["tokens"].sum() / part["full"].sum(), 4),
        "tokens": round(part["tokens"].mean()),
    }
    if part["promised"].notna().all():
        bins = reliability(part["promised"].to_numpy(), suffices)
        both = 0 < suffices.sum() < len(suffices)
        area = round(float(roc_auc_score(suffices, part["promised"])), 4) if both else None
        found |= {"calibration_error": calibration_error(bins), "auc": area}
    return found
