"""LlamaIndex: retrieve the nodes of a skill's page, shorten a document, split it into typed nodes.

pip install ".[llama-index]"
python examples/llama_index_retriever.py
"""

from pathlib import Path

from llama_index.core.schema import Document, NodeWithScore

from skillpager.integrations.llama_index import SkillNodeParser, SkillPagerPostprocessor, SkillPagerRetriever

SKILL = Path(__file__).parent / "skills" / "postgres-backup"
QUERY = "Restore a single table from last night's dump."

for found in SkillPagerRetriever(SKILL, max_tokens=800).retrieve(QUERY):
    known = found.node.metadata
    print(f"{found.score:.2f} {known['id']} {known['type']} {known['heading_path']}")

document = Document(text=(SKILL / "SKILL.md").read_text(encoding="utf-8"))
short = SkillPagerPostprocessor(max_tokens=300).postprocess_nodes(
    [NodeWithScore(node=document)], query_str=QUERY
)
print(f"\n{short[0].node.get_content()}")

nodes = SkillNodeParser().get_nodes_from_documents([document])
print(f"{len(nodes)} nodes; joined they are the document: {''.join(n.text for n in nodes) == document.text}")
