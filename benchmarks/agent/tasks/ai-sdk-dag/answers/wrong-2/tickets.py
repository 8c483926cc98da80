from airflow.sdk import dag, task
from pydantic import BaseModel
from pydantic_ai.toolsets import FunctionToolset


def find_ticket(ticket: str) -> str:
    """Return a ticket."""
    return ticket


class Verdict(BaseModel):
    team: str


@dag(schedule=None)
def tickets():
    @task.agent(
        conn_id="pydanticai_cortex",
        system_prompt="You research tickets.",
        toolsets=[FunctionToolset(tools=[find_ticket])],
    )
    def research(ticket: str) -> str:
        return ticket

    @task.llm(conn_id="pydanticai_cortex", system_prompt="Choose a team.", output_type=Verdict, serialize_output=True)
    def decide(notes: str) -> str:
        return notes

    decide(research("T-1"))


tickets()
