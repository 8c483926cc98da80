"""MMR over fixed-length windows of the document instead of nodes: the paper's granularity baseline.

Reference: paper §4.3, Naive chunk + MMR.
"""

from dataclasses import dataclass

from skillpager.strategies.mmr import Mmr

DEFAULT_CHUNK_TOKENS = 256  # paper §4.3
# shorter windows are words rather than text, and every window costs an embedding
MIN_CHUNK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class ChunkMmr(Mmr):
    """MMR over windows of at most `chunk_tokens` tokens; a `ChunkStrategy`.

    The pager gives it an index whose nodes are the windows, so that the dynamic `max_nodes` follows the
    number of windows.

    Attributes:
        chunk_tokens: Most tokens of a window.
        name: `chunk_mmr`.
    """

    chunk_tokens: int = DEFAULT_CHUNK_TOKENS
    name: str = "chunk_mmr"

    def __post_init__(self) -> None:
        """Check the weight and the size.

        Raises:
            ValueError: `mmr_lambda` is outside 0 to 1, or `chunk_tokens` too small.
        """
        Mmr.__post_init__(self)  # a slotted dataclass is made anew, which `super()` does not see
        if self.chunk_tokens < MIN_CHUNK_TOKENS:
            raise ValueError(f"chunk_tokens must be {MIN_CHUNK_TOKENS} or more, not {self.chunk_tokens}")
