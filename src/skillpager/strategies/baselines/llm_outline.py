"""A language model picks nodes from the skill's outline, over any OpenAI-compatible endpoint."""

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np

from skillpager.errors import SettingsError, StrategyError
from skillpager.remote.chat import Message, chat_json
from skillpager.remote.endpoint import Endpoint, EndpointError
from skillpager.strategies.baselines.llm_outline_prompt import (
    ANSWER_SCHEMA,
    SCHEMA_NAME,
    SYSTEM_PROMPT,
    outline_message,
    read_choice,
)
from skillpager.strategies.budget import resolve
from skillpager.strategies.scoring import ScoredPicker
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, TokenMeter

TIMEOUT = 120.0
# someone waits for the page
MAX_RETRIES = 3
KEY_VARIABLE = "SKILLPAGER_LLM_API_KEY"


class ModelSettings(Protocol):
    """The settings of a chat model; `skillpager.settings.Settings` has them."""

    @property
    def llm_model(self) -> str | None:
        """Name of the model."""

    @property
    def llm_base_url(self) -> str | None:
        """Where the API begins; None for OpenAI's own."""

    @property
    def llm_api_key(self) -> str | None:
        """The key; None where the endpoint wants none."""


class LLMOutline:
    """Nodes in the order of importance that a chat model gives them. Safe for many threads.

    The model sees the outline alone: ids, types, tokens, headings and the beginning of each text. What
    it does not name is left out, whatever is left of the budget. Each selection is one request, at
    temperature 0 where the endpoint allows it; as deterministic as the model is.

    Args:
        model: Name of the model, as the endpoint knows it.
        base_url: Where the API begins, such as `http://localhost:11434/v1`; None for OpenAI's own.
        api_key: The key; None where the endpoint wants none. No environment variable is read.
        timeout: Seconds without an answer after which a request has failed.
        max_retries: Most repetitions of one request, bad answers included; the waits double from 1 s.
        sleep: Waits so many seconds before a repetition.

    Attributes:
        name: `llm_outline`.

    Raises:
        SettingsError: The model is empty, or `base_url` or `api_key` cannot be used.
    """

    name = "llm_outline"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._endpoint = Endpoint(
            model,
            base_url=base_url,
            api_key=api_key,
            key_variable=KEY_VARIABLE,
            purpose="The strategy llm_outline",
            timeout=timeout,
            max_retries=max_retries,
            sleep=sleep,
        )

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Self:
        """Return the strategy with the model of the settings; nothing is sent.

        Raises:
            SettingsError: No model is set, or endpoint or key cannot be used.
        """
        if not settings.llm_model:
            raise SettingsError(
                "The strategy llm_outline needs a model: set SKILLPAGER_LLM_MODEL (and "
                "SKILLPAGER_LLM_BASE_URL, SKILLPAGER_LLM_API_KEY for another endpoint than OpenAI's)."
            )
        return cls(settings.llm_model, base_url=settings.llm_base_url, api_key=settings.llm_api_key)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return what the model names, as far as it fits; the marginal value is 1 / rank, 0 for the rest.

        Raises:
            StrategyError: The endpoint gives no usable answer.
            MissingExtraError: The `httpx` package is not installed.
        """
        chosen = self._choose(index, query.text, resolve(budget, len(index.nodes))) if index.nodes else []
        scores: FloatArray = np.zeros(len(index.nodes), dtype=np.float32)
        scores[chosen] = 1 / np.arange(1, len(chosen) + 1)
        picker = ScoredPicker(index, query, scores, budget=budget, meter=meter)
        picker.admit_in_order(chosen)
        return picker.selection(self.name, reason=SkipReason.NOT_CHOSEN)

    def _choose(self, index: SkillIndex, query: str, budget: Budget) -> list[int]:
        """Return the ordinals that the model names, the most important first."""
        messages = [Message("system", SYSTEM_PROMPT), Message("user", outline_message(index, query, budget))]
        try:
            chosen, _ = chat_json(
                self._endpoint,
                messages,
                schema=ANSWER_SCHEMA,
                schema_name=SCHEMA_NAME,
                read=lambda data: read_choice(data, index),
            )
        except EndpointError as error:
            raise StrategyError(
                f'The model "{self._endpoint.model}" could not choose from the outline of '
                f"{index.skill.name}: {error}."
            ) from None
        return chosen
