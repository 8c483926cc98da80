"""LangChain: retrieve the nodes of a skill's page.

pip install ".[langchain]"
python examples/langchain_retriever.py
"""

from pathlib import Path

from skillpager.integrations.langchain import SkillPagerRetriever

SKILL = Path(__file__).parent / "skills" / "postgres-backup"
QUERY = "Restore a single table from last night's dump."

retriever = SkillPagerRetriever(skill=SKILL, max_tokens=800)
for document in retriever.invoke(QUERY):
    known = document.metadata
    print(f"{known['id']} {known['type']} L{known['start_line']}-{known['end_line']} {known['heading_path']}")
