"""Many skills on this machine: threads and processes, deaths, and what a run tells."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from bulk_parts import DEADLY, assert_all_stored, built, start_driver, telling_pager, write_skills
from cli_process import wait_until
from postgres_server import is_running
from skillpager.bulk import Outcome, index_skills, workers
from skillpager.bulk.driver import MAX_FAILURES_IN_A_ROW
from skillpager.errors import SkillError
from skillpager.indexing import index_key
from skillpager.parsing.skill import read_skill
from skillpager.stores.sqlite import SqliteStore
from skillpager.types import Skill

COUNT = workers.PROCESSES_PAY_FROM + 4


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return write_skills(tmp_path / "skills", COUNT)


def test_many_skills_are_indexed_by_processes_and_few_by_threads(tmp_path: Path, skills: Path) -> None:
    with closing(SqliteStore(tmp_path / "store")) as store:
        pager = telling_pager(tmp_path, tmp_path / "store", seconds=0.0)
        seen: list[tuple[int, int]] = []
        finished: list[tuple[str, str]] = []

        def note(outcome: Outcome, skill: Skill) -> None:
            finished.append((outcome.key, skill.name))

        outcomes = index_skills(
            pager, [skills], jobs=2, progress=lambda done, total: seen.append((done, total)), finished=note
        )
        assert_all_stored(outcomes, skills, store)
        assert seen == [(done, COUNT) for done in range(1, COUNT + 1)]
        assert sorted(finished) == sorted((outcome.key, outcome.name) for outcome in outcomes)
        processes = {process for process, _ in built(tmp_path)}
        assert len(processes) == 2
        assert os.getpid() not in processes
        assert not any(map(is_running, processes))

        # what is stored is not built again, and few skills need no process
        one = write_skills(tmp_path / "more", 1)
        (one / "skill-000" / "SKILL.md").write_text("wordnew begins another skill.\n")
        again = index_skills(pager, [skills, one])
        assert [outcome.cached for outcome in again] == [True] * COUNT + [False]
        assert [(outcome.nodes, outcome.tokens) for outcome in again[:-1]] == [
            (outcome.nodes, outcome.tokens) for outcome in outcomes
        ]
        assert built(tmp_path)[COUNT:] == [(os.getpid(), "wordnew")]
        index = pager.index(skills / "skill-000")
        assert (len(index.nodes), index.full_tokens) == (outcomes[0].nodes, outcomes[0].tokens)
        pager.close()


def test_the_same_skill_from_two_places_is_built_once(tmp_path: Path) -> None:
    folders = [write_skills(tmp_path / name, 3) for name in ("a", "b")]
    pager = telling_pager(tmp_path, tmp_path / "store")
    outcomes = index_skills(pager, folders, jobs=1)
    assert [outcome.stored for outcome in outcomes] == [True] * 6
    assert [outcome.key for outcome in outcomes[:3]] == [outcome.key for outcome in outcomes[3:]]
    assert len(built(tmp_path)) == 3
    pager.close()


def test_a_worker_that_is_killed_costs_no_skill(tmp_path: Path, skills: Path) -> None:
    pager = telling_pager(tmp_path, tmp_path / "store")
    killed: list[int] = []

    def kill_some(done: int, _: int) -> None:
        if done in (5, 15, 25):
            process = built(tmp_path)[-1][0]
            if is_running(process):
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    outcomes = index_skills(pager, [skills], jobs=2, progress=kill_some)
    assert len(killed) == 3
    with closing(SqliteStore(tmp_path / "store")) as store:
        assert_all_stored(outcomes, skills, store)
    # a death repeats what each worker had in hand
    assert COUNT <= len(built(tmp_path)) <= COUNT + 2 * len(killed)
    pager.close()


def test_a_skill_that_ends_every_worker_fails_alone(tmp_path: Path, skills: Path) -> None:
    (skills / "skill-007" / "SKILL.md").write_text(f"{DEADLY} text.\n")
    pager = telling_pager(tmp_path, tmp_path / "store", seconds=0.0)
    outcomes = index_skills(pager, [skills], jobs=2)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert [(outcome.name, type(outcome.error)) for outcome in failed] == [("skill-007", SkillError)]
    assert "its worker died, twice" in str(failed[0].error)
    assert sum(outcome.stored for outcome in outcomes) == COUNT - 1
    pager.close()


def test_workers_that_cannot_start_are_tried_a_few_times(
    tmp_path: Path, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource_tracker.ensure_running()  # a process of the standard library that is no worker
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))  # new processes of Python do not find its library
    pager = telling_pager(tmp_path, tmp_path / "store")
    outcomes = index_skills(pager, [skills], jobs=2)
    told = [str(outcome.error) for outcome in outcomes]
    tried = sum("its worker died, twice" in text and "--jobs 1" in text for text in told)
    assert MAX_FAILURES_IN_A_ROW <= tried <= MAX_FAILURES_IN_A_ROW + 1
    assert sum("was not tried" in text for text in told) == COUNT - tried
    pager.close()


@pytest.fixture
def ended() -> Iterator[list["subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_a_driver_that_is_killed_takes_its_workers_along_and_the_next_goes_on(
    tmp_path: Path, skills: Path, ended: list["subprocess.Popen[str]"]
) -> None:
    ended.append(driver := start_driver(tmp_path))
    wait_until(lambda: len(built(tmp_path)) >= 10)
    driver.kill()
    driver.wait()
    processes = {process for process, _ in built(tmp_path)}
    wait_until(lambda: not any(map(is_running, processes)))
    so_far = len(built(tmp_path))
    assert so_far < COUNT
    ended.append(driver := start_driver(tmp_path))
    out, _ = driver.communicate(timeout=240)
    stored, cached = map(int, out.split())
    assert stored == COUNT
    # what was built and not yet stored, one skill a worker, is built again
    assert so_far - 2 <= cached <= so_far
    with closing(SqliteStore(tmp_path / "store")) as store:
        keys = {entry.key for entry in store.entries()}
        recipe = telling_pager(tmp_path, store).recipe
        assert keys == {index_key(read_skill(path), recipe) for path in skills.iterdir()}
