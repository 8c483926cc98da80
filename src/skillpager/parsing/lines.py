"""Line ends and line starts of a text."""

import re
from bisect import bisect_right

# CommonMark line endings; `str.splitlines` would also split at form feeds and U+2028
LINE_END = re.compile(r"\r\n|\r|\n")


class Lines:
    """The line starts of a text; converts between lines and offsets."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in LINE_END.finditer(text))]
        self._length = len(text)

    def start(self, line: int) -> int:
        """Return the offset at which 0-based `line` begins; the text's length if there is no such line."""
        return self.starts[line] if line < len(self.starts) else self._length

    def number(self, offset: int) -> int:
        """Return the 1-based number of the line that contains `offset`."""
        return bisect_right(self.starts, offset)
