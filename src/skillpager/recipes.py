"""Names to parts: which encoder, classifier and strategy a setting means, and the cache key."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

from skillpager.errors import SettingsError
from skillpager.settings import Settings
from skillpager.types import Classifier, Encoder, Recipe, Skill, Strategy


@dataclass(frozen=True, slots=True)
class _Family:
    """Strategies of one name.

    Attributes:
        place: Module below `skillpager.strategies`, and its class.
        weighs: Whether it takes `mmr_lambda`.
        argument: The field that `name:ARGUMENT` sets, and what makes its value of the text.
        required: Whether the argument must be given.
        settings: Whether the class is made by its method `from_settings`, which takes the settings first.
        local: Whether it needs no model beyond the shipped ones, so that a project file may name it.
    """

    place: str
    weighs: bool = False
    argument: tuple[str, Callable[[str], object]] | None = None
    required: bool = False
    settings: bool = False
    local: bool = True


_STRATEGIES = {
    "mmr": _Family("mmr:Mmr", weighs=True),
    "topk": _Family("topk:TopK"),
    "full": _Family("full:Full"),
    # baselines and ablations of the paper
    "greedy_graph": _Family("greedy_graph:GreedyGraph", argument=("threshold", float)),
    "topk_dependency": _Family("topk_dependency:TopKDependency"),
    "chunk_mmr": _Family("chunk_mmr:ChunkMmr", weighs=True, argument=("chunk_tokens", int)),
    "mmr_graph": _Family("mmr_graph:MmrGraph", weighs=True),
    "exec_only": _Family("exec_only:ExecOnly", weighs=True),
    "concept_only": _Family("concept_only:ConceptOnly", weighs=True),
    "density": _Family("density:Density", weighs=True, argument=("threshold", float)),
    # what users would compare with
    "head": _Family("head:Head"),
    "sections": _Family("sections:Sections"),
    "bm25": _Family("bm25:Bm25"),
    "hybrid": _Family("hybrid:Hybrid"),
    "dpp": _Family("dpp:Dpp", argument=("diversity", float)),
    "msd": _Family("msd:Msd", argument=("diversity", float)),
    "cover": _Family("cover:Cover", argument=("diversity", float)),
    # models of others
    "reranker": _Family("reranker:Reranker", argument=("model", str), required=True, local=False),
    "llmlingua2": _Family("llmlingua2:LLMLingua2", argument=("model", str), required=True, local=False),
    "openprovence": _Family("openprovence:OpenProvence", argument=("model", str), required=True, local=False),
    "llm_outline": _Family("llm_outline:LLMOutline", settings=True, local=False),
}
STRATEGIES = tuple(_STRATEGIES)
ENCODERS = ("builtin", "hashing", "sentence-transformers:<model>", "openai:<model>")
CLASSIFIERS = ("local", "llm")


def make_encoder(name: str, settings: Settings) -> Encoder:
    """Return the encoder that `name` means; weights are loaded on first use.

    Raises:
        SettingsError: The name is unknown, or its model is missing.
        MissingExtraError: Its package is not installed.
    """
    family, _, model = name.partition(":")
    if name == "builtin":
        from skillpager.encoders.builtin import BuiltinEncoder

        return BuiltinEncoder()
    if name == "hashing":
        from skillpager.encoders.hashing import HashingEncoder

        return HashingEncoder()
    if family == "sentence-transformers" and model:
        from skillpager.encoders.sentence_transformers import SentenceTransformersEncoder

        return SentenceTransformersEncoder(model)
    if family == "openai" and model:
        from skillpager.encoders.openai import OpenAIEncoder

        return OpenAIEncoder(model, base_url=settings.embed_base_url, api_key=settings.embed_api_key)
    raise SettingsError(f"Unknown encoder {name!r}: choose one of {', '.join(ENCODERS)}.")


def make_classifier(
    name: str, settings: Settings, *, progress: Callable[[int, int], None] | None = None
) -> Classifier:
    """Return the classifier that `name` means.

    Args:
        name: `local` or `llm`.
        settings: Endpoint, key and model of `llm`, and where its paid answers are kept.
        progress: Called by `llm` with the batches done and all batches of a skill.

    Raises:
        SettingsError: The name is unknown, or the LLM's model is not set.
        MissingExtraError: Its package is not installed.
    """
    if name == "local":
        from skillpager.classifiers.local import LocalClassifier

        return LocalClassifier()
    if name == "llm":
        from skillpager.classifiers.llm import LLMClassifier

        if not settings.llm_model:
            raise SettingsError(
                "The llm classifier needs a model: set SKILLPAGER_LLM_MODEL (and SKILLPAGER_LLM_BASE_URL, "
                "SKILLPAGER_LLM_API_KEY for another endpoint than OpenAI's)."
            )
        return LLMClassifier(
            settings.llm_model,
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key,
            cache_dir=settings.cache_dir / "llm",
            progress=progress,
        )
    raise SettingsError(f"Unknown classifier {name!r}: choose one of {', '.join(CLASSIFIERS)}.")


def make_strategy(name: str, settings: Settings, *, mmr_lambda: float) -> Strategy:
    """Return the strategy that `name`, or `name:ARGUMENT`, means; models are loaded on first use.

    Raises:
        SettingsError: The name is unknown, its argument is missing or wrong, or `mmr_lambda`
            is outside 0 to 1.
        MissingExtraError: A package is not installed.
    """
    if not 0.0 <= mmr_lambda <= 1.0:
        raise SettingsError(f"mmr_lambda is {mmr_lambda}: it must lie between 0 and 1 (1 = relevance only).")
    base, _, argument = name.partition(":")
    if base not in _STRATEGIES:
        raise SettingsError(f"Unknown strategy {name!r}: choose one of {', '.join(STRATEGIES)}.")
    family = _STRATEGIES[base]
    values: dict[str, object] = {"mmr_lambda": mmr_lambda} if family.weighs else {}
    values |= _argument_of(base, family, argument)
    module, _, kind = family.place.partition(":")
    made = getattr(import_module(f"skillpager.strategies.{module}"), kind)
    try:
        strategy: Strategy = made.from_settings(settings, **values) if family.settings else made(**values)
    except ValueError as error:
        raise SettingsError(f"Strategy {name!r} cannot be made: {error}.") from error
    return strategy


def _argument_of(base: str, family: _Family, text: str) -> dict[str, object]:
    """Return the keyword that `base:text` gives its strategy."""
    if not text:
        if family.required and family.argument:
            raise SettingsError(
                f"Strategy {base} needs a {family.argument[0]}: write {base}:{family.argument[0].upper()}."
            )
        return {}
    if family.argument is None:
        raise SettingsError(f"Strategy {base} takes no argument: write {base}, not {base}:{text}.")
    field, convert = family.argument
    try:
        return {field: convert(text)}
    except ValueError as error:
        raise SettingsError(f"Strategy {base}:{text}: {text!r} is no {field}: {error}.") from error


def index_key(skill: Skill, recipe: Recipe) -> str:
    """Return the cache key: SHA-256 over the files' paths and digests and the recipe, hexadecimal."""
    files = [[file.path, file.digest] for file in skill.files]
    content = json.dumps([skill.name, files, asdict(recipe)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def cache_folder(settings: Settings) -> Path:
    """Return the folder of the index store."""
    return settings.cache_dir / "indexes"
