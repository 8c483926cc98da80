"""Factories: make the encoder, classifier or strategy that a name stands for.

A part that is not ours is named `MODULE:NAME`, or by the entry point of an installed package. Loading it runs
its code, so that such a name may come from a command line or a call, never from a file, variable or request.
"""

import functools
import importlib
import inspect
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any

from typing_extensions import get_protocol_members

from skillpager.errors import SettingsError, SkillPagerError
from skillpager.settings import BUILT_IN, INDEX_FOLDER, Settings
from skillpager.stores.sql import SqlStore
from skillpager.strategies.registry import FAMILIES
from skillpager.types import Classifier, Encoder, Strategy

STRATEGIES = tuple(FAMILIES)
ENCODERS = (
    *("builtin", "builtin:<folder>", "onnx:<folder>"),
    *("hashing", "sentence-transformers:<model>", "openai:<model>"),
)


@dataclass(frozen=True, slots=True)
class PartKind:
    """Parts that others can write: their name in messages, entry points, Protocol, and the names of ours."""

    noun: str
    group: str
    protocol: type
    known: tuple[str, ...]


STRATEGY = PartKind("strategy", "skillpager.strategies", Strategy, STRATEGIES)
ENCODER = PartKind("encoder", "skillpager.encoders", Encoder, ENCODERS)
CLASSIFIER = PartKind("classifier", "skillpager.classifiers", Classifier, BUILT_IN["classifier"])


def make_encoder(name: str, settings: Settings) -> Encoder:
    """Return the encoder called `name`; weights are loaded on first use.

    Raises:
        SettingsError: The name is unknown, its model is missing, or code of that name is no encoder.
        EncoderError: The folder that it names does not contain an encoder.
    """
    family, _, model = name.partition(":")
    if family == "builtin":
        from skillpager.encoders.builtin import MODEL_FOLDER, BuiltinEncoder

        return BuiltinEncoder(folder=Path(model).expanduser() if model else MODEL_FOLDER)
    if family == "onnx" and model:
        from skillpager.encoders.onnx import OnnxEncoder

        return OnnxEncoder(Path(model).expanduser())
    if name == "hashing":
        from skillpager.encoders.hashing import HashingEncoder

        return HashingEncoder()
    if family == "sentence-transformers" and model:
        from skillpager.encoders.sentence_transformers import SentenceTransformersEncoder

        return SentenceTransformersEncoder(model)
    if family == "openai" and model:
        from skillpager.encoders.openai import MAX_RETRIES, TIMEOUT, OpenAIEncoder
        from skillpager.remote.endpoint import Endpoint

        endpoint = Endpoint(
            model,
            base_url=settings.embed_base_url,
            api_key=settings.embed_api_key,
            key_variable="SKILLPAGER_EMBED_API_KEY",
            purpose="The openai encoder",
            timeout=TIMEOUT,
            max_retries=MAX_RETRIES,
        )
        return OpenAIEncoder(endpoint)
    if family in BUILT_IN["encoder"]:
        raise unknown_part(ENCODER, name)
    encoder: Encoder = load_part(ENCODER, name)
    return encoder


def make_classifier(name: str, settings: Settings) -> Classifier:
    """Return the classifier called `local`, `llm`, `MODULE:NAME` or as an entry point.

    Raises:
        SettingsError: The name is unknown, the LLM's model is not set, or code of that name is no classifier.
        MissingExtraError: Its package is not installed.
    """
    if name == "local":
        from skillpager.classifiers.local import LocalClassifier

        return LocalClassifier()
    if name == "llm":
        from skillpager.classifiers.llm import MAX_RETRIES, LLMClassifier
        from skillpager.remote.chat import chat_endpoint

        return LLMClassifier(
            chat_endpoint(settings, purpose="The llm classifier", max_retries=MAX_RETRIES),
            batch_size=settings.llm_batch_size,
            concurrency=settings.llm_concurrency,
            cache_dir=settings.cache_dir / "llm",
        )
    classifier: Classifier = load_part(CLASSIFIER, name)
    return classifier


def make_strategy(name: str, *, mmr_lambda: float | None = None) -> Strategy:
    """Return the strategy called `name` or `name:ARGUMENT`; models are loaded on first use.

    None leaves `mmr_lambda` to the strategy.

    Raises:
        SettingsError: The name is unknown, its argument is missing or wrong, code of that name is no
            strategy, or `mmr_lambda` is outside 0 to 1.
        MissingExtraError: A package is not installed.
    """
    if mmr_lambda is not None and not 0.0 <= mmr_lambda <= 1.0:
        raise SettingsError(f"mmr_lambda is {mmr_lambda}: it must lie between 0 and 1 (1 = relevance only).")
    base, _, text = name.partition(":")
    if base == "chunk_mmr":
        raise SettingsError(
            "chunk_mmr picks windows of the source instead of nodes: a baseline of the benchmark, not a "
            f"strategy of pages. Use `skillpager bench run --methods {name}`, or another strategy."
        )
    values: dict[str, object] = {} if mmr_lambda is None else {"mmr_lambda": mmr_lambda}
    if base not in FAMILIES:
        own: Strategy = load_part(STRATEGY, name, **values)
        return own
    family = FAMILIES[base]
    if not family.weighs:
        values = {}
    if text and (argument := family.argument) is None:
        raise SettingsError(
            f"The strategy {base} takes no argument such as {text!r}: write {base} alone; max_nodes and "
            "max_tokens set how much a page may hold."
        )
    if text and argument:
        try:
            values[argument.field] = float(text)
        except ValueError as error:
            raise SettingsError(
                f"The strategy {base} takes a number as its {argument.field}, not {text!r}: "
                f"write {base}:{argument.sample}."
            ) from error
    module, _, kind = family.place.partition(":")
    make = getattr(importlib.import_module(f"skillpager.strategies.{module}"), kind)
    try:
        strategy: Strategy = make(**values)
    except ValueError as error:
        raise SettingsError(f"The strategy {name} cannot be used: {error}.") from error
    return strategy


def make_store(settings: Settings, place: Path | str | None = None) -> SqlStore:
    """Return the store in a folder or at a `postgresql://` address, by default of the settings; unopened.

    Raises:
        SettingsError: The address is not valid.
        MissingExtraError: The package of its database is not installed.
    """
    if place is None:
        place = settings.store or settings.cache_dir / INDEX_FOLDER
    if isinstance(place, Path):
        from skillpager.stores.sqlite import SqliteStore

        return SqliteStore(place, max_bytes=settings.max_cache_bytes)
    if "://" not in place:  # before packages are asked for that a folder does not need
        raise SettingsError(
            "The store is given as text that is no address: write postgresql://USER@HOST/DATABASE, or for a "
            "folder its pathlib.Path."
        )
    # its packages take 0.1 s to import
    from skillpager.stores.postgres import PostgresStore

    return PostgresStore(place)


# ---- parts that others write


def unknown_part(kind: PartKind, name: object) -> SettingsError:
    """Return the error for a name that no part has."""
    return SettingsError(f"Unknown {kind.noun} {name!r}: choose one of {', '.join(kind.known)}.")


def load_part(kind: PartKind, name: str, **options: object) -> Any:
    """Return the part that `MODULE:NAME` or an entry point names; this runs code.

    A class or function is called, with those of the options that it has parameters for; any other object is
    the part.

    Raises:
        SettingsError: There is no such module or name, it cannot be imported or made, or it lacks what the
            Protocol of its kind needs.
    """
    find = _import_named if ":" in name else _load_entry_point
    try:
        part = find(kind, name)
        if inspect.isclass(part) or inspect.isroutine(part) or isinstance(part, functools.partial):
            taken = inspect.signature(part).parameters
            part = part(**{option: value for option, value in options.items() if option in taken})
    except SkillPagerError:
        raise
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".rstrip(". :")
        raise SettingsError(f"The {kind.noun} {name} cannot be loaded: {reason}.") from error
    # a class says what its objects have, and reading a property might load a model
    members = sorted(get_protocol_members(kind.protocol))
    if missing := [each for each in members if not hasattr(type(part), each) and not hasattr(part, each)]:
        raise SettingsError(
            f"{name} cannot be used as {kind.noun}: its class {type(part).__name__} has no "
            f"{' and no '.join(missing)}. docs/strategies.md says what it needs."
        )
    return part


def _import_named(kind: PartKind, name: str) -> Any:
    """Return what `MODULE:NAME` names; a module of the current folder is found if no installed one is."""
    place, _, path = name.partition(":")
    if not all(part.isidentifier() for part in (*place.split("."), *path.split("."))):
        raise unknown_part(kind, name)
    folder, package = str(Path.cwd()), place.partition(".")[0]
    importlib.invalidate_caches()  # the file may be new
    if package not in sys.modules and find_spec(package) is None and folder not in sys.path:
        sys.path.append(folder)  # last, so that it hides no installed module
    return attrgetter(path)(importlib.import_module(place))


def _load_entry_point(kind: PartKind, name: str) -> Any:
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    values = {entry.value: entry for entry in entry_points(group=kind.group, name=name)}
    if not values:
        raise unknown_part(kind, name)
    if len(values) > 1:
        raise SettingsError(
            f"Several installed packages have a {kind.noun} {name}: name {' or '.join(values)} instead."
        )
    return values.popitem()[1].load()
