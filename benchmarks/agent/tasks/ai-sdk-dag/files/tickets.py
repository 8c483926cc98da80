import os
import airflow_ai_sdk as ai_sdk
from airflow.decorators import dag, task
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIModel

model = OpenAIModel("llama3.1-8b", base_url="https://llm.corp.example/v1", api_key=os.environ["LLM_KEY"])


def find_ticket(ticket: str) -> str:
    """Return a ticket."""
    return ticket


class Verdict(ai_sdk.BaseModel):
    team: str


helper = Agent(model, system_prompt="You research tickets.", tools=[find_ticket])


@dag(schedule=None)
def tickets():
    @task.agent(agent=helper)
    def research(ticket: str) -> str:
        return ticket

    @task.llm(model=model, system_prompt="Choose a team.", output_type=Verdict)
    def decide(notes: str) -> str:
        return notes

    decide(research("T-1"))


tickets()
