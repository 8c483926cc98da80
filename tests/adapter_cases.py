"""What the tests of all adapters share: golden pages, metadata, an encoder that waits for the event loop."""

import threading
from pathlib import Path

import golden
from conftest import SAMPLES
from skillpager import SkillPager
from skillpager.encoders.hashing import HashingEncoder
from skillpager.settings import Settings
from skillpager.types import FloatArray, Page

NAME = "postgres-backup"
SKILL = SAMPLES / NAME
QUERY = golden.QUERIES[NAME]
TEXT = (SKILL / "SKILL.md").read_bytes().decode("utf-8")
NAMES = sorted(golden.QUERIES)

# the keyword arguments with which the golden pages are made
MAX_NODES = 12

# seconds after which an event loop counts as blocked
PATIENCE = 5


def expected_metadata(context: Page, name: str) -> list[dict[str, object]]:
    """Return what the metadata of a page's nodes must hold, told from the library's own values."""
    assert context.selection is not None
    entries = {entry.node.id: entry for entry in (*context.selection.picks, *context.selection.skipped)}
    return [
        {
            "skill": name,
            "id": node.id,
            "type": str(node.type),
            "file": node.span.file,
            "start_line": node.span.start_line,
            "end_line": node.span.end_line,
            "heading_path": " > ".join(node.heading_path),
            "tokens": node.tokens,
            "relevance": entries[node.id].relevance,
            "redundancy": entries[node.id].redundancy,
            "marginal": entries[node.id].marginal,
        }
        for node in context.nodes
    ]


class WaitingEncoder(HashingEncoder):
    """Embeds a query only after `free` was set, which a test does from the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def encode_query(self, text: str) -> FloatArray:
        """Wait, then embed."""
        assert self.free.wait(PATIENCE), "the event loop was blocked"
        return super().encode_query(text)


def waiting_pager(folder: Path) -> tuple[SkillPager, WaitingEncoder]:
    """Return a pager that pages only while an event loop runs, and its encoder."""
    encoder = WaitingEncoder()
    return SkillPager(encoder=encoder, settings=Settings(cache_dir=folder)), encoder
