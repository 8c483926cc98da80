"""A text on which a package written in Rust panics, and whether the installed version still does."""

import pytest
import sentencex

PANICS = "A\u00a0.NET application"


def _panics() -> bool:
    try:
        sentencex.get_sentence_boundaries("en", PANICS)
    except BaseException as error:
        if isinstance(error, Exception):
            raise
        return True
    return False


needs_panic = pytest.mark.skipif(not _panics(), reason="this version of sentencex does not panic")
