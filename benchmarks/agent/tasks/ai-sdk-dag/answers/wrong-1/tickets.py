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
        llm_conn_id="pydanticai_cortex",
        system_prompt="You research tickets.",
        agent_params={"tools": [find_ticket]},
    )
    def research(ticket: str) -> str:
        return ticket

    @task.llm(llm_conn_id="pydanticai_cortex", system_prompt="Choose a team.", output_type=Verdict)
    def decide(notes: str) -> str:
        return notes

    decide(research("T-1"))


tickets()
