"""Haystack: a pipeline that puts the page of a skill into a prompt.

pip install ".[haystack]"
python examples/haystack_pipeline.py
"""

from pathlib import Path

from haystack import Pipeline
from haystack.components.builders import PromptBuilder

from skillpager.integrations.haystack import SkillPagerRetriever

SKILLS = Path(__file__).parent / "skills"
QUERY = "Restore a single table from last night's dump."

pipeline = Pipeline()
pipeline.add_component("pager", SkillPagerRetriever(SKILLS / "postgres-backup", as_page=True, max_tokens=800))
pipeline.add_component(
    "prompt",
    PromptBuilder(
        "{{ documents[0].content }}\n\nTask: {{ query }}", required_variables=["documents", "query"]
    ),
)
pipeline.connect("pager.documents", "prompt.documents")
print(pipeline.run({"pager": {"query": QUERY}, "prompt": {"query": QUERY}})["prompt"]["prompt"])

again = Pipeline.loads(pipeline.dumps(), allowed_modules=["skillpager.*"])
print(f"\nwritten and read, it is the same pipeline: {again == pipeline}")
