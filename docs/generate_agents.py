"""Write the tables of docs/measured.md from the rows of the blind study: `python docs/generate_agents.py`.

`benchmarks/agent/study.csv` has a row for each task and arm: who tried it, the verdict of the check, and the
tokens of the skill that were read. The tables are over all tasks, and over those whose page was not the whole
skill. Intervals are 95 % bootstrap intervals over tasks; p is of McNemar's exact test.
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
    """Return the tables of the page by the names of their blocks."""
    rows = read_study()
    solved = rows.pivot(index="task", columns="arm", values="solved") * 100
    tokens = rows.pivot(index="task", columns="arm", values="tokens")
    arms: list[list[object]] = [
        [arm, len(solved), _cell(bootstrap(solved[arm]), 1), _cell(bootstrap(tokens[arm]), 0)] for arm in ARMS
    ]
    lines = []
    for arm in ARMS:
        if arm != "whole":
            gained = solved[arm] - solved["whole"]
            better, worse = int((gained > 0).sum()), int((gained < 0).sum())
            p = float(mcnemar([[0, better], [worse, 0]], exact=True).pvalue)
            saved = bootstrap(tokens["whole"] - tokens[arm], tokens["whole"]).scaled(100)
            line = [arm, len(solved), _cell(bootstrap(gained), 1), "< 0.001" if p < 0.001 else f"{p:.3f}"]
            lines.append([*line, better, worse, _cell(saved, 1)])
    head = ["arm", "tasks", "solved (points)", "p", "better on", "worse on", "skill tokens saved (%)"]
    return {
        "study arms": _table(["arm", "tasks", "solved (%)", "skill tokens"], arms),
        "study differences": _table(head, lines),
    }


def _cell(interval: Interval, digits: int) -> str:
    """Return a value with its interval, such as `43.8 [29.2, 58.3]`."""
    shown = [interval.value, interval.low, interval.high]
    value, low, high = (f"{number:,.{digits}f}".replace("-", "−") for number in shown)
    return f"{value} [{low}, {high}]"


def _table(head: list[str], lines: list[list[object]]) -> str:
    """Return a Markdown table whose numbers stand at the right."""
    first, _, *rest = table(head, lines).splitlines()
    return "\n".join([first, "| --- " + "| ---: " * (len(head) - 1) + "|", *rest]) + "\n"


if __name__ == "__main__":
    write_blocks(PAGE, make_blocks())
