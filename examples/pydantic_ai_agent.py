"""pydantic-ai: an agent loads a page of a skill, then reads omitted nodes.

A scripted model replaces a real one, so that the example runs offline; with a key, name a model instead:
`Agent("openai:gpt-5", tools=...)`.

pip install ".[pydantic-ai]"
python examples/pydantic_ai_agent.py
"""

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from skillpager.integrations.pydantic_ai import skill_tools

SKILLS = Path(__file__).parent / "skills"
QUERY = "Restore a single table from last night's dump."

CALLS = [
    ToolCallPart("list_skills", {}),
    ToolCallPart("load_skill", {"name": "postgres-backup", "query": QUERY}),
    ToolCallPart("read_skill_nodes", {"name": "postgres-backup", "nodes": "n49-n52"}),
]


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Return the next call of the script, or the final message."""
    done = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    return ModelResponse(parts=[CALLS[done] if done < len(CALLS) else TextPart("I know what to do.")])


agent = Agent(FunctionModel(answer), tools=skill_tools([SKILLS], max_tokens=800))
result = agent.run_sync(QUERY)
for message in result.all_messages():
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            print(f"--- {part.tool_name}\n{part.content}\n")
print(result.output)
