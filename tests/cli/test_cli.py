"""The command line as a real process: what each command prints, where, and with which exit code."""

import json
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli_process import (
    ROOT,
    SAMPLES,
    Ran,
    command,
    environment,
    hide,
    invoke,
    run,
    run_on_terminal,
    wait_until,
)
from openai_server import OpenAIServer, Reply, openai_server  # noqa: F401
from skillpager import SkillPager
from skillpager.cli import views
from skillpager.cli.messages import MAX_WARNINGS
from skillpager.cli.page import FORCE_HINT
from skillpager.encoders.openai import TIMEOUT
from skillpager.errors import install_command
from skillpager.json_types import to_json
from skillpager.output.outline import explain_page
from skillpager.settings import Settings

POSTGRES = "examples/skills/postgres-backup"
BISECT = "examples/skills/git-bisect"
KUBERNETES = "examples/skills/kubernetes-debugging"
QUERY = "restore one table from a dump"

Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def library(warm_cache: Path) -> Iterator[SkillPager]:
    """The library on the warm cache."""
    pager = SkillPager(settings=Settings(cache_dir=warm_cache))
    yield pager
    pager.close()


@pytest.fixture
def skillpager(warm_cache: Path) -> Run:
    """Run the command on the warm cache: `skillpager("page", …, stdin=…, cwd=…, VARIABLE=…)`."""

    def start(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT, **variables: str) -> Ran:
        return invoke(*arguments, env=environment(warm_cache, **variables), stdin=stdin, cwd=cwd)

    return start


# ---- page


def test_page_is_what_the_library_makes(skillpager: Run, library: SkillPager) -> None:
    page = library.page(SAMPLES / "postgres-backup", QUERY, max_nodes=8, show=f"skillpager show {POSTGRES}")
    done = skillpager("page", POSTGRES, QUERY, "-k", "8")
    assert (done.code, done.out) == (0, page.text)
    assert page.sufficiency is not None
    nodes = f"{len(page.nodes)} of {len(library.index(SAMPLES / 'postgres-backup').nodes)} nodes"
    saved = f"{100 * (1 - page.tokens / page.full_tokens):.1f} % saved"
    chance = f"holds all that is needed with an estimated chance of {100 * page.sufficiency:.0f} %"
    assert done.err == f"{nodes}, {page.tokens:,} tokens, {saved}; {chance}\n"
    broad = skillpager("page", POSTGRES, "set up backups", "-k", "8").err  # for which no number is known
    assert broad.endswith(" % saved; hardly holds all that is needed\n")
    doubtful = skillpager("page", POSTGRES, "credentials", "-k", "8").err
    assert re.search(r" % saved\nthe skill may not cover the query \(chance \d+ %\)\n$", doubtful)
    other = skillpager("page", POSTGRES, QUERY, "-k", "8", "--strategy", "mmr")  # which estimates no chance
    assert other.err.endswith(" % saved\n")


def test_page_of_a_skill_that_fits_is_the_whole_skill(skillpager: Run) -> None:
    done = skillpager("page", BISECT, "skip a commit", "--max-tokens", "1000", "--fill")
    source = (SAMPLES / "git-bisect" / "SKILL.md").read_text()
    assert done.out.strip() == source.partition("---\n\n")[2].strip()
    assert re.fullmatch(r"the whole skill: \d+ nodes, \d+ tokens\n", done.err)


def test_a_page_on_which_nothing_fits_fails_and_says_what_would(skillpager: Run) -> None:
    done = skillpager("page", BISECT, "skip a commit", "--max-tokens", "10", "--quiet")
    told = re.fullmatch(
        r"error: Nothing fits: the smallest page with any content has (\d+) tokens\. "
        r"Raise --max-tokens to \1\.\n",
        done.err,
    )
    assert told
    assert (done.code, done.out) == (1, "")
    least = int(told[1])
    less = skillpager("page", BISECT, "skip a commit", "--max-tokens", str(least - 1), "--json")
    assert (less.code, less.json["least_tokens"], less.json["nodes"]) == (1, least, [])
    assert json.loads(less.err)["error"]["type"] == "SkillPagerError"
    enough = skillpager("page", BISECT, "skip a commit", "--max-tokens", str(least))
    assert enough.code == 0
    assert " of 11 nodes, " in enough.err


def test_estimates_are_labelled(warm_cache: Path, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", PYTHONPATH=hide(tmp_path / "hidden", "rs_bpe"))
    done = run("page", POSTGRES, QUERY, "-k", "8", env=env)
    assert re.search(r"nodes, about [\d,]+ tokens, about [\d.]+ % saved; holds all .* \d+ %\n$", done.err)
    outline = run("outline", POSTGRES, env=env)
    assert f"estimates: `{install_command('tokens')}`" in outline.err


def test_page_json_is_that_of_the_library_and_nothing_else_is_said(
    skillpager: Run, library: SkillPager
) -> None:
    show = f"skillpager show {POSTGRES}"
    page = library.page(SAMPLES / "postgres-backup", QUERY, max_nodes=8, fill=True, show=show)
    done = skillpager("page", POSTGRES, QUERY, "-k", "8", "--fill", "--json")
    assert done.err == ""
    assert done.json == json.loads(json.dumps(to_json(page)))


def test_page_options_reach_the_pager(skillpager: Run) -> None:
    words = "--max-tokens 500 --lambda 1 --strategy topk --style xml --scope body --json"
    page = skillpager("page", KUBERNETES, "pod stuck in Pending", *words.split()).json
    assert page["tokens"] <= 500
    assert page["style"] == "xml"
    assert page["text"].startswith("<skill_content")
    assert page["selection"]["strategy"] == "topk"
    assert page["selection"]["budget"]["max_tokens"] == 500
    assert {node["file"] for node in page["nodes"]} == {"SKILL.md"}
    assert f"skillpager show {KUBERNETES} --scope body L" in page["text"]
    target = skillpager("page", POSTGRES, QUERY, "--sufficiency", "0.5", "--json").json
    assert target["selection"]["budget"]["sufficiency"] == 0.5
    weighed = skillpager("page", POSTGRES, QUERY, "--lambda", "1", "--json").json
    assert weighed["selection"]["strategy"] == "mmr"


def test_page_for_a_query_that_the_skill_seems_not_to_cover_says_so(skillpager: Run) -> None:
    asked = ("page", BISECT, "How do I bake sourdough bread?")
    done = skillpager(*asked)
    chance = r"may not cover the query \(chance \d+ %\)"
    assert re.match(rf"\[This skill {chance}\.\]\n", done.out)
    assert re.search(rf"^the skill {chance}$", done.err, re.MULTILINE)
    plain = skillpager(*asked, "--style", "plain")
    assert "may not" not in plain.out
    assert "the skill may not cover" in plain.err
    form = skillpager(*asked, "--json").json
    assert form["covered"] == form["selection"]["covered"] < 0.5


def test_page_for_a_query_that_the_skill_hardly_covers_is_a_short_answer(skillpager: Run) -> None:
    done = skillpager("page", POSTGRES, "How do I bake sourdough bread?", "--explain")
    assert f"about; to read lines: skillpager show {POSTGRES} L13; {FORCE_HINT}]\n" in done.out
    assert (done.code, "To change it: ask for --force.\nthe skill seems not" in done.err) == (0, True)
    forced = skillpager("page", POSTGRES, "How do I bake sourdough bread?", "--force")
    assert "[Page of a skill." in forced.out


def test_explain_says_on_stderr_why_even_when_quiet(skillpager: Run, library: SkillPager) -> None:
    done = skillpager("page", POSTGRES, QUERY, "-k", "3", "--explain", "--quiet")
    page = library.page(SAMPLES / "postgres-backup", QUERY, max_nodes=3)
    assert page.selection is not None
    reasons = library.reasons(SAMPLES / "postgres-backup", QUERY)
    assert done.err == explain_page(page, reasons, show=f"skillpager show {POSTGRES}")
    assert done.out.startswith("[Page of a skill. […] = omitted lines; read: skillpager show ")
    header, *rows = done.err.splitlines()
    assert header == "Picked 3 of 53 nodes with navigator, in this order:"
    for row, pick in zip(rows, page.selection.picks, strict=False):
        assert re.match(rf"  {pick.node.id} L\d+(-\d+)? +{pick.node.tokens}t  needed +\d+ %  \S", row)
        assert row.endswith("]")
    command_line = re.search(r"To read one: `skillpager (show [^`]+)`", done.err)
    assert command_line is not None
    assert skillpager(*shlex.split(command_line[1])).code == 0
    assert done.err.endswith("To change it: raise --max-nodes.\n")


def test_explain_as_json_holds_what_speaks_for_each_node(skillpager: Run, library: SkillPager) -> None:
    explained = skillpager("page", POSTGRES, QUERY, "--explain", "--json").json
    told = library.reasons(SAMPLES / "postgres-backup", QUERY)
    assert explained.pop("reasons") == told
    assert set(told) == {node.id for node in library.index(SAMPLES / "postgres-backup").nodes}
    assert explained == skillpager("page", POSTGRES, QUERY, "--json").json


@pytest.mark.parametrize("options", [["--strategy", "mmr", "-k", "3"], ["--max-tokens", "100000", "--fill"]])
def test_explain_tells_no_needs_where_none_are_estimated(skillpager: Run, options: list[str]) -> None:
    assert "needed" not in skillpager("page", POSTGRES, QUERY, *options, "--explain", "-q").err
    assert "reasons" not in skillpager("page", POSTGRES, QUERY, *options, "--explain", "--json").json


def test_skill_comes_from_stdin_and_no_command_is_promised(skillpager: Run) -> None:
    source = (SAMPLES / "postgres-backup" / "SKILL.md").read_bytes()
    done = skillpager("page", "-", QUERY, "-k", "5", stdin=source)
    assert (done.code, "[… L" in done.out) == (0, True)
    assert "skillpager show" not in done.out
    assert done.out.startswith('[Page of skill "postgres-backup". […] = omitted lines]\n')


@pytest.mark.parametrize("options", [[], ["--scope", "body", "--cache-dir", "my cache"]])
def test_commands_in_a_page_work_when_pasted(warm_cache: Path, tmp_path: Path, options: list[str]) -> None:
    folder = tmp_path / "my skills"
    folder.mkdir()
    (folder / "k8s").symlink_to(SAMPLES / "kubernetes-debugging")
    env = environment(warm_cache)
    page = run(
        "page", "my skills/k8s", "pod stuck in Pending", "-k", "5", *options, "--json", env=env, cwd=tmp_path
    )
    offer = re.search(r"; read: (skillpager show .*) (L\S+)\]", page.json["text"])
    assert offer is not None
    words = shlex.split(offer[1])
    assert words == ["skillpager", "show", "my skills/k8s", *options]
    marked = re.findall(r"^\[… ((?:\S+:)?L\d+(?:-\d+)?)", page.json["text"], re.MULTILINE)
    assert offer[2] == marked[0]
    files = re.findall(r" (references/\S+\.md):? ", page.json["text"])
    assert len(marked) + len(files) == len(page.json["omitted"]) > 1
    marked += files
    shown = run(*words[1:], *marked, "--json", env=env, cwd=tmp_path)
    assert shown.code == 0, shown.err
    fetched = {node["id"] for node in shown.json["nodes"]}
    assert fetched >= {node for gap in page.json["omitted"] for node in gap["nodes"]}


# ---- outline, show


def test_outline_is_a_map_and_its_commands_print_what_they_say(skillpager: Run, library: SkillPager) -> None:
    text = skillpager("outline", KUBERNETES, "--scope", "skill").out
    source = SAMPLES / "kubernetes-debugging"
    of_file, read, every = re.findall(r"`skillpager (.*?)`", text)
    assert text == library.outline(
        source,
        show=f"skillpager show {KUBERNETES} --scope skill",
        list_nodes=f"skillpager {every}",
        list_file=f"skillpager outline {KUBERNETES} --scope skill",
        folder=True,
    )
    command, *words = shlex.split(of_file)
    assert skillpager(command, *words).out.splitlines()[1] == words[-1]
    assert library.token_counter.count(text) <= library.index(source).full_tokens / 10
    command, *words = shlex.split(read)
    assert skillpager(command, *words).out.rstrip() == library.expand(source, words[-1]).text.rstrip()
    command, *words = shlex.split(every)
    assert skillpager(command, *words).out == library.outline(source, nodes=True)


@pytest.mark.parametrize("scope", ["skill", "body"])
def test_outline_json_holds_headings_and_nodes(skillpager: Run, library: SkillPager, scope: str) -> None:
    told = skillpager("outline", KUBERNETES, "--scope", scope, "--json").json
    index = library.index(SAMPLES / "kubernetes-debugging", scope=scope)
    expected = json.loads(json.dumps(to_json(index, "nodes", "headings")))
    assert told == {**expected, "root": told["root"]}


def test_control_characters_do_not_reach_a_terminal(tmp_path: Path) -> None:
    evil = tmp_path / "evil.md"
    evil.write_text("# T \x1b]0;owned\x07\n\nRun \x1b[2Jthis.\n")
    env = environment(tmp_path / "cache")
    for name, *arguments in (("outline",), ("page", "run"), ("show", "n0")):
        said = run_on_terminal(name, evil, *arguments, env=env).out
        assert "owned" in said or name == "show"
        assert "\x1b]0" not in said
        assert "\x1b[2J" not in said
    assert run("page", evil, "run", env=env).out == evil.read_text()


def test_show_takes_ids_ranges_and_lines(skillpager: Run) -> None:
    lines = (SAMPLES / "git-bisect" / "SKILL.md").read_text().splitlines()
    done = skillpager("show", BISECT, "n1", "L26-33", "--style", "plain", "--json")
    ids = [node["id"] for node in done.json["nodes"]]
    assert ids[0] == "n1"
    assert done.json["selection"] is None
    assert lines[25] in done.json["text"]
    by_id = skillpager("show", BISECT, ",".join(ids), "--style", "plain")
    assert by_id.out.strip() == done.json["text"].strip()
    ranged = skillpager("show", BISECT, "n2-n4", "--json").json
    assert [node["id"] for node in ranged["nodes"]] == ["n2", "n3", "n4"]


# ---- index, list, cache


def test_index_tells_what_it_did_and_skips_what_is_cached(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", samples=False)
    first = run("index", SAMPLES / "git-bisect", SAMPLES / "csv-cleaning" / "SKILL.md", env=env)
    header, *rows = [line.split("\t") for line in first.out.splitlines()]
    assert header == ["skill", "nodes", "tokens", "time", "path"]
    assert [row[0] for row in rows] == ["git-bisect", "csv-cleaning"]
    assert all(re.fullmatch(r"\d+\.\d\d s", row[3]) for row in rows)
    again = run("index", SAMPLES / "git-bisect", SAMPLES / "git-bisect", env=env)
    assert [line.split("\t")[3] for line in again.out.splitlines()] == ["time", "cached"]


def test_one_bad_skill_does_not_stop_the_others(skillpager: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad" / "SKILL.md"
    bad.parent.mkdir()
    bad.write_bytes(b"\xff\xfe# x")
    done = skillpager("index", bad.parent, BISECT, "no-such-skill", "--json", "--jobs", "1")
    assert done.code == 1
    assert [skill["name"] for skill in done.json["skills"]] == ["git-bisect"]
    assert done.json["skills"][0]["cached"] is True
    assert [failure["path"] for failure in done.json["failed"]] == [str(bad.parent), "no-such-skill"]
    errors = [json.loads(line)["error"] for line in done.err.splitlines()]
    assert [error["type"] for error in errors] == ["SkillError", "SkillError"]
    assert "UTF-16" in errors[0]["message"]


def test_index_without_arguments_takes_the_known_skills(skillpager: Run, tmp_path: Path) -> None:
    place = tmp_path / ".agents" / "skills"
    place.mkdir(parents=True)
    (place / "git-bisect").symlink_to(SAMPLES / "git-bisect")
    done = skillpager("index", cwd=tmp_path)
    assert done.code == 0
    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["skill", "git-bisect"]


def test_progress_is_for_terminals_only(warm_cache: Path) -> None:
    shown = run_on_terminal("index", SAMPLES, env=environment(warm_cache))
    assert "\x1b[?25l" in shown.out  # a live display hides the cursor
    assert "cached" in shown.out
    quiet = run_on_terminal("index", SAMPLES, "--quiet", env=environment(warm_cache))
    assert "\x1b[?25l" not in quiet.out


def test_list_tells_shadowed_and_broken_skills(skillpager: Run, tmp_path: Path) -> None:
    for folder, text in (("a/one", "# One"), ("b/one", "# Other one"), ("b/two", "")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "SKILL.md").write_text(text)
    done = skillpager("list", "a", "b", cwd=tmp_path)
    assert done.code == 0
    rows = [line.split("\t")[:3] for line in done.out.splitlines()]
    assert rows == [
        ["skill", "state", "path"],
        ["one", "ok", "a/one"],
        ["one", "shadowed", "b/one"],
        ["two", "broken", "b/two"],
    ]
    assert "a/one has the same name and was found first" in done.out
    assert "empty" in done.out
    assert done.err == ""
    skills = skillpager("list", "a", "b", "--json", cwd=tmp_path).json["skills"]
    assert [skill["shadowed_by"] for skill in skills] == [None, "a/one", None]
    assert "empty" in skills[2]["problem"]


def test_a_library_with_many_faults_is_told_of_some_and_their_number(tmp_path: Path) -> None:
    for number in range(MAX_WARNINGS + 5):
        place = tmp_path / "a" / f"one-{number}"
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text("---\ndescription: One: colon\n---\n# One\n")
    env = environment(tmp_path / "cache")
    done = run("index", "a", cwd=tmp_path, env=env)
    assert done.err.count("is not valid YAML") == MAX_WARNINGS
    assert "warning: 5 more warnings of this kind are not shown" in done.err
    assert re.search(r"^25 skills: 25 indexed; [\d.]+ s$", done.err, re.MULTILINE)
    again = run("index", "a", cwd=tmp_path, env=env).err
    assert re.search(r"^25 skills: 25 not changed; [\d.]+ s$", again, re.MULTILINE)


def test_list_of_nothing_says_where_it_looked(skillpager: Run, tmp_path: Path) -> None:
    done = skillpager("list", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("no skills in ")
    assert ".claude/skills" in done.err


def test_cache_is_shown_verified_evicted_and_cleared(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    env = environment(cache, samples=False)
    run("index", SAMPLES / "git-bisect", SAMPLES / "csv-cleaning", env=env)
    info = run("cache", "info", "--json", env=env).json
    assert {entry["name"] for entry in info["entries"]} == {"git-bisect", "csv-cleaning"}
    assert info["size"] > 1000
    assert run("cache", "verify", env=env).code == 0

    with sqlite3.connect(info["path"]) as database:
        database.execute("UPDATE indexes SET checksum = '' WHERE name = 'git-bisect'")
    damaged = run("cache", "verify", env=env)
    assert damaged.code == 1
    assert damaged.out.splitlines()[1].startswith("git-bisect\t")

    assert run("cache", "evict", "--max-size", "1GB", "--json", env=env).json["removed"] == []
    asked = run("cache", "clear", env=env)
    assert asked.code == 2
    assert "--yes" in asked.err
    assert run("cache", "clear", "--yes", env=env).err == "2 indexes deleted\n"
    assert run("cache", "info", env=env).out == "skill\tnodes\tsize\tcreated\tkey\tfolder\n"


def test_looking_at_a_cache_does_not_make_it(skillpager: Run, tmp_path: Path) -> None:
    for command_name in ("info", "verify"):
        done = skillpager("cache", command_name, "--cache-dir", tmp_path / "mistyped")
        assert done.code == 0
    assert list(tmp_path.iterdir()) == []


# ---- doctor, version, completion


def test_doctor_finds_all_well_and_shows_no_key(skillpager: Run) -> None:
    secrets = {
        "SKILLPAGER_LLM_API_KEY": "sk-secret",
        "SKILLPAGER_LLM_BASE_URL": "https://user:sk-secret@host/v1?key=sk-secret",
    }
    done = skillpager("doctor", SKILLPAGER_STYLE="xml", **secrets)
    assert done.code == 0, done.out
    assert re.search(r"^  llm_base_url +https://…@host/v1\?key=…  \(environment\)$", done.out, re.MULTILINE)
    assert re.search(r"^  style +xml  \(environment\)$", done.out, re.MULTILINE)
    assert re.search(r"^  scope +skill  \(default\)$", done.out, re.MULTILINE)
    assert re.search(r"^  max_tokens +not set  \(default\)$", done.out, re.MULTILINE)
    assert re.search(r"^  self-test +ok: builtin\S*, \S+; token counts ", done.out, re.MULTILINE)
    assert "sk-secret" not in done.out


def test_doctor_tells_where_settings_come_from_and_what_is_missing(skillpager: Run, tmp_path: Path) -> None:
    (tmp_path / "skillpager.toml").write_text('style = "plain"\n')
    (tmp_path / "config" / "skillpager").mkdir(parents=True)
    (tmp_path / "config" / "skillpager" / "config.toml").write_text('encoder = "hashing"\nscope = "body"\n')
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    found = skillpager("doctor", "--json", "--classifier", "local", cwd=tmp_path, **variables).json
    origins = {name: setting["origin"] for name, setting in found["settings"].items()}
    assert origins["style"] == "project file"
    assert origins["scope"] == origins["encoder"] == "user file"
    assert origins["cache_dir"] == "environment"
    assert origins["mmr_lambda"] == "default"
    assert found["healthy"] is True
    extras = found["extras"]
    assert {*extras["installed"], *extras["available"]} >= {"openai", "bench", "st", "tokens"}


def test_doctor_fails_when_paging_does(skillpager: Run, openai_server: OpenAIServer) -> None:  # noqa: F811
    openai_server.script(Reply(401, {"error": {"message": "bad key"}}))
    variables = {"SKILLPAGER_EMBED_BASE_URL": openai_server.base_url, "SKILLPAGER_EMBED_API_KEY": "sk-wrong"}
    done = skillpager("doctor", "--encoder", "openai:m", **variables)
    assert done.code == 1
    assert re.search(r"^  self-test +FAILED: .*401", done.out, re.MULTILINE)
    assert re.search(r"^  encoder +openai:m  \(option\)$", done.out, re.MULTILINE)
    assert "sk-wrong" not in done.out


def test_version(skillpager: Run) -> None:
    assert re.fullmatch(r"skillpager \d+\.\d+\.\d+\S*\n", skillpager("--version").out)


def test_shells_complete_commands(skillpager: Run) -> None:
    script = skillpager(_SKILLPAGER_COMPLETE="source_bash")
    assert (script.code, "_SKILLPAGER_COMPLETE=complete_" in script.out) == (0, True)
    words = {"COMP_WORDS": "skillpager bench rep", "COMP_CWORD": "2"}
    assert skillpager(_SKILLPAGER_COMPLETE="complete_bash", **words).out.split() == ["report", "reproduce"]


# ---- messages, signals, streams


def test_quiet_and_verbose_and_warnings_that_are_json_lines_with_json(
    skillpager: Run, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.md"
    odd.write_text("---\ndescription: Odd: colon\n---\nText.\n")
    assert "warning: odd: odd.md:2: the front matter " in skillpager("page", odd, "text").err
    assert skillpager("page", odd, "text", "--quiet").err == ""
    missing = skillpager("page", "nowhere.md", "text", "-v")
    assert "Traceback" in missing.err
    assert missing.err.splitlines()[-1].startswith("error: ")
    lines = [json.loads(line) for line in skillpager("outline", odd, "--json").err.splitlines()]
    assert lines
    assert all("odd.md:2: the front matter" in line["warning"]["message"] for line in lines)


def test_interrupt_ends_with_130_and_without_traceback_while_an_endpoint_hangs(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        server.script(Reply(hang=True))
        env = environment(tmp_path / "cache", SKILLPAGER_EMBED_BASE_URL=server.base_url)
        process = subprocess.Popen(
            command("index", BISECT, "--encoder", "openai:m"), env=env, cwd=ROOT, stderr=subprocess.PIPE
        )
        wait_until(lambda: server.asked)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT / 2)  # it waits for no answer
    assert process.returncode == 130
    assert err == b"interrupted: what is done is kept, and the same command goes on from there\n"


def test_a_reader_that_leaves_is_no_error(warm_cache: Path) -> None:
    process = subprocess.Popen(
        command("outline", KUBERNETES, "--json", "-q"),
        env=environment(warm_cache),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_that_cannot_be_written(warm_cache: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("outline", BISECT),
            env=environment(warm_cache),
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 1
    assert done.stderr == b"error: The output cannot be written or read: No space left on device.\n"


def test_a_bug_of_ours_asks_to_be_reported(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        from skillpager.cli.app import app, main
        from skillpager.cli.messages import reported

        def fault() -> None:
            raise RuntimeError("unforeseen")

        app.command()(reported(fault))
        main()
        """
    )
    env = environment(tmp_path / "cache")
    start = [sys.executable, "-c", program, "fault"]
    done = subprocess.run(start, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: RuntimeError: unforeseen (<string>, line ")
    assert "/issues" in done.stderr
    assert "Traceback" not in done.stderr
    verbose = subprocess.run([*start, "-v"], env=env, capture_output=True, text=True)
    assert "Traceback" in verbose.stderr


def test_progress_is_noted_where_no_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setattr("skillpager.cli.views.note", notes.append)
    with views.progress_bar("reading skills") as progress:
        progress(1, 2_000)  # ten seconds are not over
        monkeypatch.setattr(views, "SECONDS_BETWEEN_NOTES", 0.0)
        progress(1_200, 2_000)
    assert notes == ["reading skills: 1,200 of 2,000"]
