"""The number of processors that a process may use."""

import os

import pytest

from skillpager.encoders.builtin import usable_processors


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind a process")
def test_processors_that_are_forbidden_do_not_count() -> None:
    allowed = os.sched_getaffinity(0)
    assert usable_processors() == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert usable_processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_without_such_limits_all_processors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert usable_processors() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_processors() == 1
