"""SkillPager: the one module that chains the stages, offline and online.

    index   skill → fragments → encoder, classifier → graph → store
    page    index, query → strategy → context
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from skillpager import explain
from skillpager.addresses import find_nodes
from skillpager.context import Page, PageMeter
from skillpager.encoders.documents import embedded_text
from skillpager.errors import SettingsError, StoreError
from skillpager.fragments import SPLITTER_VERSION, split_skill
from skillpager.graph import infer_edges
from skillpager.recipes import cache_folder, index_key, make_classifier, make_encoder, make_strategy
from skillpager.settings import Settings, load_settings
from skillpager.skill import SCOPES, read_skill, skill_from_text
from skillpager.sources import Stamps, stamp_files
from skillpager.stores import SqliteStore
from skillpager.strategies import Full
from skillpager.strategies.budget import NodeMeter, resolve
from skillpager.tokens import default_counter
from skillpager.types import (
    Budget,
    Classification,
    Classifier,
    Context,
    Encoder,
    FloatArray,
    Fragment,
    Heading,
    Node,
    Query,
    Recipe,
    Skill,
    SkillIndex,
    Store,
    Strategy,
    Style,
    TokenCounter,
)

logger = logging.getLogger(__name__)

# version of what a store holds; raise it when the meaning of a stored field changes
FORMAT_VERSION = 1

# bounds of what one process keeps: nodes of all indexes together (about 3 kB each), queries
MAX_KEPT_NODES = 50_000
MAX_KEPT_QUERIES = 1_024

SkillSource = Path | str | Skill | SkillIndex


class SkillPager:
    """Pages skills: the smallest part of a skill that suffices for a query.

    Thread-safe. Models are loaded on first use and kept; indexes are kept in the store and, within
    bounds, in memory, and a changed file is noticed at the next call.
    """

    def __init__(
        self,
        *,
        encoder: Encoder | str | None = None,
        classifier: Classifier | str | None = None,
        store: Store | Path | None = None,
        token_counter: TokenCounter | None = None,
        embedded_text: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Choose the parts; whatever is not given comes from the settings.

        Args:
            encoder: An encoder, or its name such as `openai:bge-m3`.
            classifier: A classifier, or its name: `local`, `llm`.
            store: A store, or the folder of one.
            token_counter: Counts tokens; o200k_base where it can be had.
            embedded_text: What of a node is embedded: `heading` (with its heading path) or `bare`.
            settings: Settings; environment and configuration files by default.

        Raises:
            SettingsError: A setting or name is not valid.
        """
        self.settings = settings or load_settings()
        self._encoder = encoder or self.settings.encoder
        self._classifier = classifier or self.settings.classifier
        self._store = store
        self.token_counter = token_counter or default_counter()
        self._embedded_text = embedded_text or self.settings.embedded_text
        self._lock = threading.RLock()
        self._builds: dict[str, threading.Lock] = {}
        self._indexes: OrderedDict[str, SkillIndex] = OrderedDict()
        self._sources: dict[tuple[str, str], tuple[Stamps, str]] = {}
        self._queries: OrderedDict[str, FloatArray] = OrderedDict()
        self._pages: OrderedDict[tuple[str, Style, str], Page] = OrderedDict()

    # ---- parts

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder in use."""
        return make_encoder(self._encoder, self.settings) if isinstance(self._encoder, str) else self._encoder

    @cached_property
    def classifier(self) -> Classifier:
        """The classifier in use."""
        chosen = self._classifier
        return make_classifier(chosen, self.settings) if isinstance(chosen, str) else chosen

    @cached_property
    def store(self) -> Store:
        """The store in use."""
        if self._store is None or isinstance(self._store, Path):
            folder = self._store or cache_folder(self.settings)
            return SqliteStore(folder, max_bytes=self.settings.max_cache_bytes)
        return self._store

    # ---- offline

    def index(self, skill: SkillSource, *, scope: str | None = None) -> SkillIndex:
        """Return the index of a skill: kept, else stored, else built and stored.

        Args:
            skill: A path, Markdown text (a string with a line break), a `Skill` or an index.
            scope: `skill` for SKILL.md and the files it links to, `body` for SKILL.md alone.

        Raises:
            SkillError: The skill cannot be read.
            EncoderError: The encoder fails.
            ClassifierError: The classifier fails.
            StoreError: The store cannot be opened.
        """
        if isinstance(skill, SkillIndex):
            return skill
        scope = self._scope(scope)
        if isinstance(skill, Skill):
            return self._index_of(skill)
        if isinstance(skill, str) and ("\n" in skill or "\r" in skill):
            return self._index_of(skill_from_text(skill, max_bytes=self.settings.max_bytes))
        place = (str(skill), scope)
        kept = self._kept_source(place)
        return kept if kept is not None else self._index_path(Path(skill), scope, place)

    def is_stored(self, skill: Skill) -> bool:
        """Tell whether the index of `skill` need not be built."""
        key = index_key(skill, self.recipe)
        return key in self._indexes or self.store.load(key, skill) is not None

    @property
    def recipe(self) -> Recipe:
        """All that an index depends on besides the files of the skill."""
        return Recipe(
            splitter=SPLITTER_VERSION,
            classifier=self.classifier.id,
            encoder=self.encoder.id,
            embedded_text=self._embedded_text,
            token_counter=self.token_counter.id,
            format=FORMAT_VERSION,
        )

    # ---- online

    def page(
        self,
        skill: SkillSource,
        query: str,
        *,
        max_nodes: int | None = None,
        max_tokens: int | None = None,
        strategy: Strategy | str | None = None,
        mmr_lambda: float | None = None,
        scope: str | None = None,
        style: Style | str | None = None,
        show: str = "",
    ) -> Context:
        """Return the page of a skill for a query.

        A skill that fits the budget passes through whole, except in style `plain`, which is the
        paper's method and nothing else.

        Args:
            skill: A path, Markdown text, a `Skill` or an index.
            query: What the agent is about to do.
            max_nodes: Most nodes to pick; 20 up to 100 nodes, else 60, when not given.
            max_tokens: Ceiling on the page's tokens, markers included.
            strategy: `mmr` (the default), `topk`, `full`, or a strategy.
            mmr_lambda: Weight of relevance against redundancy, 0 to 1; 0.7 when not given.
            scope: `skill` or `body`; see `index`.
            style: `marked` (the default), `plain` or `xml`.
            show: Command that reads omitted nodes when their ids follow it, named by the markers.

        Raises:
            SettingsError: A limit, λ, scope, style or strategy is not valid, or the query is empty.
            SkillPagerError: As for `index`.

        Reference: paper §3.2.
        """
        if not query.strip():
            raise SettingsError("The query is empty: say in a sentence what the agent is about to do.")
        chosen_style = self._style(style)
        chosen = self._strategy(strategy, mmr_lambda)
        budget = self._budget(max_nodes, max_tokens)
        index = self.index(skill, scope=scope)
        page = self._page(index, chosen_style, show)
        if chosen_style is not Style.PLAIN and _fits_whole(index, budget):
            chosen, budget = Full(), Budget(len(index.nodes), budget.max_tokens)
        return self._select(page, chosen, self._query(query), budget)

    def expand(
        self,
        skill: SkillSource,
        nodes: Sequence[str] | str,
        *,
        scope: str | None = None,
        style: Style | str | None = None,
    ) -> Context:
        """Return omitted nodes of a skill: a page fault.

        Args:
            skill: As for `page`.
            nodes: Ids (`n12`), ranges (`n12-n16`) or lines (`L30-57`).
            scope: The scope that the page had.
            style: `marked` for headings and lead-ins around the nodes, `plain` for the nodes alone.

        Raises:
            NodeNotFoundError: An address names nothing.
            SkillPagerError: As for `index`.
        """
        index = self.index(skill, scope=scope)
        addresses = [nodes] if isinstance(nodes, str) else nodes
        return self._page(index, self._style(style), "").excerpt(find_nodes(index, addresses))

    def outline(self, skill: SkillSource, *, scope: str | None = None) -> str:
        """Return the skill as a tree of headings and nodes: id, type, lines, tokens, first words.

        Raises:
            SkillPagerError: As for `index`.
        """
        return explain.outline(self.index(skill, scope=scope))

    # ---- reading and keeping

    def _index_path(self, path: Path, scope: str, place: tuple[str, str]) -> SkillIndex:
        skill = read_skill(path, scope=scope, max_bytes=self.settings.max_bytes)
        stamps = stamp_files(skill)
        index = self._index_of(skill)
        with self._lock:
            if stamps is not None:
                self._sources[place] = (stamps, index.key)
        return index

    def _kept_source(self, place: tuple[str, str]) -> SkillIndex | None:
        """Return the index kept for a path when none of its files has changed."""
        known = self._sources.get(place)
        if known is None or known[0].changed():
            return None
        return self._kept(known[1])

    def _kept(self, key: str) -> SkillIndex | None:
        with self._lock:
            if key in self._indexes:
                self._indexes.move_to_end(key)
            return self._indexes.get(key)

    def _keep(self, index: SkillIndex) -> SkillIndex:
        with self._lock:
            self._indexes[index.key] = index
            self._indexes.move_to_end(index.key)
            while len(self._indexes) > 1 and self._kept_nodes() > MAX_KEPT_NODES:
                gone, _ = self._indexes.popitem(last=False)
                self._pages = OrderedDict((k, page) for k, page in self._pages.items() if k[0] != gone)
                self._sources = {k: known for k, known in self._sources.items() if known[1] != gone}
        return index

    def _kept_nodes(self) -> int:
        return sum(len(index.nodes) for index in self._indexes.values())

    def _index_of(self, skill: Skill) -> SkillIndex:
        recipe = self.recipe
        key = index_key(skill, recipe)
        kept = self._kept(key)
        if kept is not None:
            return kept
        with self._lock:
            build = self._builds.setdefault(key, threading.Lock())
        try:
            with build:
                kept = self._kept(key) or self.store.load(key, skill)
                return self._keep(kept if kept is not None else self._build(skill, recipe, key))
        finally:
            with self._lock:
                self._builds.pop(key, None)

    # ---- building

    def _build(self, skill: Skill, recipe: Recipe, key: str) -> SkillIndex:
        tiles = split_skill(skill)
        fragments = [tile for tile in tiles if isinstance(tile, Fragment)]
        headings = tuple(tile for tile in tiles if isinstance(tile, Heading))
        embeddings = self._embed(self.encoder, fragments, recipe.embedded_text)
        verdicts = self._classify(fragments, embeddings, recipe)
        nodes = tuple(map(self._node, fragments, verdicts))
        edges = infer_edges(nodes, embeddings)
        index = SkillIndex(skill, nodes, headings, edges, embeddings, recipe, key, full_tokens=0)
        index = replace(index, full_tokens=self._full_tokens(skill))
        self._save(index)
        return index

    def _save(self, index: SkillIndex) -> None:
        """Store an index; when that fails the page is still made, and the failure is reported."""
        try:
            self.store.save(index)
        except StoreError as error:
            logger.warning("the index of %s is not kept: %s", index.skill.name, error)

    def _embed(self, encoder: Encoder, fragments: Sequence[Fragment], form: str) -> FloatArray:
        rows = encoder.encode_documents([embedded_text(fragment, form) for fragment in fragments])
        if rows.shape != (len(fragments), encoder.dim):
            raise ValueError(f"{encoder.id} returned {rows.shape}, expected {(len(fragments), encoder.dim)}")
        return np.ascontiguousarray(rows, dtype=np.float32)

    def _classify(
        self, fragments: Sequence[Fragment], embeddings: FloatArray, recipe: Recipe
    ) -> list[Classification]:
        verdicts = self.classifier.classify(fragments, self._rows(fragments, embeddings, recipe))
        if len(verdicts) != len(fragments):
            raise ValueError(f"{self.classifier.id} returned {len(verdicts)} verdicts for {len(fragments)}")
        return verdicts

    def _rows(
        self, fragments: Sequence[Fragment], embeddings: FloatArray, recipe: Recipe
    ) -> FloatArray | None:
        """Return the rows that the classifier reads: the index's own when they are the same."""
        wanted = self.classifier.embedding
        if wanted is None:
            return None
        if wanted == f"{recipe.encoder}/{recipe.embedded_text}":
            return embeddings
        return self._embed(self._builtin, fragments, wanted.rpartition("/")[2])

    @cached_property
    def _builtin(self) -> Encoder:
        return make_encoder("builtin", self.settings)

    def _node(self, fragment: Fragment, verdict: Classification) -> Node:
        values = {item.name: getattr(fragment, item.name) for item in fields(Fragment)}
        return Node(
            **values,
            id=f"n{fragment.ordinal}",
            type=verdict.type,
            type_confidence=verdict.confidence,
            tokens=self.token_counter.count(fragment.text),
        )

    def _full_tokens(self, skill: Skill) -> int:
        return sum(self.token_counter.count(file.text[file.body_start :]) for file in skill.files)

    # ---- selecting

    def _select(self, page: Page, strategy: Strategy, query: Query, budget: Budget) -> Context:
        limit = budget.max_tokens
        meter = PageMeter(page) if limit is not None else NodeMeter(page.index.nodes)
        selection = strategy.select(page.index, query, budget=budget, meter=meter)
        chosen = [pick.node.ordinal for pick in selection.picks]
        context = page.render(chosen, selection=selection)
        while limit is not None and context.tokens > limit:
            if not chosen:
                return page.empty(selection)
            chosen.pop()  # the meter prices parts, the limit holds for the whole: give back the last pick
            context = page.render(chosen, selection=selection)
        return context

    def _page(self, index: SkillIndex, style: Style, show: str) -> Page:
        key = (index.key, style, show)
        with self._lock:
            page = self._pages.get(key)
            if page is None or page.index is not index:
                page = self._pages[key] = Page(index, self.token_counter, style=style, show=show)
            self._pages.move_to_end(key)
            if len(self._pages) > 4 * max(1, len(self._indexes)):
                self._pages.popitem(last=False)
            return page

    def _query(self, text: str) -> Query:
        with self._lock:
            row = self._queries.get(text)
        if row is None:
            row = self.encoder.encode_query(text)
            with self._lock:
                self._queries[text] = row
                if len(self._queries) > MAX_KEPT_QUERIES:
                    self._queries.popitem(last=False)
        return Query(text, row)

    # ---- settings of a call

    def _scope(self, scope: str | None) -> str:
        return _one_of("scope", scope or self.settings.scope, SCOPES)

    def _style(self, style: Style | str | None) -> Style:
        return Style(_one_of("style", str(style or self.settings.style), tuple(Style)))

    def _strategy(self, strategy: Strategy | str | None, mmr_lambda: float | None) -> Strategy:
        weight = self.settings.mmr_lambda if mmr_lambda is None else mmr_lambda
        chosen = strategy or self.settings.strategy
        return make_strategy(chosen, mmr_lambda=weight) if isinstance(chosen, str) else chosen

    def _budget(self, max_nodes: int | None, max_tokens: int | None) -> Budget:
        nodes = self.settings.max_nodes if max_nodes is None else max_nodes
        tokens = self.settings.max_tokens if max_tokens is None else max_tokens
        for name, value in (("max_nodes", nodes), ("max_tokens", tokens)):
            if value is not None and value < 0:
                raise SettingsError(f"{name} is {value}: it must be 0 or more.")
        return Budget(nodes, tokens)


def _fits_whole(index: SkillIndex, budget: Budget) -> bool:
    """Tell whether the whole skill is within the budget."""
    limit = resolve(budget, len(index.nodes))
    within_tokens = limit.max_tokens is None or index.full_tokens <= limit.max_tokens
    return limit.max_nodes == len(index.nodes) and within_tokens


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise SettingsError(f"Unknown {name} {value!r}: choose one of {', '.join(known)}.")
    return value
