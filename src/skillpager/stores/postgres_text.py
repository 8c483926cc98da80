"""Text as PostgreSQL can hold it: the character 0, which its texts cannot, is written as two others."""

from typing import Any

# the sign of substitution stands before both, the character 0 and itself
_ESCAPES = (("\x1a", "\x1aS"), ("\0", "\x1a0"))


def escaped(value: Any) -> Any:
    """Return a value as it is stored; of a text the character 0 is escaped."""
    if isinstance(value, str):
        for sign, written in _ESCAPES:
            value = value.replace(sign, written)
    return value


def unescaped(value: Any) -> Any:
    """Return a value that `escaped` has made, as it was."""
    if isinstance(value, str) and "\x1a" in value:
        for sign, written in reversed(_ESCAPES):
            value = value.replace(written, sign)
    return value
