"""The facade `SkillPager`: runs the stages from a skill to an index, and from a query to a page.

index   skill → fragments → encoder, classifier → graph → store
page    index, query → strategy → page
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from typing_extensions import Unpack

from skillpager import factories
from skillpager.caches import LRUCache
from skillpager.errors import SettingsError
from skillpager.indexing import Builder, IndexCache, index_key, rows_id, rows_of_files, stamp_skill
from skillpager.output import outline as explain
from skillpager.pages.addresses import find_nodes, verbatim_lines
from skillpager.pages.assemble import choose_budget, estimates, leave_out, longest, make_page, make_whole
from skillpager.pages.render import HINT, PageRenderer, folder_words
from skillpager.parsing.folder import mentioned_files, own_folder
from skillpager.parsing.skill import read_skill, skill_from_text
from skillpager.settings import Settings, load_settings
from skillpager.strategies.baselines.simple import Full
from skillpager.strategies.picking import allows_all
from skillpager.tokens import default_counter
from skillpager.types import (
    SCOPES,
    Classifier,
    Encoder,
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

# strategies have caches of their own, so one is stored for each name and weight, which clients may choose
MAX_KEPT_STRATEGIES = 16

SkillSource = Path | str | Skill | SkillIndex


class SkillPager:
    """Pages skills: returns the small part of a skill that suffices for a query.

    Thread-safe. Models are loaded on first use. Indexes are saved in the store and cached in memory, within
    bounds; a changed file is noticed at the next call. `with SkillPager() as pager` closes the store. Every
    method that takes a skill raises as `index` does, and a `SettingsError` for an option that is not valid.
    """

    def __init__(
        self,
        *,
        encoder: Encoder | str | None = None,
        classifier: Classifier | str | None = None,
        store: Store | Path | str | None = None,
        token_counter: TokenCounter | None = None,
        embedded_text: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Choose the parts; the settings choose those that are not given.

        Args:
            encoder: An encoder, or its name such as `openai:bge-m3`.
            classifier: A classifier, or its name: `local`, `llm`.
            store: A store, its folder, or the `postgresql://` address of its database.
            token_counter: Counts tokens; default: o200k_base if rs-bpe is installed, else an estimate.
            embedded_text: Which text of a node is embedded: `bare` (its own), `heading` (with its heading
                path), or `context` (with heading path and the lead-in of its list; the built-in encoder
                reads it among the texts around it).
            settings: Settings; default: those of environment and configuration files.

        Raises:
            SettingsError: A setting or name is not valid.
        """
        self.settings = settings or load_settings()
        self._encoder = encoder or self.settings.encoder
        self._classifier = classifier or self.settings.classifier
        self._store = store
        self.token_counter = token_counter or default_counter()
        self._embedded_text = embedded_text or self.settings.embedded_text
        self._indexes = IndexCache(self.settings.cache_dir)
        self._strategies = LRUCache[tuple[str, float | None], Strategy](MAX_KEPT_STRATEGIES)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the pager itself: it is thread-safe, and copies of its owner share its models and caches."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the parts, API keys included; the copy reloads its models and starts with empty caches."""
        names = "encoder", "classifier", "store", "embedded_text"
        parts: dict[str, Any] = {name: getattr(self, f"_{name}") for name in names}
        parts["token_counter"] = None if self.token_counter is default_counter() else self.token_counter
        return partial(type(self), **parts, settings=self.settings), ()

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder in use."""
        if isinstance(self._encoder, str):
            return factories.make_encoder(self._encoder, self.settings)
        return self._encoder

    @cached_property
    def classifier(self) -> Classifier:
        """The classifier in use."""
        if isinstance(self._classifier, str):
            return factories.make_classifier(self._classifier, self.settings)
        return self._classifier

    @cached_property
    def store(self) -> Store:
        """The store in use."""
        if self._store is None or isinstance(self._store, (Path, str)):
            return factories.make_store(self.settings, self._store)
        return self._store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; the pager can still be used and opens it again."""
        close = getattr(self.store, "close", None) if "store" in self.__dict__ else None
        if close is not None:
            close()

    def index(self, skill: SkillSource, *, scope: str | None = None, query: str = "") -> SkillIndex:
        """Return the index of a skill, from memory or the store, or built and stored.

        Args:
            skill: A path, Markdown text (a string with a line break), a `Skill` or an index.
            scope: `skill` for all Markdown of the skill's folder, `body` for SKILL.md alone.
            query: If the skill is large and was never indexed, return a draft for this query at once, and
                build the index in the background; see `for_draft`.

        Raises:
            SettingsError: The scope is not valid.
            SkillError: The skill cannot be read.
            EncoderError: The encoder fails.
            ClassifierError: The classifier fails.
        """
        if isinstance(skill, SkillIndex):
            return skill
        if isinstance(skill, str) and ("\n" in skill or "\r" in skill):
            skill = skill_from_text(skill, max_bytes=self.settings.max_bytes)
        if isinstance(skill, Skill):
            return self._indexes.get_or_draft(skill, self.builder, self.store, query)
        path, scope = Path(skill), _one_of("scope", scope or self.settings.scope, SCOPES)
        index = self._indexes.at(str(path), scope)
        if index is None:
            read = read_skill(path, scope=scope, max_bytes=self.settings.max_bytes)
            stamps = stamp_skill(read, path)
            index = self._indexes.get_or_draft(read, self.builder, self.store, query)
            self._indexes.remember(str(path), scope, stamps, index)
        return index

    def store_index(self, skill: Skill) -> SkillIndex:
        """Return the index of a skill, which is in the store afterwards; nothing stays in memory.

        Raises:
            StoreError: The store fails; other errors are those of `index`.
        """
        builder = self.builder
        key = index_key(skill, builder.recipe)
        index = self.store.load(key, skill)
        if index is None:
            known = rows_of_files(self.store, skill, builder.recipe)
            index = builder.build(skill, key, known=known)
            self.store.save(index)
        return index

    @property
    def recipe(self) -> Recipe:
        """Everything except the skill's files that an index depends on."""
        return self.builder.recipe

    def page(self, skill: SkillSource, query: str, **options: Unpack[PageOptions]) -> Page:
        """Return the page of a skill for a query (paper §3.2).

        A strategy that fills its budget returns a skill that fits it whole, except in style `plain`, which is
        exactly the paper's method; `navigator` does so with `fill`. A query that the skill hardly covers gets
        a short answer without nodes, unless it is to `force` a page or the style is `plain`.

        Args:
            skill: A path, Markdown text, a `Skill` or an index.
            query: The task that the agent is about to do.
            **options: See `PageOptions`.

        Raises:
            SettingsError: A limit, λ, scope, style or strategy is not valid, the strategy cannot estimate
                sufficiency, or the query is empty.
            MissingExtraError: The strategy needs a package that is not installed.
            StrategyError: The strategy's model or endpoint fails.
            SkillPagerError: As for `index`.
            TypeError: An option is unknown.
        """
        if unknown := options.keys() - PageOptions.__annotations__.keys():
            raise TypeError(f"page() has no option {', '.join(sorted(unknown))}")
        check_query(query)
        if not isinstance(context := options.get("context", ""), str):
            raise SettingsError(f"context is {context!r}: it must be a text, such as 'TypeScript, Linux'.")
        return self.page_part(skill, query, options, tag=None)

    def page_part(self, skill: SkillSource, query: str, options: PageOptions, *, tag: str | None) -> Page:
        """Return the page of a skill as `page` does, or as the part of a page of several skills.

        `tag` is that of the true marks of all parts; None for a page of its own. See `PageRenderer`.
        """
        strategy = self.strategy(options.get("strategy"), options.get("mmr_lambda"))
        budget = choose_budget(options, self.settings, strategy)
        pool = self.pool(skill, strategy, scope=options.get("scope"), query=self.for_draft(query, strategy))
        style, show, folder = options.get("style"), options.get("show", ""), options.get("folder", False)
        renderer = self.renderer(pool, style, show, folder=folder, part_tag=tag)
        passes = allows_all(budget, len(pool.nodes), estimating=estimates(strategy))
        asked = self.query(query, strategy, options.get("context", ""))
        hint = None if options.get("force") else options.get("hint", HINT)
        page = make_page(renderer, strategy, asked, budget, whole=Full() if passes else None, hint=hint)
        page = leave_out(page, renderer, options.get("known", ()))
        return renderer.name_files(page, budget.max_tokens)

    def whole(
        self,
        skill: SkillSource,
        *,
        max_tokens: int | None = None,
        scope: str | None = None,
        style: Style | str | None = None,
        show: str = "",
        folder: bool = False,
        known: Collection[str] = (),
    ) -> Page:
        """Return the whole skill as a page, or as much of its beginning as `max_tokens` allows.

        The arguments are those of `page`.
        """
        renderer = self.renderer(self.index(skill, scope=scope), style, show, folder=folder)
        return renderer.name_files(make_whole(renderer, known, max_tokens), max_tokens)

    def reasons(
        self,
        skill: SkillSource,
        query: str,
        *,
        strategy: Strategy | str | None = None,
        scope: str | None = None,
    ) -> dict[str, Mapping[str, float]]:
        """Return for each node id the share of each group of features in the node's estimated need.

        The shares of a node sum to 1. Empty if the strategy does not estimate needs. The arguments are those
        of `page`.
        """
        chosen = self.strategy(strategy, None)
        if not estimates(chosen):
            return {}
        pool = self.pool(skill, chosen, scope=scope)
        reasons = chosen.reasons(pool, self.query(query, chosen))
        return {node.id: shares for node, shares in zip(pool.nodes, reasons, strict=True)}

    def pool(
        self,
        skill: SkillSource,
        strategy: Strategy | str | None = None,
        *,
        scope: str | None = None,
        query: str = "",
    ) -> SkillIndex:
        """Return the index that a strategy picks from: the skill's own, or one with the rows that it reads.

        The arguments are those of `page` and `index`.
        """
        index, chosen = self.index(skill, scope=scope, query=query), self.strategy(strategy)
        builder = self.builder.for_strategy(chosen)
        same = builder is self.builder or rows_id(index.recipe) == rows_id(builder.recipe)
        pool = index if same else self._indexes.get_or_build(index.skill, builder, self.store)
        return self._indexes.with_notes(pool, builder.encoder) if estimates(chosen) else pool

    def embed_query(self, query: str) -> FloatArray:
        """Return `(dim,)` float32, unit length: the embedding of a query by the pager's encoder."""
        return self.builder.embed_query(query).ravel()

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
            nodes: Ids (`n12`), ranges (`n12-n16`), lines (`L30-57`), files or titles of sections.
            max_tokens: Ceiling on the tokens; nodes at the end that do not fit are left out.
            scope: The scope of the page.
            style: `marked` adds headings and lead-ins to the nodes, `plain` does not.

        Raises:
            NodeNotFoundError: An address names nothing.
        """
        index = self.index(skill, scope=scope)
        renderer = self.renderer(index, style, "")
        addresses = [nodes] if isinstance(nodes, str) else nodes
        if asked := verbatim_lines(index, addresses, of_nodes=True):
            render: Callable[[Sequence[int]], Page] = partial(renderer.verbatim, asked[0])
            numbers: Sequence[int] = asked[1]
        else:
            render, numbers = renderer.excerpt, find_nodes(index, addresses)
        return render(numbers) if max_tokens is None else longest(render, numbers, max_tokens)

    def outline(
        self,
        skill: SkillSource,
        *,
        nodes: bool = False,
        show: str = "",
        list_nodes: str = "",
        list_file: str = "",
        file: str = "",
        folder: bool = False,
        scope: str | None = None,
    ) -> str:
        """Return a map of a skill: each section's title, lines, tokens, and number of nodes by type.

        It takes at most 400 tokens, or a tenth of the skill's if that is more, up to 2,000; sections that do
        not fit are folded into others, and then into their files.

        Args:
            skill: As for `page`.
            nodes: Return all headings and nodes instead: id, type, confidence, lines, tokens, first words.
            show: Command that reads lines. The map names it, the lines follow it or replace `{ids}` in it.
            list_nodes: Command that lists every node, for the map to name.
            list_file: Command that makes the map of one file, as `show`.
            file: Return that of this file alone.
            folder: As for `page`, without files; a list of all nodes names no folder.
            scope: As for `page`.

        Raises:
            SkillPagerError: As for `index`.
            NodeNotFoundError: There is no such file.
        """
        index = self.index(skill, scope=scope)
        index = explain.file_part(index, file) if file else index
        if nodes:
            return explain.node_outline(index)
        named = folder_words(index.skill, own_folder(index.skill)) if folder else ""
        return explain.outline_map(
            index, self.token_counter, show=show, list_nodes=list_nodes, list_file=list_file, folder=named
        )

    @cached_property
    def builder(self) -> Builder:
        """Builds indexes with the parts in use."""
        parts = self.encoder, self.classifier, self.token_counter, self._embedded_text
        return Builder(*parts, self.settings.splitter)

    def renderer(
        self,
        index: SkillIndex,
        style: Style | str | None = None,
        show: str = "",
        *,
        folder: bool = False,
        part_tag: str | None = None,
    ) -> PageRenderer:
        """Return the renderer of an index or `pool`; options as for `page` and `PageRenderer`."""
        named = folder_words(index.skill, own_folder(index.skill)) if folder else ""
        style, files = self.style_of(style), partial(mentioned_files, index.skill)
        return PageRenderer(
            index, self.token_counter, style=style, show=show, folder=named, files=files, part_tag=part_tag
        )

    def style_of(self, style: Style | str | None = None) -> Style:
        """Return the style that this option of `page` chooses."""
        return Style(_one_of("style", str(style or self.settings.style), tuple(Style)))

    def query(self, query: str, strategy: Strategy, context: str = "") -> Query:
        """Return a query with the embeddings that a strategy reads; they are cached in memory."""
        clauses = strategy.clauses(query) if estimates(strategy) else ()
        row, *rows = self.builder.for_strategy(strategy).embed_query(query, clauses)
        return Query(query, row, tuple(map(Query, clauses, rows)), context)

    def for_draft(
        self, query: str, strategy: Strategy | str | None = None, mmr_lambda: float | None = None
    ) -> str:
        """Return the query for a draft by `index`; empty for a strategy that would read all of its rows."""
        return query if estimates(self.strategy(strategy, mmr_lambda)) else ""

    def strategy(self, strategy: Strategy | str | None = None, mmr_lambda: float | None = None) -> Strategy:
        """Return the strategy that these options of `page` choose.

        Raises:
            SettingsError: The strategy is unknown.
            MissingExtraError: It needs a package that is not installed.
        """
        chosen = strategy or self.settings.strategy
        if not chosen:
            # a caller who sets λ means MMR; one who sets an encoder expects its embeddings to be used
            default = mmr_lambda is None and self.encoder is self.builder.builtin
            chosen = "navigator" if default else "mmr"
        if not isinstance(chosen, str):
            if not hasattr(chosen, "select"):
                raise factories.unknown_part(factories.STRATEGY, chosen)
            return chosen
        # a strategy of others keeps its own default: it is given only what the caller asks for
        if mmr_lambda is None and chosen.partition(":")[0] in factories.STRATEGIES:
            mmr_lambda = self.settings.mmr_lambda
        make = partial(factories.make_strategy, chosen, mmr_lambda=mmr_lambda)
        return self._strategies.get_or_make((chosen, mmr_lambda), make)


def check_query(query: object) -> None:
    """Raise a `SettingsError` if a query is not text, or empty."""
    if not isinstance(query, str):
        raise SettingsError(f"The query is {query!r}: it must be a text, what the agent is about to do.")
    if not query.strip():
        raise SettingsError("The query is empty: say in a sentence what the agent is about to do.")


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise SettingsError(f"Unknown {name} {value!r}: choose one of {', '.join(known)}.")
    return value
