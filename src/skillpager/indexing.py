"""The offline stage (paper §3.1): return a skill's index from memory or the store, or build and store it."""

import hashlib
import json
import logging
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from skillpager.caches import LRUCache
from skillpager.errors import SkillPagerError, StoreError, StrategyError
from skillpager.files import ENTRY_NAMES, FileStamps, take_stamps, walk
from skillpager.parsing.skill import belongs_to_skill
from skillpager.sections import embedded_text, trail_of
from skillpager.settings import NOTES_FILE
from skillpager.tokens import count_tokens
from skillpager.types import (
    Classifier,
    Encoder,
    FloatArray,
    Fragment,
    Heading,
    Node,
    Recipe,
    Skill,
    SkillIndex,
    Store,
    Strategy,
    Tile,
    TokenCounter,
)

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

logger = logging.getLogger(__name__)

# part of every cache key: raise it when the same source may give other fragments
SPLITTER_VERSION = "3"
# version of what a store holds; raise it when the meaning of a stored field changes
FORMAT_VERSION = 2

# nodes of all indexes together, about 3 kB each
MAX_KEPT_NODES = 50_000
MAX_KEPT_PATHS = 10_000
MAX_KEPT_QUERIES = 1_024
# a skill with more characters is first indexed for the query at hand: as a whole it takes five seconds or so
LARGE_CHARS = 150_000
DRAFT_NODES = 130  # that such an index embeds
# what is told of it: with a query, and without
DRAFTED = "its page is made from the nodes that share words with the query; all else is indexed after it"
WHOLE = "all of it is indexed first"
DRAFT_SECONDS = 2.0  # in which the page of a draft is made, before all is indexed
STORE_PAUSE_SECONDS = 60.0  # in which a store that failed is left alone

# cache key and folder: skills of the same text may stand in two folders, or in none
IndexKey = tuple[str, Path | None]


class IndexCache:
    """The indexes of a pager: in memory, else from the store, else built. Safe for many threads.

    A store that fails costs a warning and time: indexes are then built and stay in memory alone, and the
    store is tried again after a pause.
    """

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir  # where the user's notes on nodes are
        self._noted = LRUCache[tuple[object, ...], SkillIndex](MAX_KEPT_NODES, lambda index: len(index.nodes))
        self._indexes = LRUCache[IndexKey, SkillIndex](MAX_KEPT_NODES, lambda index: len(index.nodes))
        self._paths = LRUCache[tuple[str, str], tuple[FileStamps, IndexKey]](MAX_KEPT_PATHS)
        self._paused_until = 0.0  # of the monotonic clock; 0 while the store works
        # first queries and drafts of what the background is to build
        self._begun: dict[IndexKey, tuple[str, SkillIndex]] = {}

    def at(self, path: str, scope: str) -> SkillIndex | None:
        """Return the index of a path and scope while none of its files has changed."""
        known = self._paths.get((path, scope))
        return None if known is None or known[0].changed() else self._indexes.get(known[1])

    def remember(self, path: str, scope: str, stamps: FileStamps | None, index: SkillIndex) -> None:
        """Remember the index of a path and scope; not without stamps, by which a change is noticed."""
        if stamps is not None:
            self._paths.put((path, scope), (stamps, (index.key, index.skill.root)))

    def get_or_build(self, skill: Skill, builder: "Builder", store: Store) -> SkillIndex:
        """Return the index; of several threads that ask for it one builds it. Raises as `build` does."""
        key = index_key(skill, builder.recipe)
        return self._indexes.get_or_make(
            (key, skill.root), lambda: self._load_or_build(skill, key, builder, store)
        )

    def get_or_draft(self, skill: Skill, builder: "Builder", store: Store, query: str) -> SkillIndex:
        """Return the index, or a draft for the query if there is one and the skill is large and new.

        A draft embeds what shares words with the query (`Builder.build`); the index is built in the
        background, and a program that ends before waits for it. Raises as `build` does.
        """
        key = index_key(skill, builder.recipe)
        kept = key, skill.root
        if index := self._indexes.get(kept) or self._load(skill, key, store):
            return self._indexes.put(kept, index)
        known = {} if self._paused_until else rows_of_files(store, skill, builder.recipe)
        if sum(len(file.text) for file in skill.files if file.digest not in known) < LARGE_CHARS:
            return self.get_or_build(skill, builder, store)
        asked, draft = self._begun.get(kept, ("", None))
        if draft is None:
            logger.warning('"%s" is large and new: %s', skill.name, DRAFTED if query else WHOLE)
        if not query:
            return self.get_or_build(skill, builder, store)
        if draft is None or asked != query:
            draft = builder.build(skill, key, query=query, draft=draft)
            if self._begun.setdefault(kept, (query, draft))[1] is draft:
                self._background.submit(self._build_later, kept, skill, builder, store)
        return draft

    def _build_later(self, kept: IndexKey, skill: Skill, builder: "Builder", store: Store) -> None:
        time.sleep(DRAFT_SECONDS)
        try:
            self.get_or_build(skill, builder, store)
        except SkillPagerError as error:
            logger.warning('"%s" is not indexed: %s', skill.name, error)
        finally:
            self._begun.pop(kept, None)

    def with_notes(self, index: SkillIndex, encoder: Encoder) -> SkillIndex:
        """Return an index with the notes on its nodes, or the index itself if there are none."""
        places, states = notes_files(index.skill, self._cache_dir), {}
        for place in places:
            with suppress(OSError):
                status = os.lstat(place)  # links are not followed
                if stat.S_ISREG(status.st_mode):
                    states[place] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        if not states or index.notes is not None:
            return index
        from skillpager.enrichment.notes import notes_on, read_notes

        cached = places[0].with_suffix(".npz")
        return self._noted.get_or_make(
            (index.key, id(index.embeddings), *states.items()),  # a draft has the same key
            lambda: replace(index, notes=notes_on(index.nodes, read_notes([*states]), encoder, cached)),
        )

    @cached_property
    def _background(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1, "skillpager-index")  # a program that ends waits for it

    def _load_or_build(self, skill: Skill, key: str, builder: "Builder", store: Store) -> SkillIndex:
        if stored := self._load(skill, key, store):
            return stored
        known = {} if self._paused_until else rows_of_files(store, skill, builder.recipe)
        index = builder.build(skill, key, known=known)
        if not self._paused_until:
            try:
                store.save(index)
            except StoreError as error:
                logger.warning('the index of "%s" is not stored: %s', skill.name, error)
        return index

    def _load(self, skill: Skill, key: str, store: Store) -> SkillIndex | None:
        if time.monotonic() < self._paused_until:
            return None
        try:
            stored = store.load(key, skill)
        except StoreError as error:
            if not self._paused_until:
                logger.warning("indexes are not stored, they stay in memory for now: %s", error)
            self._paused_until = time.monotonic() + STORE_PAUSE_SECONDS
            return None
        self._paused_until = 0.0
        return stored


def stamp_skill(skill: Skill, path: Path) -> FileStamps | None:
    """Return the stamps of all Markdown and all folders of a skill that was just read at `path`.

    The path is one of them: it may be a link, and lead to another skill later. Files that could not be read
    are stamped, too, so that a repaired one is noticed.
    """
    root = skill.root
    if root is None:
        return None
    found = [root / file.path for file in skill.files]
    if skill.files[0].path in ENTRY_NAMES:
        entries = (each for each in walk(root) if each.kind == "folder" or belongs_to_skill(each.path))
        found += [root / each.path for each in entries if each.kind != "fault"]
    return take_stamps([path, root, *found])


def notes_files(skill: Skill, cache_dir: Path) -> list[Path]:
    """Return where notes on a skill's nodes are: the user's, and if it has a folder, those it comes with."""
    place = hashlib.sha256(json.dumps([skill.name, str(skill.root)]).encode()).hexdigest()
    own = cache_dir / "notes" / f"{place}.json"
    return [own, skill.root / NOTES_FILE] if skill.root else [own]


def index_key(skill: Skill, recipe: Recipe) -> str:
    """Return the cache key: SHA-256 over name, paths and digests of the files, and recipe, hexadecimal."""
    files = [[file.path, file.digest] for file in skill.files]
    content = json.dumps([skill.name, files, asdict(recipe)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def rows_id(recipe: Recipe) -> str:
    """Return the id of the embeddings of an index: encoder id, `/` and text form."""
    return f"{recipe.encoder}/{recipe.embedded_text}"


@dataclass(frozen=True)
class Builder:
    """Builds indexes with the parts of a pager; see there."""

    encoder: Encoder
    classifier: Classifier
    token_counter: TokenCounter
    embedded_text: str
    splitter: str = "default"  # a profile of `merge_rules`
    _queries: LRUCache[tuple[str, ...], FloatArray] = field(
        default_factory=lambda: LRUCache(MAX_KEPT_QUERIES), init=False, repr=False, compare=False
    )
    _others: "dict[str, Builder]" = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def recipe(self) -> Recipe:
        """Everything except the skill's files that an index depends on."""
        profile = "" if self.splitter == "default" else f"-{self.splitter}"
        return Recipe(
            splitter=SPLITTER_VERSION + profile,
            classifier=self.classifier.id,
            encoder=self.encoder.id,
            embedded_text=self.embedded_text,
            token_counter=self.token_counter.id,
            format=FORMAT_VERSION,
        )

    def build(
        self,
        skill: Skill,
        key: str,
        tiles: Sequence[Tile] | None = None,
        *,
        query: str = "",
        known: Mapping[str, FloatArray] = MappingProxyType({}),
        draft: SkillIndex | None = None,
    ) -> SkillIndex:
        """Return the index of `skill` under the cache key `key`; raises what encoder and classifier raise.

        `tiles` are its headings and the fragments that become nodes, by default those of `split_skill`. With
        `query` only the `DRAFT_NODES` nodes are embedded that share most words with it; rows of the others
        are zeros, and there are no edges. `known` are embeddings of files, by digest; `draft` is an index of
        the same for another query: neither is made again. Parts that return the wrong number of rows or
        types, or read rows that no encoder makes, are a `ValueError`.
        """
        # an index that is stored needs none of it
        from skillpager.graph.edges import infer_edges
        from skillpager.parsing.fragments import split_skill

        if tiles is None:
            tiles = (*draft.headings, *draft.nodes) if draft else split_skill(skill, self.splitter)
        headings = tuple(tile for tile in tiles if isinstance(tile, Heading))
        fragments = [tile for tile in tiles if isinstance(tile, Fragment)]
        chosen = likely_fragments(fragments, query) if query else fragments
        old = {file.path: known[file.digest] for file in skill.files if file.digest in known}
        embeddings = rows_of(self.encoder, self.embedded_text, fragments, chosen, old, draft)
        verdicts = self.classifier.classify(fragments, self._classifier_rows(fragments, chosen, embeddings))
        if len(verdicts) != len(fragments):
            raise ValueError(f"{self.classifier.id} gave {len(verdicts)} verdicts on {len(fragments)} nodes")
        nodes = tuple(
            Node(
                **{item.name: getattr(fragment, item.name) for item in fields(Fragment)},
                id=f"n{fragment.ordinal}",
                type=verdict.type,
                type_confidence=verdict.confidence,
                tokens=self.token_counter.count(fragment.text),
            )
            for fragment, verdict in zip(fragments, verdicts, strict=True)
        )
        return SkillIndex(
            skill=skill,
            nodes=nodes,
            headings=headings,
            edges=() if query else infer_edges(nodes, embeddings),
            embeddings=embeddings,
            recipe=self.recipe,
            key=key,
            full_tokens=count_tokens(skill, self.token_counter),
        )

    def embed_query(self, text: str, parts: Sequence[str] = ()) -> FloatArray:
        """Return `(1 + len(parts), dim)`: the rows of a query and of slices of it; they are cached.

        An encoder with `encode_query_parts` computes them together. Raises `EncoderError` if it fails.
        """

        def make() -> FloatArray:
            together = getattr(self.encoder, "encode_query_parts", None) if parts else None
            if together is None:
                return np.stack([self.encoder.encode_query(each) for each in (text, *parts)])
            rows: FloatArray = together(text, parts)
            return rows

        return self._queries.get_or_make((text, *parts), make)

    def for_strategy(self, strategy: Strategy) -> "Builder":
        """Return the builder of the index that a strategy picks from: this one, or one with other embeddings.

        If neither this encoder nor the built-in one makes them, that is a `StrategyError`.
        """
        # asking for the attribute takes a fiftieth of the time of `isinstance` with a Protocol
        rows: str | None = getattr(strategy, "embedding", None)
        if rows is None or rows == rows_id(self.recipe):
            return self
        encoder, _, form = rows.rpartition("/")
        if encoder != self.builtin.id:
            raise StrategyError(f"The strategy {strategy.name} reads {rows}, which no encoder makes.")
        return self._others.setdefault(rows, replace(self, encoder=self.builtin, embedded_text=form))

    @cached_property
    def builtin(self) -> Encoder:
        """The built-in encoder; classifiers and strategies may read its embeddings instead of the index's."""
        from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder

        return self.encoder if self.encoder.id == ENCODER_ID else BuiltinEncoder()

    def _classifier_rows(
        self, fragments: Sequence[Fragment], chosen: Sequence[Fragment], embeddings: FloatArray
    ) -> FloatArray | None:
        """Return the embeddings that the classifier reads, None for none; the index's own if they fit."""
        wanted = self.classifier.embedding
        if wanted is None or wanted == rows_id(self.recipe):
            return None if wanted is None else embeddings
        encoder, _, form = wanted.rpartition("/")
        if encoder != self.builtin.id:
            raise ValueError(f"{self.classifier.id} reads the embeddings {wanted}, which no encoder makes")
        return rows_of(self.builtin, form, fragments, chosen)


def likely_fragments(fragments: Sequence[Fragment], query: str) -> list[Fragment]:
    """Return the `DRAFT_NODES` fragments that share most words with a query, in document order.

    BM25 scores of the fragment and of its section count the same, as shares of the best. The path of the file
    and the headings belong to both.
    """
    from skillpager.strategies.navigator.features import share
    from skillpager.strategies.navigator.lexical import TermIndex, terms_of

    def shares(parts: Sequence[Sequence[Fragment]]) -> FloatArray:
        texts = ("\n".join([*trail_of(part[0]), *(each.text for each in part)]) for part in parts)
        return share(TermIndex([terms_of(text) for text in texts]).score(terms_of(query))[0])

    sections = [list(run) for _, run in groupby(fragments, trail_of)]
    of_section = np.repeat(shares(sections), [len(section) for section in sections])
    scores = of_section + shares([[fragment] for fragment in fragments])
    return [fragments[place] for place in sorted(np.argsort(-scores, kind="stable")[:DRAFT_NODES])]


def rows_of_files(store: Store, skill: Skill, recipe: Recipe) -> dict[str, FloatArray]:
    """Return the embeddings that a store has of a skill's files, by digest; not all stores keep them."""
    with suppress(StoreError):
        rows: dict[str, FloatArray] = getattr(store, "rows_of_files", lambda *_: {})(skill, recipe)
        return rows
    return {}


def rows_of(
    encoder: Encoder,
    form: str,
    fragments: Sequence[Fragment],
    chosen: Sequence[Fragment],
    known: Mapping[str, FloatArray] = MappingProxyType({}),
    draft: SkillIndex | None = None,
) -> FloatArray:
    """Return the rows of all fragments; those of fragments that are not chosen are zeros.

    `known` are rows that need not be computed, by the path of their file; so are those of a draft.
    """
    rows = draft.embeddings.copy() if draft else np.zeros((len(fragments), encoder.dim), np.float32)
    for path, run in groupby(fragments, lambda fragment: fragment.span.file):
        ordinals, of_file = [fragment.ordinal for fragment in run], known.get(path, ())
        if len(of_file) == len(ordinals):  # what was the copy of a file that changed had no fragments
            rows[ordinals] = of_file
    made = set(np.flatnonzero(rows.any(axis=1)).tolist())
    if new := [fragment for fragment in chosen if fragment.ordinal not in made]:
        rows[[fragment.ordinal for fragment in new]] = embed(encoder, new, form)
    return rows


def embed(encoder: Encoder, fragments: Sequence[Fragment], form: str) -> FloatArray:
    """Return `(len(fragments), encoder.dim)` float32, C-contiguous unit rows in the order of fragments.

    In the form `context`, an encoder that can reads each fragment in its document. Rows of another shape are
    a `ValueError`.
    """
    if form == "context" and hasattr(encoder, "encode_in_context"):
        rows: FloatArray = encoder.encode_in_context(fragments)
    else:
        rows = encoder.encode_documents([embedded_text(fragment, form) for fragment in fragments])
    if rows.shape != (len(fragments), encoder.dim):
        raise ValueError(f"{encoder.id} returned {rows.shape}, expected {(len(fragments), encoder.dim)}")
    return np.ascontiguousarray(rows, dtype=np.float32)
