"""Write the tables of docs/agents.md from the rows of the blind study: `python docs/generate_agents.py`.

`benchmarks/agent/study.csv` has a row for each task and arm: who tried it, what the check says, and the
tokens of the skill that were read. The tables are those of `skillpager bench agent`, over all tasks and over
those whose page was not the whole skill.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

from marked_blocks import write_blocks

from skillpager.bench.agent.arms import Arm
from skillpager.bench.agent.records import AgentRow
from skillpager.bench.agent.table import arms_table, differences_table
from skillpager.bench.report.tables.table import Table, markdown_grid

ROOT = Path(__file__).parent.parent
STUDY = ROOT / "benchmarks" / "agent" / "study.csv"
PAGE = ROOT / "docs" / "agents.md"
# columns of the tables of runs that such a study has numbers for
ARM_COLUMNS = ("arm", "tasks", "solved (%)", "skill tokens")
DIFFERENCE_COLUMNS = (
    "arm",
    "tasks",
    "solved (points)",
    "p",
    "better on",
    "worse on",
    "skill tokens saved (%)",
)


def read_study() -> list[AgentRow]:
    """Return the rows of the study; a task stands for its skill, since no skill has two."""
    with STUDY.open(encoding="utf-8", newline="") as file:
        return [
            AgentRow(
                task=row["task"],
                arm=Arm(row["arm"]),
                repeat=1,
                digest="",
                check_digest="",
                skill=row["task"],
                solved=row["solved"] == "1",
                reason="",
                skill_tokens=int(row["context_tokens"]) + int(row["fault_tokens"]),
                full_tokens=int(row["full_tokens"]),
                tokens_in=int(row["context_tokens"]) + int(row["fault_tokens"]),
                faults=int(row["faults"]),
                model=row["solver"],
            )
            for row in csv.DictReader(file)
        ]


def with_cut_pages(rows: Sequence[AgentRow]) -> list[AgentRow]:
    """Return the rows of the tasks whose page was not the whole skill."""
    whole = {row.task: row.skill_tokens for row in rows if row.arm is Arm.WHOLE}
    cut = {row.task for row in rows if row.arm is Arm.PAGE and row.skill_tokens < whole[row.task]}
    return [row for row in rows if row.task in cut]


def columns_of(table: Table | None, columns: Sequence[str]) -> str:
    """Return some columns of a table in Markdown."""
    assert table is not None
    places = [table.headings.index(column) for column in columns]
    lines = [[line[place] for place in places] for line in table.texts]
    return f"{markdown_grid(columns, lines, [table.are_numbers[place] for place in places])}\n"


def make_blocks() -> dict[str, str]:
    """Return the tables of the page by the names of their blocks."""
    every = read_study()
    return {
        f"{name} {kind}": columns_of(table, columns)
        for name, rows in (("study", every), ("study-cut", with_cut_pages(every)))
        for kind, table, columns in (
            ("arms", arms_table(rows), ARM_COLUMNS),
            ("differences", differences_table(rows), DIFFERENCE_COLUMNS),
        )
    }


if __name__ == "__main__":
    write_blocks(PAGE, make_blocks())
