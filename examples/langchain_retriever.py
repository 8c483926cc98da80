"""LangChain: retrieve the nodes of a skill's page, then compress a document from another retriever.

pip install ".[langchain]"
python examples/langchain_retriever.py
"""

from pathlib import Path

from langchain_core.documents import Document

from skillpager.integrations.langchain import SkillPagerCompressor, SkillPagerRetriever

SKILL = Path(__file__).parent / "skills" / "postgres-backup"
QUERY = "Restore a single table from last night's dump."

retriever = SkillPagerRetriever(skill=SKILL, max_tokens=800)
for document in retriever.invoke(QUERY):
    known = document.metadata
    print(f"{known['id']} {known['type']} L{known['start_line']}-{known['end_line']} {known['heading_path']}")

compressor = SkillPagerCompressor(max_tokens=300)
found = [Document((SKILL / "SKILL.md").read_text(encoding="utf-8"), metadata={"source": "wiki"})]
for document in compressor.compress_documents(found, QUERY):
    print(f"\n{document.metadata['skillpager']['tokens']} tokens from {document.metadata['source']}:")
    print(document.page_content)
