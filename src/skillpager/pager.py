"""SkillPager: the one module that chains the stages, offline and online.

index   skill → fragments → encoder, classifier → graph → store
page    index, query → strategy → context
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

from typing_extensions import Unpack

from skillpager.errors import SettingsError, StrategyError
from skillpager.factories import cache_folder, make_classifier, make_encoder, make_strategy
from skillpager.indexing import Builder
from skillpager.memory import Kept
from skillpager.output import outline as explain
from skillpager.pages.addresses import find_nodes
from skillpager.pages.assemble import choose_budget, estimates, leave_out, longest, make_page, make_whole
from skillpager.parsing.skill import SCOPES, read_skill, skill_from_text
from skillpager.settings import Settings, load_settings
from skillpager.shelf import Shelf
from skillpager.sources import stamp_files
from skillpager.stores import SqliteStore
from skillpager.tokens import default_counter
from skillpager.types import (
    Classifier,
    Encoder,
    EstimatingStrategy,
    FloatArray,
    Page,
    PageOptions,
    Query,
    Recipe,
    Skill,
    SkillIndex,
    Store,
    Strategy,
    Style,
    TokenCounter,
)

# strategies keep what they computed; one for each name and weight in use
MAX_KEPT_STRATEGIES = 64

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
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Choose the parts; whatever is not given comes from the settings.

        Args:
            encoder: An encoder, or its name such as `openai:bge-m3`.
            classifier: A classifier, or its name: `local`, `llm`.
            store: A store, or the folder of one.
            token_counter: Counts tokens; o200k_base where it can be had.
            embedded_text: What of a node is embedded: `bare` (its text), `heading` (its heading path too), or
                `context` (that and the lead-in of its list).
            settings: Settings; environment and configuration files by default.
            progress: Called with the batches done and all batches while a language model types a skill.

        Raises:
            SettingsError: A setting or name is not valid.
        """
        self.settings = settings or load_settings()
        self._encoder = encoder or self.settings.encoder
        self._classifier = classifier or self.settings.classifier
        self._store = store
        self.token_counter = token_counter or default_counter()
        self._embedded_text = embedded_text or self.settings.embedded_text
        self._progress = progress
        self._kept = Kept()
        self._shelf = Shelf(self._kept)
        self._pool_builders: dict[str, Builder] = {}
        self._strategies: dict[tuple[str, float], Strategy] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the pager itself: it is thread-safe, and what holds it shares its models and caches."""
        return self

    def __getstate__(self) -> dict[str, object]:
        """Return the parts, keys of the settings included; models and caches are made anew from them."""
        return {
            "encoder": self._encoder,
            "classifier": self._classifier,
            "store": self._store,
            "token_counter": None if self.token_counter is default_counter() else self.token_counter,
            "embedded_text": self._embedded_text,
            "settings": self.settings,
            "progress": self._progress,
        }

    def __setstate__(self, parts: Mapping[str, Any]) -> None:
        """Make a pager of the same parts."""
        type(self).__init__(self, **parts)

    # ---- parts

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder in use."""
        return make_encoder(self._encoder, self.settings) if isinstance(self._encoder, str) else self._encoder

    @cached_property
    def classifier(self) -> Classifier:
        """The classifier in use."""
        chosen = self._classifier
        if not isinstance(chosen, str):
            return chosen
        return make_classifier(chosen, self.settings, progress=self._progress)

    @cached_property
    def store(self) -> Store:
        """The store in use."""
        if self._store is None or isinstance(self._store, Path):
            folder = self._store or cache_folder(self.settings)
            return SqliteStore(folder, max_bytes=self.settings.max_cache_bytes)
        return self._store

    def close(self) -> None:
        """Close the store; the pager can still be used and opens it again."""
        if "store" in self.__dict__ and isinstance(self.store, SqliteStore):
            self.store.close()

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
        if isinstance(skill, Skill):
            return self._index_of(skill, self._builder)
        if isinstance(skill, str) and ("\n" in skill or "\r" in skill):
            text = skill_from_text(skill, max_bytes=self.settings.max_bytes)
            return self._index_of(text, self._builder)
        return self._index_path(Path(skill), self._scope(scope))

    @property
    def recipe(self) -> Recipe:
        """All that an index depends on besides the files of the skill."""
        return self._builder.recipe

    # ---- online

    def page(self, skill: SkillSource, query: str, **options: Unpack[PageOptions]) -> Page:
        """Return the page of a skill for a query.

        A skill that fits the budget passes through whole, except in style `plain`, which is the
        paper's method and nothing else.

        Args:
            skill: A path, Markdown text, a `Skill` or an index.
            query: What the agent is about to do.
            **options: `PageOptions`, which see.

        Raises:
            SettingsError: A limit, λ, scope, style or strategy is not valid, the strategy cannot estimate
                sufficiency, or the query is empty.
            MissingExtraError: The strategy needs a package that is not installed.
            StrategyError: The strategy's model or endpoint fails.
            SkillPagerError: As for `index`.
            TypeError: An option is unknown.

        Reference: paper §3.2.
        """
        if unknown := options.keys() - PageOptions.__annotations__.keys():
            raise TypeError(f"page() has no option {', '.join(sorted(unknown))}")
        if not query.strip():
            raise SettingsError("The query is empty: say in a sentence what the agent is about to do.")
        chosen = self._strategy(options.get("strategy"), options.get("mmr_lambda"))
        budget = choose_budget(
            self.settings,
            options.get("max_nodes"),
            options.get("max_tokens"),
            options.get("sufficiency"),
            chosen,
        )
        pool = self._pool(self.index(skill, scope=options.get("scope")), chosen)
        style = self._style(options.get("style"))
        renderer = self._kept.page(pool, self.token_counter, style, options.get("show", ""))
        page = make_page(renderer, chosen, self._query(query, chosen), budget)
        return leave_out(page, renderer, options.get("known", ()))

    def whole(
        self,
        skill: SkillSource,
        *,
        max_tokens: int | None = None,
        scope: str | None = None,
        style: Style | str | None = None,
        show: str = "",
        known: Collection[str] = (),
    ) -> Page:
        """Return the whole skill as a page, or as much of its beginning as `max_tokens` allows.

        Args:
            skill: As for `page`.
            max_tokens: Ceiling on the page's tokens; none when not given.
            scope: As for `page`.
            style: As for `page`.
            show: As for `page`.
            known: As for `page`.

        Raises:
            SettingsError: The scope or style is not valid.
            SkillPagerError: As for `index`.
        """
        index = self.index(skill, scope=scope)
        page = self._kept.page(index, self.token_counter, self._style(style), show)
        return make_whole(page, known, max_tokens)

    def reasons(
        self,
        skill: SkillSource,
        query: str,
        *,
        strategy: Strategy | str | None = None,
        scope: str | None = None,
    ) -> dict[str, Mapping[str, float]]:
        """Return by node id what each kind of signal adds to the node's estimated need, as shares of 1.

        Empty for a strategy that does not estimate needs.

        Args:
            skill: As for `page`.
            query: As for `page`.
            strategy: As for `page`.
            scope: As for `index`.

        Raises:
            SettingsError: The scope or strategy is not valid.
            SkillPagerError: As for `index`.
        """
        chosen = self._strategy(strategy, None)
        if not estimates(chosen):
            return {}
        pool = self._pool(self.index(skill, scope=scope), chosen)
        reasons = cast(EstimatingStrategy, chosen).reasons(pool, self._query(query, chosen))
        return {node.id: shares for node, shares in zip(pool.nodes, reasons, strict=True)}

    def pool(
        self, skill: SkillSource, strategy: Strategy | str | None = None, *, scope: str | None = None
    ) -> SkillIndex:
        """Return the index that a strategy picks from: the skill's own, or one with the rows that it reads.

        Args:
            skill: As for `page`.
            strategy: As for `page`.
            scope: As for `index`.

        Raises:
            SettingsError: The scope or strategy is not valid.
            SkillPagerError: As for `index`.
        """
        return self._pool(self.index(skill, scope=scope), self._strategy(strategy, None))

    def embed_query(self, query: str, strategy: Strategy | str | None = None) -> FloatArray:
        """Return `(dim,)` float32, unit length: the embedding of a query, kept for the next call.

        Args:
            query: As for `page`.
            strategy: As for `page`; what it embeds of the query besides the whole is kept, too.

        Raises:
            SettingsError: The strategy is not valid.
            EncoderError: The encoder fails.
        """
        self._query(query, self._strategy(strategy, None))
        return self._kept.query(query, self.encoder)

    def expand(
        self,
        skill: SkillSource,
        nodes: Sequence[str] | str,
        *,
        max_tokens: int | None = None,
        scope: str | None = None,
        style: Style | str | None = None,
    ) -> Page:
        """Return omitted nodes of a skill: a page fault.

        Args:
            skill: As for `page`.
            nodes: Ids (`n12`), ranges (`n12-n16`) or lines (`L30-57`).
            max_tokens: Ceiling on the tokens; nodes that do not fit any more are left out from the end.
            scope: The scope that the page had.
            style: `marked` for headings and lead-ins around the nodes, `plain` for the nodes alone.

        Raises:
            NodeNotFoundError: An address names nothing.
            SkillPagerError: As for `index`.
        """
        index = self.index(skill, scope=scope)
        addresses = [nodes] if isinstance(nodes, str) else nodes
        page = self._kept.page(index, self.token_counter, self._style(style), "")
        ordinals = find_nodes(index, addresses)
        return page.excerpt(ordinals) if max_tokens is None else longest(page.excerpt, ordinals, max_tokens)

    def outline(self, skill: SkillSource, *, scope: str | None = None) -> str:
        """Return the skill as a tree of headings and nodes: id, type, lines, tokens, first words.

        Raises:
            SkillPagerError: As for `index`.
        """
        return explain.outline(self.index(skill, scope=scope))

    # ---- reading and building

    @cached_property
    def _builder(self) -> Builder:
        return Builder(self.encoder, self.classifier, self.token_counter, self._embedded_text)

    def _index_path(self, path: Path, scope: str) -> SkillIndex:
        place = (str(path), scope)
        kept = self._kept.index_at(place)
        if kept is None:
            skill = read_skill(path, scope=scope, max_bytes=self.settings.max_bytes)
            stamps = stamp_files(skill)
            kept = self._index_of(skill, self._builder)
            self._kept.keep_source(place, stamps, kept.key)
        return kept

    def _pool(self, index: SkillIndex, strategy: Strategy) -> SkillIndex:
        builder = self._builder_for(strategy)
        if builder is self._builder or rows_of(index.recipe) == rows_of(builder.recipe):
            return index
        return self._index_of(index.skill, builder)

    def _builder_for(self, strategy: Strategy) -> Builder:
        """Return what builds the pool of a strategy."""
        # asking for the attribute takes a fiftieth of `isinstance` with a Protocol
        rows: str | None = getattr(strategy, "embedding", None)
        if rows is None or rows == rows_of(self._builder.recipe):
            return self._builder
        encoder, _, form = rows.rpartition("/")  # an `EstimatingStrategy` reads the rows it was trained on
        if encoder != self._builtin.id:
            raise StrategyError(f"The strategy {strategy.name} reads the rows of {rows}, which nobody makes.")
        return self._pool_builders.setdefault(
            rows, replace(self._builder, encoder=self._builtin, embedded_text=form)
        )

    @cached_property
    def _builtin(self) -> Encoder:
        from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder

        return self.encoder if self.encoder.id == ENCODER_ID else BuiltinEncoder()

    def _query(self, query: str, strategy: Strategy) -> Query:
        encoder = self._builder_for(strategy).encoder
        clauses = cast(EstimatingStrategy, strategy).clauses(query) if estimates(strategy) else ()
        parts = tuple(Query(clause, self._kept.query(clause, encoder)) for clause in clauses)
        return Query(query, self._kept.query(query, encoder), parts)

    def _index_of(self, skill: Skill, builder: Builder) -> SkillIndex:
        return self._shelf.index(skill, builder, self.store)

    # ---- settings of a call

    def _scope(self, scope: str | None) -> str:
        return _one_of("scope", scope or self.settings.scope, SCOPES)

    def _style(self, style: Style | str | None) -> Style:
        return Style(_one_of("style", str(style or self.settings.style), tuple(Style)))

    def _strategy(self, strategy: Strategy | str | None, mmr_lambda: float | None) -> Strategy:
        weight = self.settings.mmr_lambda if mmr_lambda is None else mmr_lambda
        chosen = strategy or self.settings.strategy or self._default_strategy(mmr_lambda)
        if not isinstance(chosen, str):
            return chosen
        known = self._strategies.get((chosen, weight))
        if known is None:
            if len(self._strategies) >= MAX_KEPT_STRATEGIES:
                self._strategies.clear()
            known = self._strategies[chosen, weight] = make_strategy(chosen, self.settings, mmr_lambda=weight)
        return known

    def _default_strategy(self, mmr_lambda: float | None) -> str:
        # who chooses λ means MMR; who chooses an encoder wants its rows used
        return "navigator" if mmr_lambda is None and self.encoder is self._builtin else "mmr"


def rows_of(recipe: Recipe) -> str:
    """Return which rows an index has: encoder id, `/` and text form."""
    return f"{recipe.encoder}/{recipe.embedded_text}"


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise SettingsError(f"Unknown {name} {value!r}: choose one of {', '.join(known)}.")
    return value
