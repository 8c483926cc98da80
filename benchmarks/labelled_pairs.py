"""How right two rules are about pairs of texts that were read: `python benchmarks/labelled_pairs.py`.

It prints two tables from the committed labels, one reader's, who saw no cosines.

`overlaps.csv`: skills whose descriptions `skillpager library check` may report. `leads`: a query for one
leads to the other. `former` is the rule until then, `reported` the one that was made after samples 1 and 2.
Samples 1 (2,050 skills), 2 (3,247) and 3 (3,070) are of the pool, neighbours by path; 1 and 2 share 602
skills, 3 shares none. In samples 1 and 2 all pairs that the former rule reported were read, in sample 3 all
that the new one reports, and in each 50 of those from a cosine of 0.75 (sample 2: 0.78) that were not: in
sample 1 the most alike, else drawn at random.

`repeated.csv`: nodes of 16 tokens or more of two skills of one repository, picked for a query to each.
`adds_nothing`: the second text says nothing new to a reader of the first. Pairs of equal text are not in
it. `annotated`: at most 8 pairs a repository from a cosine of 0.80, of the training data and its queries.
`neighbours` and `random`: of the pool, with descriptions as queries, all pairs from 0.75 that `most_words`
or `in_order` takes. The rules ask that the first text has of the second every identifier, number and word
of code, and the same negations (`identifiers`); also three quarters of its terms (`most_words`), or all
(`all_words`); or all of its words, in order (`in_order`).
"""

import csv
from collections.abc import Sequence
from math import sqrt
from pathlib import Path

HERE = Path(__file__).parent
RULES = ("identifiers", "most_words", "all_words", "in_order")
COSINES = (0.8, 0.85, 0.9)
DEVIATIONS = 1.96  # of a 95 % interval

Row = dict[str, str]


def main() -> None:
    """Print both tables."""
    rows = read_rows("overlaps.csv")
    for sample in sorted({row["sample"] for row in rows}):
        mine = [row for row in rows if row["sample"] == sample]
        for rule in ("former", "reported"):
            found = [row for row in mine if row[rule] == "1"]
            print(f"overlaps, sample {sample}, {rule}: {share_of(found, 'leads')}")
        print(f"overlaps, sample {sample}, found of those that lead: {found_of(mine)}")
    rows = read_rows("repeated.csv")
    for least in COSINES:
        for rule in RULES:
            found = [row for row in rows if row[rule] == "1" and float(row["cosine"]) >= least]
            print(f"repeated, cosine {least:.2f}, {rule}: {share_of(found, 'adds_nothing')}")


def read_rows(name: str) -> list[Row]:
    """Return the rows of a table beside this script."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def share_of(rows: Sequence[Row], label: str) -> str:
    """Return how many rows have a label, with the 95 % interval of their share (Wilson 1927)."""
    right, count = sum(row[label] == "1" for row in rows), len(rows)
    if not count:
        return "none"
    share, spread = right / count, DEVIATIONS**2 / count
    middle = (share + spread / 2) / (1 + spread)
    half = DEVIATIONS * sqrt(share * (1 - share) / count + spread / 4 / count) / (1 + spread)
    return f"{right} of {count}, {share:.0%} ({middle - half:.0%} to {middle + half:.0%})"


def found_of(rows: Sequence[Row]) -> str:
    """Return how many of the labelled overlaps the former and the new rule find."""
    leads = [row for row in rows if row["leads"] == "1"]
    former, new = (sum(row[rule] == "1" for row in leads) for rule in ("former", "reported"))
    return f"{former} and {new} of {len(leads)}"


if __name__ == "__main__":
    main()
