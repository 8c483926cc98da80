"""The tables of docs/measured.md are those that its rows give."""

from pathlib import Path

from generate_agents import PAGE, make_blocks, read_study, with_cut_pages
from marked_blocks import read_blocks

TASKS = Path(__file__).parents[2] / "benchmarks" / "agent" / "tasks"


def test_the_tables_are_those_of_the_rows() -> None:
    written = read_blocks(PAGE.read_text(encoding="utf-8"))
    made = make_blocks()
    assert {name: written.get(name) for name in made} == made


def test_every_task_of_a_public_skill_was_solved_once_in_each_arm_by_another_agent() -> None:
    rows = read_study()
    tasks = {path.name for path in TASKS.iterdir() if (path / "answers").is_dir()}
    assert set(rows.task) == tasks
    each = rows.groupby("task")
    assert (each.size() == 5).all()
    assert (each[["arm", "solver"]].nunique() == 5).all(axis=None)
    assert 0 < len(with_cut_pages(rows)) < len(rows)
