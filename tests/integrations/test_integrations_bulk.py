"""Adapters that index many skills from any source."""

from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest
from haystack import Pipeline
from llama_index.core.schema import MetadataMode

from bulk_parts import built, telling_pager, write_skills
from skillpager.errors import SettingsError
from skillpager.integrations.haystack import SkillIndexer
from skillpager.integrations.llama_index import SkillNodeParser, SkillReader


def test_haystack_indexes_an_archive_and_tells_what_failed(tmp_path: Path) -> None:
    skills = write_skills(tmp_path / "skills", 3)
    archive = tmp_path / "skills.zip"
    with ZipFile(archive, "w") as opened:
        for path in sorted(skills.rglob("SKILL.md")):
            opened.write(path, path.relative_to(skills))
    with closing(telling_pager(tmp_path, tmp_path / "store", seconds=0.0)) as pager:
        pipeline = Pipeline()
        pipeline.add_component("index", SkillIndexer(jobs=2, pager=pager))
        done = pipeline.run({"index": {"sources": [str(archive), str(tmp_path / "none")]}})["index"]
        assert [document.meta["name"] for document in done["documents"]] == [
            f"skill-{n:03}" for n in range(3)
        ]
        assert done["documents"][0].content == (skills / "skill-000" / "SKILL.md").read_text()
        assert list(done["failed"]) == [str(tmp_path / "none")]
        assert {entry.key for entry in pager.store.entries()} == {each.id for each in done["documents"]}
        with pytest.raises(SettingsError, match="own pager"):
            pipeline.to_dict()
    component = SkillIndexer(jobs=3, ray="local")
    again = SkillIndexer.from_dict(component.to_dict())
    assert (again.options.jobs, again.options.ray) == (3, "local")


def test_the_node_parser_of_llama_index_finds_what_its_reader_has_indexed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    skills = write_skills(tmp_path / "skills", 3)
    with closing(telling_pager(tmp_path, tmp_path / "store", seconds=0.0)) as pager:
        documents = SkillReader(pager=pager).load_data([skills, tmp_path / "none"])
        assert [document.metadata["name"] for document in documents] == [f"skill-{n:03}" for n in range(3)]
        assert "none" in caplog.text
        assert len(built(tmp_path)) == 3
        nodes = SkillNodeParser(pager=pager).get_nodes_from_documents(documents)
        assert len(built(tmp_path)) == 3
        text = documents[0].get_content(MetadataMode.NONE)
        assert (
            "".join(
                node.get_content(MetadataMode.NONE) for node in nodes if node.ref_doc_id == documents[0].id_
            )
            == text
        )
