"""The offline stage of one skill: fragments, embeddings, types and edges become a SkillIndex.

Reference: paper §3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from skillpager.chunks import chunk_splitter, split_chunks
from skillpager.graph.edges import infer_edges
from skillpager.node_text import embedded_text
from skillpager.parsing.fragments import SPLITTER_VERSION, split_skill
from skillpager.types import (
    Classification,
    Classifier,
    Encoder,
    FloatArray,
    Fragment,
    Heading,
    Node,
    Recipe,
    Skill,
    SkillIndex,
    Tile,
    TokenCounter,
)

# version of what a store holds; raise it when the meaning of a stored field changes
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Builder:
    """Builds indexes with one set of parts.

    Attributes:
        encoder: Embeds the nodes.
        classifier: Types the nodes.
        token_counter: Counts their tokens.
        embedded_text: What of a node is embedded: `context`, `heading` or `bare`.
        chunk_tokens: Most tokens of a window where the nodes are windows of the source; None for nodes
            as the paper's method has them.
    """

    encoder: Encoder
    classifier: Classifier
    token_counter: TokenCounter
    embedded_text: str
    chunk_tokens: int | None = None

    @cached_property
    def recipe(self) -> Recipe:
        """All that an index depends on besides the files of the skill."""
        return Recipe(
            splitter=SPLITTER_VERSION if self.chunk_tokens is None else chunk_splitter(self.chunk_tokens),
            classifier=self.classifier.id,
            encoder=self.encoder.id,
            embedded_text=self.embedded_text,
            token_counter=self.token_counter.id,
            format=FORMAT_VERSION,
        )

    def build(self, skill: Skill, key: str) -> SkillIndex:
        """Return the index of `skill` under the cache key `key`.

        Raises:
            EncoderError: The encoder fails.
            ClassifierError: The classifier fails.
            ValueError: A part returns the wrong number of rows or verdicts.
        """
        tiles = split_skill(skill)
        headings = tuple(tile for tile in tiles if isinstance(tile, Heading))
        fragments = self._fragments(skill, tiles, headings)
        embeddings = embed(self.encoder, fragments, self.embedded_text)
        nodes = tuple(map(self._node, fragments, self._classify(fragments, embeddings)))
        return SkillIndex(
            skill=skill,
            nodes=nodes,
            headings=headings,
            edges=infer_edges(nodes, embeddings),
            embeddings=embeddings,
            recipe=self.recipe,
            key=key,
            full_tokens=sum(self.token_counter.count(file.text[file.body_start :]) for file in skill.files),
        )

    def _fragments(
        self, skill: Skill, tiles: Sequence[Tile], headings: Sequence[Heading]
    ) -> Sequence[Fragment]:
        if self.chunk_tokens is None:
            return [tile for tile in tiles if isinstance(tile, Fragment)]
        return split_chunks(skill, headings, self.token_counter, chunk_tokens=self.chunk_tokens)

    def _classify(self, fragments: Sequence[Fragment], embeddings: FloatArray) -> list[Classification]:
        verdicts = self.classifier.classify(fragments, self._rows(fragments, embeddings))
        if len(verdicts) != len(fragments):
            raise ValueError(f"{self.classifier.id} gave {len(verdicts)} verdicts on {len(fragments)} nodes")
        return verdicts

    def _rows(self, fragments: Sequence[Fragment], embeddings: FloatArray) -> FloatArray | None:
        """Return the rows that the classifier reads: the index's own when they are the same."""
        wanted = self.classifier.embedding
        if wanted is None:
            return None
        if wanted == f"{self.encoder.id}/{self.embedded_text}":
            return embeddings
        if not wanted.startswith(f"{self._builtin.id}/"):
            raise ValueError(f"{self.classifier.id} reads the rows of {wanted}, which nobody makes")
        return embed(self._builtin, fragments, wanted.rpartition("/")[2])

    @cached_property
    def _builtin(self) -> Encoder:
        from skillpager.encoders.builtin import BuiltinEncoder

        return BuiltinEncoder()

    def _node(self, fragment: Fragment, verdict: Classification) -> Node:
        values = {item.name: getattr(fragment, item.name) for item in fields(Fragment)}
        return Node(
            **values,
            id=f"{'n' if self.chunk_tokens is None else 'c'}{fragment.ordinal}",
            type=verdict.type,
            type_confidence=verdict.confidence,
            tokens=self.token_counter.count(fragment.text),
        )


def embed(encoder: Encoder, fragments: Sequence[Fragment], form: str) -> FloatArray:
    """Return `(len(fragments), encoder.dim)` float32, C-contiguous unit rows in the order of fragments.

    Raises:
        ValueError: The encoder returns rows of another number or length.
    """
    rows = encoder.encode_documents([embedded_text(fragment, form) for fragment in fragments])
    if rows.shape != (len(fragments), encoder.dim):
        raise ValueError(f"{encoder.id} returned {rows.shape}, expected {(len(fragments), encoder.dim)}")
    return np.ascontiguousarray(rows, dtype=np.float32)
