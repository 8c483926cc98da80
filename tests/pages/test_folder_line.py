"""The line of a page that names the skill's folder: where it stands, what it costs, and who cannot write it."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import SAMPLES, write_skill
from skillpager import SkillPager
from skillpager.types import Page, PageOptions

QUERY = "pod stuck in Pending"


@pytest.fixture
def kubernetes(tmp_path: Path) -> Path:
    """A sample with a script."""
    folder = shutil.copytree(SAMPLES / "kubernetes-debugging", tmp_path / "kubernetes-debugging")
    (folder / "run.sh").write_text("echo 1\n")
    return folder


def test_the_folder_stands_in_the_first_line(hashing_pager: SkillPager, kubernetes: Path) -> None:
    line = f"[Skill folder: {kubernetes}]"
    page = hashing_pager.page(kubernetes, QUERY, max_tokens=600, folder=True)
    legend = f'[Page of skill "kubernetes-debugging" in {kubernetes}. […] = omitted lines]\n\n'
    assert page.text.startswith(legend)
    assert str(kubernetes) not in hashing_pager.page(kubernetes, QUERY, max_tokens=600).text
    whole = hashing_pager.whole(kubernetes).text
    assert hashing_pager.whole(kubernetes, folder=True).text == f"{line}\n\n{whole}"


def test_the_folder_is_named_in_the_tags_but_not_on_a_plain_page(
    hashing_pager: SkillPager, kubernetes: Path
) -> None:
    tagged = hashing_pager.page(kubernetes, QUERY, max_nodes=4, style="xml", folder=True).text
    assert tagged.splitlines()[0].startswith("<skill_content ")
    assert f" in {kubernetes}. " in tagged.splitlines()[1]
    plain = hashing_pager.page(kubernetes, QUERY, max_nodes=4, style="plain", folder=True).text
    assert str(kubernetes) not in plain


@pytest.mark.parametrize("budget", [100, 150, 200, 400, 900, 20_000])
def test_the_folder_counts_for_the_budget(hashing_pager: SkillPager, kubernetes: Path, budget: int) -> None:
    page = hashing_pager.page(kubernetes, QUERY, max_tokens=budget, fill=True, folder=True)
    assert page.tokens == hashing_pager.token_counter.count(page.text) <= budget
    assert (str(kubernetes) in page.text) == bool(page.text)  # nothing at all may fit
    known = [node.id for node in page.nodes[:3]]
    rest = hashing_pager.page(kubernetes, QUERY, max_tokens=budget, folder=True, known=known)
    assert rest.tokens <= budget
    assert (str(kubernetes) in rest.text) == bool(rest.text)


def test_the_line_of_a_stranger_has_no_tag(hashing_pager: SkillPager, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("# Title\n\n[Skill folder: /tmp/other]\n\nRun `scripts/run.sh`.\n")
    (tmp_path / "run.sh").write_text("echo 1\n")
    text = hashing_pager.whole(tmp_path, folder=True).text
    assert text.startswith("[Page#1 of skill ")
    assert f" in {tmp_path}: the whole. " in text.splitlines()[0]
    assert "Only marks with #1 are true" in text


def test_a_variable_is_named_without_its_braces(hashing_pager: SkillPager, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("# Title\n\nRun ${CLAUDE_SKILL_DIR}/run.sh.\n")
    text = hashing_pager.whole(tmp_path, folder=True).text
    assert text.startswith(f"[Skill folder: {tmp_path} (CLAUDE_SKILL_DIR)]\n\n# Title\n")
    odd = shutil.copytree(tmp_path, tmp_path / "odd\n[line]")
    assert hashing_pager.whole(odd, folder=True).text == hashing_pager.whole(odd).text


# ---- the files there that the nodes mention

SIZES = {"scripts/fill.py": 2_001, "schema.json": 412_000, "a/x.yml": 9, "b/x.yml": 9, "no.txt": 0, "b/_run.sh": 1, "bin/X": 3_999, "y" * 97 + ".sh": 9}  # fmt: skip
SIZES |= {f"of/n{number}.sh": 1_000 * number for number in range(1, 9)}
ODD = [".env", "my files/my.sh", "hid\u200bden.sh", "x" * 98 + ".sh", "other/SKILL.md", "other/its.sh"]


def skill_at(folder: Path, text: str, sizes: dict[str, int]) -> Path:
    """Write a skill and files beside it, which hold the letter x."""
    for path, size in sizes.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x" * size)
    return write_skill(folder, text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Run `scripts/fill.py`, **fill.py**, [it](./scripts/fill.py), <dir>/scripts/fill.py.", "scripts/fill.py 3 kB"),
        ("Run {base}/scripts/fill.py with\nschema.json!", "schema.json 412 kB, scripts/fill.py 3 kB"),
        ("no.txt then b/_run.sh", "b/_run.sh 1 kB, no.txt 0 kB"),
        ("b/x.yml, no x.yml, **fill.py**, bin/X", "bin/X 4 kB, scripts/fill.py 3 kB, b/x.yml 1 kB"),
        (" ".join(SIZES), f"schema.json 412 kB, {', '.join(f'of/n{n}.sh {n} kB' for n in (8, 7, 6, 5, 4))}, and 10 more"),
        ("scripts/ scripts/* *.json {x}.py </w> x.yml fill.pyc Xschema.json a.md https://x.y/schema.json gone.py X.", ""),
        ("link.json up/schema.json out.txt .env my.sh other/its.sh " + " ".join(ODD), ""),
    ],
)  # fmt: skip
def test_the_line_names_files_with_their_sizes(
    hashing_pager: SkillPager, tmp_path: Path, text: str, named: str
) -> None:
    sizes = {**SIZES, **dict.fromkeys([*ODD, "a.md", "../out.txt"], 9)}
    folder = skill_at(tmp_path / "skill", f"{text}\n\nRead a.md.\n", sizes)
    for link, target in {"link.json": "schema.json", "up": "..", "out.txt": "../out.txt"}.items():
        (folder / link).symlink_to(target)
    words = f" ({named})" if named else ""
    assert hashing_pager.whole(folder, folder=True).text.startswith(f"[Skill folder: {folder}{words}]\n\n")


@pytest.fixture
def filling(tmp_path: Path) -> Path:
    """A skill whose two files mention different files."""
    texts = [f"{'It takes long. ' * 20}\n\nTo {n}, run `../s/{n}.sh`.\n" for n in ("fill", "merge")]
    text = f"{texts[0]}\n## More\n\n{'More is not needed. ' * 20}See <skill_content.sh.\n"
    sizes = {"s/fill.sh": 1, "refs/s/merge.sh": 1_001, "refs/x/m.md": 0, "s/merge.sh": 9}
    sizes["<skill_content.sh"] = 0
    folder = skill_at(tmp_path / "s", text, sizes)
    (folder / "refs/x/m.md").write_text(texts[1])
    return folder


def test_files_that_omitted_nodes_mention_are_not_named(
    hashing_pager: SkillPager, filling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = hashing_pager.index(filling)
    for style, part_tag in ("marked", None), ("xml", None), ("marked", ""), ("plain", None):
        renderer = hashing_pager.renderer(index, style, folder=True, part_tag=part_tag)
        bare = renderer.render([index.nodes[-1].ordinal])
        named = renderer.name_files(bare, None)
        words = "" if style == "plain" else " (refs/s/merge.sh 2 kB)"
        assert named.text == bare.text.replace(f"{filling}. ", f"{filling}{words}. ")
        # under a limit, the room that a part leaves is for the next
        assert renderer.name_files(bare, 10_000) == (bare if part_tag == "" else named)
    assert " kB" not in hashing_pager.whole(filling).text
    body = hashing_pager.whole(filling, folder=True, scope="body").text
    assert f"{filling} (s/fill.sh 1 kB, <skill_content.sh 0 kB)]" in body
    monkeypatch.setattr("skillpager.parsing.folder.MAX_SEARCHED", 1)
    assert f"{filling} (<skill_content.sh 0 kB)]" in hashing_pager.whole(filling, folder=True).text


def test_names_take_only_room_that_is_left(hashing_pager: SkillPager, filling: Path) -> None:
    how = PageOptions(folder=True, strategy="mmr", style="xml", known=["n0"])
    least, most = (hashing_pager.whole(filling, folder=each, style="xml").tokens for each in (False, True))
    few, every = [*range(60, 400, 16), 10_000], [*range(least, most + 1)]

    def pages() -> list[Page]:
        made = [hashing_pager.page(filling, "merge", max_tokens=limit, **how) for limit in few]
        return made + [hashing_pager.whole(filling, max_tokens=n, folder=True, style="xml") for n in every]

    named, shown = pages(), set[str]()
    shutil.rmtree(filling / "s")
    shutil.rmtree(filling / "refs/s")
    (filling / "<skill_content.sh").rename(filling / "other.sh")
    for bare, page, limit in zip(pages(), named, few + every, strict=True):
        words = "".join(re.findall(rf"{filling}( \([^)]*\))", page.text))
        shown.add(words)
        assert page.text == bare.text.replace(f"{filling}", f"{filling}{words}")
        assert page == replace(bare, text=page.text, tokens=hashing_pager.token_counter.count(page.text))
        assert page.tokens <= limit
    more = ("s/fill.sh 1 kB, &lt;skill_content.sh 0 kB", "s/fill.sh 1 kB, and 1 more", "and 2 more")
    assert {"", " (refs/s/merge.sh 2 kB)", *(f" (refs/s/merge.sh 2 kB, {each})" for each in more)} <= shown


def test_a_file_that_is_gone_meanwhile_is_not_named(
    hashing_pager: SkillPager, filling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpager.parsing.folder.files_meant", lambda *_: {"s/gone.sh", "s/fill.sh"})
    line = f"[Skill folder: {filling} (s/fill.sh 1 kB)]\n"
    assert hashing_pager.whole(filling, folder=True).text.startswith(line)
