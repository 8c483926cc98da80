"""OpenAI Agents SDK: tools with which an agent lists, loads and reads skills."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from skillpager.errors import require_extra

require_extra("agents", extra="openai-agents", purpose="skillpager.integrations.openai_agents")

from agents import FunctionTool, RunContextWrapper, function_tool

from skillpager.integrations.options import page_fields
from skillpager.integrations.tools import MODEL_MISTAKES, SkillTools
from skillpager.pager import SkillPager
from skillpager.types import PageOptions


def skill_tools(
    folders: Sequence[str | Path] | None = None,
    *,
    pager: SkillPager | None = None,
    **options: Unpack[PageOptions],
) -> list[FunctionTool]:
    """Return the tools `list_skills`, `load_skill` and `read_skill_nodes` for `Agent(tools=...)`.

    An unknown name or address is reported to the model, which can try again; other errors end the run.

    Args:
        folders: Where skills are looked for; None for those of the settings and the conventional ones.
        pager: Makes the pages; None for the one that all adapters share.
        **options: Keyword arguments of `SkillPager.page` but `known`; a strategy by its name.

    Raises:
        ValueError: An option is unknown or of a wrong type.
    """
    tools = SkillTools(folders, page_fields(pager, options))
    return [function_tool(function, failure_error_function=_tell_model) for function in tools.functions()]


def _tell_model(context: RunContextWrapper[Any], error: Exception) -> str:
    if isinstance(error, MODEL_MISTAKES):
        return str(error)
    raise error
