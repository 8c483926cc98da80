"""Tables of agents: what each arm solves and costs, and how it differs from the whole skill.

Attempts whose check failed are left out and counted. Intervals draw skills, because tasks about one skill are
alike, and so are attempts at one task.
"""

from collections.abc import Sequence
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.bench.agent.arms import Arm
from skillpager.bench.agent.records import AgentRow
from skillpager.bench.data.spending import Prices, Usage
from skillpager.bench.report.statistics import Interval, bootstrap, mcnemar
from skillpager.bench.report.tables.table import Cell, Cells, PValue, Table, to_csv, to_markdown

PERCENT = 100
REPORT = "report.md"


def arms_table(rows: Sequence[AgentRow], prices: Prices | None = None) -> Table:
    """Return a table with a row for each arm that has attempts."""
    lines: list[Cells] = []
    for arm in _arms(rows):
        every = [row for row in rows if row.arm is arm]
        own = [row for row in every if row.solved is not None]
        lines.append(_line(arm, own, len(every) - len(own), prices))
    return Table(
        "arms",
        "What agents solve and what it costs, by what they are given of the skill",
        lines,
        note="Means over attempts with 95 % intervals, over skills. Skill tokens: those of the skill that an "
        "agent read. Not checked: attempts whose check itself failed; they are left out.",
        digits={
            "solved (%)": 1,
            "skill tokens": 0,
            "tokens in": 0,
            "tokens out": 0,
            "turns": 1,
            "seconds": 1,
            "cost": 4,
        },
    )


def _line(arm: Arm, rows: Sequence[AgentRow], failed: int, prices: Prices | None) -> Cells:
    skills = [row.skill for row in rows]

    def mean(values: Sequence[float | None]) -> Cell:
        known = [(value, skill) for value, skill in zip(values, skills, strict=True) if value is not None]
        return (
            bootstrap([value for value, _ in known], clusters=[skill for _, skill in known])
            if known
            else None
        )

    def cost(row: AgentRow) -> float | None:
        if prices is None or row.tokens_out is None:
            return None
        return prices.cost(Usage(row.tokens_in, row.tokens_out))

    solved = mean([PERCENT * float(bool(row.solved)) for row in rows])
    return {
        "arm": arm.value,
        "tasks": len({row.task for row in rows}),
        "attempts": len(rows),
        "solved (%)": solved,
        "skill tokens": mean([row.skill_tokens for row in rows]),
        "tokens in": mean([row.tokens_in for row in rows]),
        "tokens out": mean([row.tokens_out for row in rows]),
        "turns": mean([row.turns for row in rows]),
        "seconds": mean([row.seconds for row in rows]),
        "cost": mean([cost(row) for row in rows]),
        "not checked": failed,
    }


def differences_table(rows: Sequence[AgentRow], baseline: Arm = Arm.WHOLE) -> Table | None:
    """Return how each arm differs from a baseline on the tasks that both have; None without another arm."""
    checked = [row for row in rows if row.solved is not None]
    lines: list[Cells] = []
    for arm in _arms(checked):
        shared = sorted({row.task for row in checked if row.arm is arm} & _tasks(checked, baseline))
        if arm is not baseline and shared:
            lines.append(_difference(checked, arm, baseline, shared))
    if not lines:
        return None
    return Table(
        "differences",
        f"Each arm against {baseline.value}, on the tasks that both have",
        lines,
        note="Solved: difference of the shares of attempts, task by task. Tokens saved: of all tokens of the "
        "baseline. 95 % intervals over skills; p: exact sign test over tasks (McNemar's), two-sided.",
        digits={"solved (points)": 1, "p": 3, "skill tokens saved (%)": 1, "tokens in saved (%)": 1},
    )


def _difference(rows: Sequence[AgentRow], arm: Arm, baseline: Arm, tasks: Sequence[str]) -> Cells:
    skills = [next(row.skill for row in rows if row.task == task) for task in tasks]

    def means(of: Arm, number: str) -> list[float]:
        return [_mean(rows, of, task, number) for task in tasks]

    def saved(number: str) -> Interval | None:
        own, other = means(arm, number), means(baseline, number)
        if not any(other):
            return None
        less = [theirs - ours for ours, theirs in zip(own, other, strict=True)]
        return bootstrap(less, other, clusters=skills).scaled(PERCENT)

    ours, theirs = means(arm, "solved"), means(baseline, "solved")
    gained = [a - b for a, b in zip(ours, theirs, strict=True)]
    better, worse = sum(gain > 0 for gain in gained), sum(gain < 0 for gain in gained)
    return {
        "arm": arm.value,
        "tasks": len(tasks),
        "solved (points)": bootstrap(gained, clusters=skills).scaled(PERCENT),
        "p": PValue(mcnemar(better, worse)),
        "better on": better,
        "worse on": worse,
        "skill tokens saved (%)": saved("skill_tokens"),
        "tokens in saved (%)": saved("tokens_in"),
    }


def _arms(rows: Sequence[AgentRow]) -> list[Arm]:
    return [arm for arm in Arm if any(row.arm is arm for row in rows)]


def _tasks(rows: Sequence[AgentRow], arm: Arm) -> set[str]:
    return {row.task for row in rows if row.arm is arm}


def _mean(rows: Sequence[AgentRow], arm: Arm, task: str, number: str) -> float:
    """Return the mean of a number over the attempts at a task in an arm."""
    values = [float(getattr(row, number)) for row in rows if row.arm is arm and row.task == task]
    return sum(values) / len(values)


def write_tables(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write tables as CSV files, and all of them as Markdown; return the files."""
    paths = [folder / f"{table.name}.csv" for table in tables]
    for path, table in zip(paths, tables, strict=True):
        write_file(path, to_csv(table))
    write_file(folder / REPORT, "\n".join(map(to_markdown, tables)))
    return [*paths, folder / REPORT]
