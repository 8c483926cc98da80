"""Write the table of docs/measured.md from the rows of the blind study: `python docs/generate_agents.py`.

`benchmarks/agent/study.csv` has a row for each task and arm: who tried it, the verdict of the check, and the
tokens of the skill that were read. Intervals are 95 % bootstrap intervals over tasks; p is of McNemar's exact
test.
"""

from pathlib import Path

import pandas as pd
from marked_blocks import table, write_blocks
from statsmodels.stats.contingency_tables import mcnemar

from skillpager.bench.report.statistics import Interval, bootstrap

ROOT = Path(__file__).parent.parent
STUDY = ROOT / "benchmarks" / "agent" / "study.csv"
PAGE = ROOT / "docs" / "measured.md"
ARMS = ("none", "whole", "page", "page+faults", "mmr")


def read_study() -> pd.DataFrame:
    """Return the rows of the study, with `tokens`: those of the skill that an agent read."""
    rows = pd.read_csv(STUDY, keep_default_na=False)
    return rows.assign(tokens=rows.context_tokens + rows.fault_tokens)


def make_blocks() -> dict[str, str]:
    """Return the table of the page by the name of its block."""
    rows = read_study()
    solved = rows.pivot(index="task", columns="arm", values="solved") * 100
    tokens = rows.pivot(index="task", columns="arm", values="tokens")
    lines = []
    for arm in ARMS:
        gained = solved[arm] - solved["whole"]
        better, worse = int((gained > 0).sum()), int((gained < 0).sum())
        p = float(mcnemar([[0, better], [worse, 0]], exact=True).pvalue)
        beside = [_cell(bootstrap(gained), 1), "< 0.001" if p < 0.001 else f"{p:.3f}"]
        line = [arm, _cell(bootstrap(solved[arm]), 1), _cell(bootstrap(tokens[arm]), 0)]
        lines.append([*line, *(["–", "–"] if arm == "whole" else beside)])
    head = ["arm", "solved (%)", "skill tokens", "beside the whole skill (points)", "p"]
    return {"study": _table(head, lines)}


def _cell(interval: Interval, digits: int) -> str:
    """Return a value with its interval, such as `43.8 [29.2, 58.3]`."""
    shown = [interval.value, interval.low, interval.high]
    value, low, high = (f"{number:,.{digits}f}".replace("-", "−") for number in shown)
    return f"{value} [{low}, {high}]"


def _table(head: list[str], lines: list[list[str]]) -> str:
    """Return a Markdown table whose numbers stand at the right."""
    first, _, *rest = table(head, lines).splitlines()
    return "\n".join([first, "|---" + "|---:" * (len(head) - 1) + "|", *rest]) + "\n"


if __name__ == "__main__":
    write_blocks(PAGE, make_blocks())
