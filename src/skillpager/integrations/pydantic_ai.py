"""pydantic-ai: tools that let an agent list, load and read skills."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Unpack

from skillpager.errors import require_extra

require_extra("pydantic_ai", extra="pydantic-ai", purpose="skillpager.integrations.pydantic_ai")

from pydantic_ai import ModelRetry, Tool

from skillpager.integrations.tools import MODEL_MISTAKES, SkillTools
from skillpager.pager import SkillPager
from skillpager.types import PageOptions

# wrong names or addresses before the run ends; pydantic-ai's default is 1
MAX_RETRIES = 3


def skill_tools(
    folders: Sequence[str | Path] | None = None,
    *,
    pager: SkillPager | None = None,
    **options: Unpack[PageOptions],
) -> list[Tool[object]]:
    """Return the tools `list_skills`, `load_skill` and `read_skill_nodes` for `Agent(tools=...)`.

    An unknown name or address is reported to the model, which can try again; other errors end the run.
    Arguments and errors are those of `skillpager.integrations.tools.SkillTools`.
    """
    tools = SkillTools(folders, pager, options)
    return [
        Tool(_retrying(function), takes_ctx=False, max_retries=MAX_RETRIES) for function in tools.functions()
    ]


def _retrying(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> str:
        try:
            return function(*args, **kwargs)
        except MODEL_MISTAKES as error:
            raise ModelRetry(str(error)) from error

    return call
