"""How the chance that a skill answers a request fares with skills about any topic, which hold no word of it.

    python training/topics.py DATA... --out benchmarks/topics.csv

DATA are folders of evidence data as for `train.py`. `topics.jsonl` has the skills that either of two readers
found to be about any topic (of 658; Cohen's κ .87), with requests by the first: four that the skill answers
and one that it does not; none for the three that only the second found. The regression that recognises such
skills is fitted on others, in five folds; encoder and coverage are those that ship, which learned from other
requests to the same skills.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
from sklearn.metrics import roc_auc_score

from data import BROAD, LONG, SHORT, Example, about_any_topic, load, places_about_any_topic
from skillpager import SkillPager
from skillpager.display_text import SURELY_UNCOVERED
from skillpager.pages.short_answer import LEAST_FOR_PAGE
from skillpager.strategies.navigator.features import IndexFeatures
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.strategies.navigator.model import shipped_model
from skillpager.types import Query
from train_navigator import fit_topics

FOLDS = 5
ANY, OWN = "skills about any topic", "requests of the data"


def main() -> None:
    """Ask every skill of several authors, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    examples, pager = load(options.data), SkillPager()
    known = {
        place: IndexFeatures(pager.index(example.document.files[0][1]))
        for place, example in enumerate(examples)
        if len(example.document.files) == 1
    }
    about_any = places_about_any_topic(examples)
    topics = [
        fit_topics({each: known[each].centre for each in known if each % FOLDS != fold}, about_any)
        for fold in range(FOLDS)
    ]
    rows = []
    for place, of in known.items():
        for source, answered, text in requests_of(examples[place]):
            row = pager.encoder.encode_query
            query = Query(text, row(text), tuple(Query(clause, row(clause)) for clause in clauses_of(text)))
            needs = shipped_model().needs(of, query)
            without, with_topics = (
                replace(shipped_model(), topics=each).covered(of, query, needs)
                for each in (None, topics[place % FOLDS])
            )
            rows.append((source, answered, without, with_topics))
    asked = pd.DataFrame(rows, columns=["requests", "answered", "without", "with"]).dropna()
    table = [
        {
            "requests": source,
            "topics": way,
            "answered": int(of["answered"].sum()),
            "not answered": int((~of["answered"]).sum()),
            **{
                f"{name} of {kind} (%)": round(
                    100 * float((of[way][of["answered"] == truth] < limit).mean()), 1
                )
                for name, limit in (("no page", LEAST_FOR_PAGE), ("seems not to cover", SURELY_UNCOVERED))
                for kind, truth in (("answered", True), ("not answered", False))
            },
            "AUC": round(float(roc_auc_score(of["answered"], of[way])), 4),
        }
        for source, of in [*asked.groupby("requests"), ("all", asked)]
        for way in ("without", "with")
    ]
    pd.DataFrame(table).to_csv(options.out, index=False, lineterminator="\n")


def requests_of(example: Example) -> Iterator[tuple[str, bool, str]]:
    """Yield the requests to a skill: which they are, whether it answers them, and their words."""
    asked = [each for each in example.asked if each.series in (LONG, SHORT, BROAD)]
    if example.unanswered:
        yield from ((OWN, True, each.query.query) for each in asked)
        yield from ((OWN, False, text) for text in example.unanswered)
    if record := about_any_topic().get(example.document.provenance.sha256):
        yield from ((ANY, True, text) for text in record["answered"])
        yield from ((ANY, False, text) for text in record["missing"])


if __name__ == "__main__":
    main()
