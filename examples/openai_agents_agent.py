"""OpenAI Agents SDK: an agent loads a page of a skill, then reads omitted nodes.

A scripted model replaces a real one, so that the example runs offline; with a key, leave `model` out.

pip install ".[openai-agents]"
python examples/openai_agents_agent.py
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, TResponseInputItem, Usage, set_tracing_disabled
from agents.items import ToolCallOutputItem, TResponseStreamEvent
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from skillpager.integrations.openai_agents import skill_tools

SKILLS = Path(__file__).parent / "skills"
QUERY = "Restore a single table from last night's dump."

CALLS = [
    ("list_skills", {}),
    ("load_skill", {"name": "postgres-backup", "query": QUERY}),
    ("read_skill_nodes", {"name": "postgres-backup", "nodes": "n49-n52"}),
]


class ScriptedModel(Model):
    """A model that makes the calls of the script, then ends."""

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """Return the next call, or the final message."""
        items = [] if isinstance(input, str) else input
        done = sum(item.get("type") == "function_call_output" for item in items)
        return ModelResponse(output=[self._turn(done)], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Raise an error: the run below does not stream."""
        raise NotImplementedError

    def _turn(self, done: int) -> ResponseFunctionToolCall | ResponseOutputMessage:
        if done < len(CALLS):
            name, arguments = CALLS[done]
            return ResponseFunctionToolCall(
                name=name, arguments=json.dumps(arguments), call_id=f"call-{done}", type="function_call"
            )
        text = ResponseOutputText(text="I know what to do.", annotations=[], type="output_text")
        return ResponseOutputMessage(
            id="message", content=[text], role="assistant", status="completed", type="message"
        )


set_tracing_disabled(True)  # traces would go to OpenAI
agent = Agent(name="operator", tools=skill_tools([SKILLS], max_tokens=800), model=ScriptedModel())
result = Runner.run_sync(agent, QUERY)
for item in result.new_items:
    if isinstance(item, ToolCallOutputItem):
        print(f"---\n{item.output}\n")
print(result.final_output)
