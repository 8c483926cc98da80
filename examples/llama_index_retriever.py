"""LlamaIndex: retrieve the nodes of a skill's page.

pip install ".[llama-index]"
python examples/llama_index_retriever.py
"""

from pathlib import Path

from skillpager.integrations.llama_index import SkillPagerRetriever

SKILL = Path(__file__).parent / "skills" / "postgres-backup"
QUERY = "Restore a single table from last night's dump."

for found in SkillPagerRetriever(SKILL, max_tokens=800).retrieve(QUERY):
    known = found.node.metadata
    print(f"{found.score:.2f} {known['id']} {known['type']} {known['heading_path']}")
