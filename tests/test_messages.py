"""The golden file of errors: compared, written and kept in order."""

import re
from collections import defaultdict

import pytest

import messages

TEST = "tests/test_some.py::test_some[a b]"


def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to be a test whose first error is in the golden file."""
    monkeypatch.setenv("PYTEST_CURRENT_TEST", f"{TEST} (call)")
    monkeypatch.setattr(messages, "expected", {TEST: ["ValueError: the old text"]})
    monkeypatch.setattr(messages, "raised", defaultdict(list))


def test_the_same_wording_passes_and_another_fails_with_a_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    with messages.raises(ValueError) as caught:
        raise ValueError("the old text")
    assert str(caught.value) == "the old text"
    messages.raised[TEST].clear()
    with pytest.raises(pytest.fail.Exception) as failure, messages.raises(ValueError):
        raise ValueError("the new text")
    said = str(failure.value)
    assert "- ValueError: the old text" in said
    assert "+ ValueError: the new text" in said
    assert "make golden" in said


def test_every_error_of_the_golden_file_has_a_test() -> None:
    errors = messages.read_errors()
    assert list(errors) == sorted(errors)
    for test in errors:
        path, name = re.fullmatch(r"([^:]+)::(\w+)(?:\[.*\])?", test, re.DOTALL).groups()  # type: ignore[union-attr]
        assert f"def {name}(" in (messages.ROOT / path).read_text(encoding="utf-8"), test
