"""The check of a library: each kind of finding, where it is told, and what is no finding."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from conftest import SAMPLES
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.library.checks import OVERLAP, check_library, overlap_findings
from skillpager.library.skill_checks import CheckedSkill, Finding, Kind, Severity
from skillpager.types import Skill

DESCRIPTION = "Restore PostgreSQL dumps. Use when a table was dropped."


def skill(
    folder: Path,
    body: str | None = None,
    *,
    name: str | None = None,
    description: str | None = DESCRIPTION,
    more: str = "license: MIT\n",
) -> Path:
    """Write a skill, by default one without a finding; return its SKILL.md."""
    folder.mkdir(parents=True)
    fields = f"name: {folder.name if name is None else name}\n"
    fields += "" if description is None else f"description: {description}\n"
    file = folder / "SKILL.md"
    text = f"Text of {folder.name}.\n" if body is None else body
    file.write_text(f"---\n{fields}{more}---\n\n{text}", encoding="utf-8")
    return file


def check(folder: Path, **options: object) -> list[Finding]:
    """Return the findings about the skills in a folder."""
    return list(check_library([folder], **options).findings)  # type: ignore[arg-type]


def the(folder: Path, **options: object) -> Finding:
    """Return the only finding about the skills in a folder."""
    (finding,) = check(folder, **options)
    return finding


def test_a_good_library_has_no_findings(tmp_path: Path) -> None:
    skill(tmp_path / "restore-dumps")
    skill(tmp_path / "lint-css", description="Find unused CSS rules. Use before a release of a web page.")
    checked = check_library([tmp_path])
    assert (checked.skills, checked.findings, checked.errors, checked.counts) == (2, (), 0, {})


FIELDS = f"description: {DESCRIPTION}\nlicense: MIT\n"


@pytest.mark.parametrize(
    ("front_matter", "kind", "line", "value", "remedy"),
    [
        (f"name: Restore Dumps\n{FIELDS}", Kind.NAME, 2, "Restore Dumps", "write `name: restore-dumps`"),
        (f"name: restore--dumps\n{FIELDS}", Kind.NAME, 2, "restore--dumps", "write `name: restore-dumps`"),
        (f"name: {'x' * 65}\n{FIELDS}", Kind.NAME, 2, "x" * 65, f"write `name: {'x' * 64}`"),
        (f"name: 备份\n{FIELDS}", Kind.NAME, 2, "备份", "write `name: a-name`"),
        (FIELDS, Kind.NAME, 1, "", "add `name: a`"),
        (f"name: b\n{FIELDS}", Kind.FOLDER, 2, "b", "rename one of the two"),
        ("name: a\nlicense: MIT\n", Kind.DESCRIPTION, 1, "", "say what the skill does"),
        (f"name: a\ndescription: {'x ' * 512}x\nlicense: MIT", Kind.DESCRIPTION, 3, "1025", "shorten it"),
        ("name: a\ndescription: Backups: how\nlicense: MIT", Kind.FRONT_MATTER, 3, "", "put the value in"),
        (f"name: a\n{FIELDS}compatibility: {'x' * 501}", Kind.COMPATIBILITY, 5, "501", "shorten it"),
    ],
)
def test_front_matter_that_breaks_the_specification(
    tmp_path: Path, front_matter: str, kind: Kind, line: int, value: str, remedy: str
) -> None:
    file = skill(tmp_path / "a")
    file.write_text(f"---\n{front_matter.rstrip()}\n---\nText.\n")
    finding = the(tmp_path)
    assert (finding.kind, finding.severity, finding.file) == (kind, Severity.ERROR, file)
    assert (finding.line, finding.value) == (line, value)
    assert finding.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("folder", "severity"), [("own--a", "warning"), ("a-1.2", "warning"), ("ab", "error")]
)
def test_a_folder_that_a_registry_renamed_is_no_error(tmp_path: Path, folder: str, severity: str) -> None:
    skill(tmp_path / folder, name="a", more="license: MIT\n")
    assert [(each.kind, each.severity) for each in check(tmp_path)] == [(Kind.FOLDER, severity)]


def test_what_the_specification_allows_just_so_is_no_finding(tmp_path: Path) -> None:
    skill(tmp_path / "a", description="x " * 511 + "xx", more=f"license: MIT\ncompatibility: {'x' * 500}\n")
    assert check(tmp_path) == []
    (tmp_path / "a" / "SKILL.md").write_text("# No front matter\n\nText.\n")
    assert [each.kind for each in check(tmp_path)] == [Kind.LICENCE, Kind.FRONT_MATTER]


def test_a_file_that_cannot_be_read_is_a_finding_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    skill(tmp_path / "b")
    checked = check_library([tmp_path])
    (finding,) = checked.findings
    assert (finding.kind, finding.severity, checked.skills) == (Kind.UNREADABLE, Severity.ERROR, 2)
    assert finding.problem
    assert finding.remedy


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    body = """See [the guide](references/guide.md), [gone](references/gone.md "title") and ![chart](a%20b.png).

    [in code](more/code.md)

- [again](references/gone.md)
- [home](https://example.org/x.md) [mail](mailto:a@example.org) [anchor](#here) [root](/etc/x.md)
- [form](path/to/file.md) [site](www.example.org/x) [name]({name}.md)

[defined]: more/defined.md
A [defined] link, and [out](../shared.md).
"""
    file = skill(tmp_path / "skills" / "a", body)
    (file.parent / "references").mkdir()
    (file.parent / "references" / "guide.md").write_text("[up](../SKILL.md) [down](deeper.md)\n")
    (tmp_path / "skills" / "shared.md").write_text("Shared.\n")
    found = [
        (each.kind, str(each.severity), each.file.name, each.line, each.value) for each in check(tmp_path)
    ]
    assert found == [
        (Kind.DEAD_LINK, "error", "SKILL.md", 7, "a b.png"),
        (Kind.DEAD_LINK, "error", "SKILL.md", 7, "references/gone.md"),
        (Kind.DEAD_LINK, "error", "SKILL.md", 15, "more/defined.md"),
        (Kind.DEAD_LINK, "error", "SKILL.md", 16, "../shared.md"),
        (Kind.DEAD_LINK, "error", "guide.md", 1, "deeper.md"),
    ]


def test_files_that_hosts_load_whole_are_short(tmp_path: Path) -> None:
    skill(tmp_path / "a", "line\n" * 494)
    assert check(tmp_path) == []
    shutil.rmtree(tmp_path / "a")
    skill(tmp_path / "a", "line\n" * 496)
    assert "SKILL.md has 502 lines (over 500)" in the(tmp_path).problem
    shutil.rmtree(tmp_path / "a")
    skill(tmp_path / "a", " ".join(["word"] * 5_500))
    assert "tokens (over 5,000)" in the(tmp_path).problem


def test_licences_that_are_missing_or_unknown(tmp_path: Path) -> None:
    file = skill(tmp_path / "a", more="")
    assert (the(tmp_path).kind, the(tmp_path).line) == (Kind.LICENCE, None)
    assert check(tmp_path, ignore=[Kind.LICENCE]) == []
    for stated in ("Complete terms in LICENSE.txt", "Our own"):
        file.write_text(f"---\nname: a\ndescription: {DESCRIPTION}\nlicense: {stated}\n---\nText.\n")
        finding = the(tmp_path)
        assert (finding.kind, finding.line, finding.value) == (Kind.LICENCE, 4, stated)
    file.write_text(f"---\nname: a\ndescription: {DESCRIPTION}\n---\nText.\n")
    (file.parent / "package.json").write_text('{"license": "MIT"}')
    assert check(tmp_path) == []


def test_copies_and_namesakes(tmp_path: Path) -> None:
    body = (SAMPLES / "postgres-backup" / "SKILL.md").read_text(encoding="utf-8").partition("\n---\n")[2]
    first = skill(tmp_path / "one" / "a", body)
    skill(tmp_path / "two" / "a", body)
    skill(tmp_path / "two" / "b", body + "\nOne more line of text.\n")
    skill(tmp_path / "two" / "c" / "a", "Another.\n", description="Colours of a web page.")
    found = [
        (each.kind, each.file.relative_to(tmp_path).parent.as_posix(), each.value)
        for each in check(tmp_path, ignore=[Kind.DEAD_LINK, Kind.OVERLAP])
    ]
    assert found == [
        (Kind.COPY, "two/a", str(first)),
        (Kind.COPY, "two/b", str(first)),
        (Kind.SAME_NAME, "two/c/a", "a"),
    ]


def test_skills_that_take_each_others_queries(tmp_path: Path) -> None:
    texts = [
        "Review code for bugs, security and style. Use when code has changed.",
        "Review changed code for bugs, security and style. Use when code is to be reviewed.",
    ]
    first = skill(tmp_path / "code-review", description=texts[0])
    second = skill(tmp_path / "code-reviewer", description=texts[1])
    skill(tmp_path / "plan-trips", description="Plan a journey by train with hotels.")
    skill(tmp_path / "silent", description=None, more="license: MIT\n")
    overlaps = [each for each in check(tmp_path) if each.kind is Kind.OVERLAP]
    assert [(each.file, each.line, each.value) for each in overlaps] == [(first, 3, str(second))]


def entry(name: str, description: str) -> CheckedSkill:
    return CheckedSkill(Skill(name, description, {}, (), None), Path(f"/skills/{name}/SKILL.md"), {})


def overlaps(texts: list[tuple[str, str]]) -> list[str]:
    """Return the problems of skills that are alike by their embeddings."""
    rows = BuiltinEncoder().encode_documents([f"{name}: {text}" for name, text in texts])
    assert rows[0] @ rows[1] > OVERLAP
    return [each.problem for each in overlap_findings([entry(*each) for each in texts], rows)]


@pytest.mark.parametrize(
    "texts",
    [
        [  # the product in the name
            (f"{name}-automation", f"Automate {name} tasks. Always search tools first for current schemas.")
            for name in ("svix", "parseur")
        ],
        [  # each names its product twice, if not in its name
            ("configure", "Set up the Discord channel. Use when the user pastes a Discord bot token."),
            ("configure", "Set up the Telegram channel. Use when the user pastes a Telegram bot token."),
        ],
        [  # what one excludes is the other's
            ("banner-ads", "Integrate banner ads in mobile applications. Don't use for rewarded ads."),
            ("rewarded-ads", "Integrate rewarded ads in mobile applications. Not for banner ads."),
        ],
        [  # a description in another script has no word of the name
            ("campaign-review", "对在 Meta、Google Ads 和 TikTok Ads 上开展的营销活动进行回顾性分析。"),
            ("policy-review", "对在 Meta、Google Ads 和 TikTok Ads 上开展的营销活动进行合规性分析。"),
        ],
    ],
)
def test_descriptions_that_are_told_apart_by_their_words_do_not_overlap(texts: list[tuple[str, str]]) -> None:
    assert overlaps(texts) == []


def test_a_second_skill_for_the_same_product_takes_the_queries_of_the_first() -> None:
    text = "Automate svix tasks. Always search tools first for current schemas."
    (problem,) = overlaps([("svix-automation", text), ("automation", text)])
    assert problem.startswith(
        "the description is nearly that of 'automation' in /skills/automation/SKILL.md (0.9"
    )


def test_each_pair_is_told_once_and_the_nearest_by_name() -> None:
    rows = np.eye(4, 3, dtype=np.float32)
    rows[1] = rows[2] = rows[0]
    skills = [entry(name, "same words") for name in ("a", "a a", "a a a", "a a a a")]
    found = [(each.file.parent.name, Path(each.value).parent.name) for each in overlap_findings(skills, rows)]
    assert found == [("a", "a a"), ("a a a", "a")]


def test_stubs_are_left_out_and_linked_skills_checked_once(tmp_path: Path) -> None:
    skill(tmp_path / "a", more='metadata: {"skillpager.stub-of": "/elsewhere"}\n')
    (tmp_path / "c").symlink_to(skill(tmp_path / "b").parent)
    checked = check_library([tmp_path, tmp_path])
    assert (checked.skills, checked.findings) == (1, ())
