"""Factories: make the encoder, classifier or strategy that a setting names."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from skillpager.errors import SettingsError
from skillpager.settings import Settings
from skillpager.strategies.registry import FAMILIES
from skillpager.types import Classification, Classifier, Encoder, Fragment, Strategy

STRATEGIES = tuple(FAMILIES)
ENCODERS = (
    *("builtin", "builtin:<folder>", "onnx:<folder>"),
    *("hashing", "sentence-transformers:<model>", "openai:<model>"),
)
CLASSIFIERS = ("local", "llm")


def make_encoder(name: str, settings: Settings) -> Encoder:
    """Return the encoder called `name`; weights are loaded on first use.

    Raises:
        SettingsError: The name is unknown, or its model is missing.
        EncoderError: The folder of `builtin:<folder>` or `onnx:<folder>` does not contain an encoder.
        MissingExtraError: Its package is not installed.
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
        from skillpager.encoders.openai import OpenAIEncoder

        return OpenAIEncoder(model, base_url=settings.embed_base_url, api_key=settings.embed_api_key)
    raise SettingsError(f"Unknown encoder {name!r}: choose one of {', '.join(ENCODERS)}.")


def make_classifier(
    name: str,
    settings: Settings,
    *,
    progress: Callable[[int, int], None] | None = None,
    sleep: Callable[[float], object] | None = None,
) -> Classifier:
    """Return the classifier called `name`.

    Args:
        name: `local` or `llm`.
        settings: Endpoint, key, model and limits of `llm`, and the folder where its paid answers are saved.
        progress: Called by `llm` with the number of finished batches and of all batches of a skill.
        sleep: Waits the given seconds before `llm` repeats a request; None for a wait that an interruption
            ends.

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
            batch_size=settings.llm_batch_size,
            concurrency=settings.llm_concurrency,
            timeout=settings.llm_timeout,
            fallback=type_locally,
            cache_dir=settings.cache_dir / "llm",
            progress=progress,
            sleep=sleep,
        )
    raise SettingsError(f"Unknown classifier {name!r}: choose one of {', '.join(CLASSIFIERS)}.")


def type_locally(fragments: Sequence[Fragment]) -> list[Classification]:
    """Return the types that the shipped classifier gives all fragments of a skill."""
    from skillpager.classifiers.local import LocalClassifier
    from skillpager.encoders.builtin import BuiltinEncoder

    return LocalClassifier().classify(fragments, BuiltinEncoder().encode_in_context(fragments))


def make_strategy(name: str, settings: Settings, *, mmr_lambda: float) -> Strategy:
    """Return the strategy called `name` or `name:ARGUMENT`; models are loaded on first use.

    Raises:
        SettingsError: The name is unknown, its argument is missing or wrong, or `mmr_lambda`
            is outside 0 to 1.
        MissingExtraError: A package is not installed.
    """
    if not 0.0 <= mmr_lambda <= 1.0:
        raise SettingsError(f"mmr_lambda is {mmr_lambda}: it must lie between 0 and 1 (1 = relevance only).")
    base, _, text = name.partition(":")
    if base == "chunk_mmr":
        raise SettingsError(
            "chunk_mmr picks windows of the source instead of nodes: a baseline of the benchmark, not a "
            f"strategy of pages. Use `skillpager bench run --methods {name}`, or another strategy."
        )
    if base not in FAMILIES:
        raise SettingsError(f"Unknown strategy {name!r}: choose one of {', '.join(STRATEGIES)}.")
    family = FAMILIES[base]
    argument = family.argument
    values: dict[str, object] = {"mmr_lambda": mmr_lambda} if family.weighs else {}
    if argument is None:
        if text:
            raise SettingsError(
                f"The strategy {base} takes no argument such as {text!r}: write {base} alone; max_nodes and "
                "max_tokens set how much a page may hold."
            )
    else:
        sample = f"{base}:{argument.sample or argument.field.upper()}"
        if argument.required and not text:
            raise SettingsError(f"The strategy {base} needs {argument.kind}: write {sample}.")
        try:
            values |= {argument.field: argument.read(text)} if text else {}
        except ValueError as error:
            raise SettingsError(
                f"The strategy {base} takes {argument.kind} as its {argument.field}, not {text!r}: "
                f"write {sample}."
            ) from error
    module, _, kind = family.place.partition(":")
    make = getattr(import_module(f"skillpager.strategies.{module}"), kind)
    try:
        strategy: Strategy = make.from_settings(settings, **values) if family.settings else make(**values)
    except ValueError as error:
        raise SettingsError(f"The strategy {name} cannot be used: {error}.") from error
    return strategy


def cache_folder(settings: Settings) -> Path:
    """Return the folder of the index store."""
    return settings.cache_dir / "indexes"
