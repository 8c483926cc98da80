"""OpenAI Agents SDK: tools that let an agent list, load and read skills."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from skillpager.errors import require_extra

require_extra("agents", extra="openai-agents", purpose="skillpager.integrations.openai_agents")

from agents import FunctionTool, RunContextWrapper, function_tool

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
    Arguments and errors are those of `skillpager.integrations.tools.SkillTools`.
    """
    tools = SkillTools(folders, pager, options)
    return [function_tool(function, failure_error_function=_report) for function in tools.functions()]


def _report(context: RunContextWrapper[Any], error: Exception) -> str:
    if isinstance(error, MODEL_MISTAKES):
        return str(error)
    raise error
