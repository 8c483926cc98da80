"""The table of the paper's claims."""

from collections.abc import Sequence

from skillpager.bench.judge.evidence import EVIDENCE
from skillpager.bench.report.claims import MARGIN, CheckedClaim
from skillpager.bench.report.tables.table import Column, Row, Table


def claims_table(checked: Sequence[CheckedClaim], *, judge: str) -> Table | None:
    """Return the paper's claims with what was measured and whether they hold; None without any."""
    if not checked:
        return None
    rows = tuple(
        Row(
            (
                each.claim.text,
                f"{each.claim.first} − {each.claim.second}",
                each.claim.paper,
                each.difference,
                each.saved,
                str(each.verdict),
            )
        )
        for each in checked
    )
    columns = (
        Column("Claim of the paper"),
        Column("Difference of"),
        Column("Paper (points)"),
        Column("Here (points) [95 % CI]"),
        Column("Fragment red., here (points)"),
        Column("Verdict"),
    )
    note = (
        "A claim holds, or does not, when all of the interval says so; else it is open. Intervals draw "
        "skills and are not corrected for the number of claims. “As often”, “nearly” and “adds little” mean "
        f"a difference of less than {MARGIN:.0f} points. The fifth column is how much more the first method "
        "saves: sufficiency that is bought with tokens does not make a better method."
    )
    by_construction = " Under the evidence judge the full document is sufficient by construction."
    return Table(
        "claims",
        "The paper's claims on this run",
        columns,
        rows,
        note=note + by_construction * (judge == EVIDENCE),
    )
