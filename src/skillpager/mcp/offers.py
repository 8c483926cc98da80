"""Skills for hosts in which a user chooses one: each is a prompt and a resource, with completion of names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import quote, unquote

from anyio.to_thread import run_sync
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from skillpager.errors import SkillPagerError
from skillpager.library import FoundSkill, Library
from skillpager.mcp.callers import RequestContext, caller_of
from skillpager.mcp.memory import Memory
from skillpager.mcp.options import ToolOptions
from skillpager.mcp.replies import ERROR_CHARS
from skillpager.mcp.tools import SkillTools
from skillpager.output.formatting import snippet

# prompts or resources in one answer, and names that complete one
PAGE_SKILLS = 200
MAX_COMPLETIONS = 100
DESCRIPTION_CHARS = 300
SCHEME = "skill://"
MARKDOWN = "text/markdown"
# argument of a prompt
TASK = "task"


class Offers:
    """The skills of a library as prompts and resources; its methods are handlers of the SDK's requests."""

    def __init__(self, library: Library, tools: SkillTools, options: ToolOptions) -> None:
        self._library = library
        self._tools = tools
        self._options = options

    async def list_prompts(
        self, _: RequestContext, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """Return a part of the skills as prompts."""
        skills, following = _part(await run_sync(self._library.skills), params)
        return ListPromptsResult(prompts=[_prompt(skill) for skill in skills], next_cursor=following)

    async def get_prompt(self, context: RequestContext, params: GetPromptRequestParams) -> GetPromptResult:
        """Return the page of a skill for the task that the user names; without one as `load_skill` does."""
        asked = {"name": params.name, "query": (params.arguments or {}).get(TASK)}
        text = await run_sync(partial(self._text, asked, context, by_user=True))
        # from now on the model may page it, too
        caller_of(context, self._options).memory.start(params.name)
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(messages=[message])

    async def list_resources(
        self, _: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """Return a part of the skills as resources; hosts let their model read these, too."""
        skills, following = _part(await run_sync(self._for_model), params)
        return ListResourcesResult(resources=[_resource(skill) for skill in skills], next_cursor=following)

    async def list_templates(
        self, _: RequestContext, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Return the form of a resource's address."""
        template = ResourceTemplate(name="skill", uri_template=f"{SCHEME}{{name}}", mime_type=MARKDOWN)
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: RequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Return a whole skill."""
        if not params.uri.startswith(SCHEME):
            raise MCPError(INVALID_PARAMS, f"{params.uri[:80]!r} is no skill: the form is {SCHEME}NAME.")
        asked = {"name": unquote(params.uri.removeprefix(SCHEME)), "mode": "full"}
        text = await run_sync(self._text, asked, context)
        contents = TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=text)
        return ReadResourceResult(contents=[contents])

    async def complete(self, _: RequestContext, params: CompleteRequestParams) -> CompleteResult:
        """Return the names that begin with what the user has typed."""
        skills = await run_sync(self._for_model) if params.argument.name == "name" else []
        names = [skill.name for skill in skills if skill.name.startswith(params.argument.value)]
        shown, more = names[:MAX_COMPLETIONS], len(names) > MAX_COMPLETIONS
        return CompleteResult(completion=Completion(values=shown, total=len(names), has_more=more))

    def _for_model(self) -> list[FoundSkill]:
        return self._library.skills(for_model=True)

    def _text(self, asked: Mapping[str, object], context: RequestContext, *, by_user: bool = False) -> str:
        """Return the text that `load_skill` answers; errors are those of the protocol.

        The session's memory has no part in it: hosts show prompts and resources where tools do not see them.
        """
        caller = replace(caller_of(context, self._options), memory=Memory(), by_user=by_user)
        try:
            return self._tools.call("load_skill", asked, caller).text
        except SkillPagerError as error:
            raise MCPError(INVALID_PARAMS, snippet(str(error), ERROR_CHARS)) from error


def _part(
    skills: Sequence[FoundSkill], params: PaginatedRequestParams | None
) -> tuple[Sequence[FoundSkill], str | None]:
    """Return the skills of one answer to a list request, and the cursor of the next: a name."""
    cursor = (params.cursor if params else None) or ""
    rest = [skill for skill in skills if skill.name >= cursor]
    return rest[:PAGE_SKILLS], rest[PAGE_SKILLS].name if len(rest) > PAGE_SKILLS else None


def _prompt(skill: FoundSkill) -> Prompt:
    """Return a skill as a prompt, which a user starts, as a command in many hosts."""
    task = PromptArgument(name=TASK, description="What you are about to do, in a sentence.", required=False)
    description = snippet(skill.description, DESCRIPTION_CHARS)
    return Prompt(name=skill.name, description=description, arguments=[task])


def _resource(skill: FoundSkill) -> Resource:
    uri, description = SCHEME + quote(skill.name, safe=""), snippet(skill.description, DESCRIPTION_CHARS)
    return Resource(uri=uri, name=skill.name, description=description, mime_type=MARKDOWN)
