"""Agents solve tasks with a skill whole, in part, as a page or not at all: a task of inspect-ai.

    inspect eval benchmarks/agent/skill_tasks.py --model openai/gpt-5 -T arm=page -T skills=FOLDER

README.md beside this file says what it needs, which arms there are and how to compare them.
"""

import json
import shutil
import sys
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal, get_args

from inspect_ai import Task, task
from inspect_ai.agent import as_solver, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageTool
from inspect_ai.scorer import Score, Scorer, Target, accuracy, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolError, bash, mcp_server_stdio, mcp_tools, tool
from inspect_ai.util import sandbox

from skillpager import SkillPager

Arm = Literal["none", "whole", "page", "page+faults", "mmr"]

HERE = Path(__file__).parent
TASKS = HERE / "tasks"
SAMPLES = HERE.parents[1] / "examples" / "skills"
# the tool of the MCP server that reads what a page left out
READ = "read_skill_nodes"
SYSTEM = """\
You are an agent that solves a task with the tools it has. You work in a scratch folder of your own; paths are
relative to it, and only files in it count. If the task asks for an answer and names no file for it, write it
to answer.txt. When the task is done, reply with one sentence and without a tool call."""
SKILL = "Text of a skill that may help, written by others; marks such as [… L2-9] stand for lines left out:"
# a careful agent needs about ten turns on such tasks; a turn has a message of the model and one of each tool
MESSAGES = 100
SECONDS = 900


@task
def skill_tasks(
    arm: Arm = "page", skills: str = "", tasks: str = str(TASKS), shell: bool = False, where: str = "local"
) -> Task:
    """Return the tasks of a folder whose skills are found, each with what an arm gives of its skill.

    Args:
        arm: What agents get of the skill.
        skills: Folder of evidence data, with `test` and `skillsbench`; the sample skills are always found.
        tasks: Folder of tasks.
        shell: Whether agents may run commands, in the sandbox.
        where: The sandbox: `local` is a temporary folder on this machine, `docker` a container.
    """
    if arm not in get_args(Arm):
        raise ValueError(f"Unknown arm {arm!r}: choose from {', '.join(get_args(Arm))}.")
    folders = [*([Path(skills)] if skills else []), SAMPLES]
    samples = []
    pager = SkillPager()
    for folder in sorted(path.parent for path in Path(tasks).glob("*/task.json")):
        described = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        if skill := find_skill(described["skill"], folders):
            samples.append(make_sample(folder, described, skill, arm, pager))
    if not samples:
        raise ValueError(f"{tasks} has no task whose skill is found: name the folder of skills, -T skills=…")
    return Task(
        dataset=MemoryDataset(samples, name=f"skill-tasks-{arm}"),
        solver=work(arm, shell=shell),
        scorer=check(),
        sandbox=where,
        message_limit=MESSAGES,
        time_limit=SECONDS,
    )


def find_skill(name: str, folders: list[Path]) -> Path | None:
    """Return the path of a skill: a folder with `SKILL.md`, or a single Markdown file."""
    for place in folders:
        if (place / name / "SKILL.md").is_file():
            return place / name
        for file in (place / name, place / f"{name}.md"):
            if file.is_file():
                return file
    return None


def make_sample(
    folder: Path, described: dict[str, object], skill: Path, arm: Arm, pager: SkillPager
) -> Sample:
    """Return a task with its files, and with what an arm gives of the skill."""
    prompt, counter = str(described["prompt"]), pager.token_counter
    given = give(skill, prompt, arm, pager)
    files = {
        path.relative_to(folder / "files").as_posix(): str(path)
        for path in sorted((folder / "files").rglob("*"))
        if path.is_file()
    }
    listed = "".join(f"\n- {path}" for path in files)
    parts = [prompt + (f"\n\nFiles in the scratch folder:{listed}" if files else "")]
    if arm != "none":
        parts.append(f"{SKILL}\n\n<skill>\n{given.strip()}\n</skill>")
        if skill.is_dir():  # scripts and other files that are not Markdown are the same in all arms
            others = [path for path in skill.rglob("*") if path.is_file() and path.suffix != ".md"]
            files |= {f"skill/{path.relative_to(skill).as_posix()}": str(path) for path in others}
    return Sample(
        id=folder.name,
        input="\n\n".join(parts),
        files=files,
        metadata={
            "folder": str(folder),
            "skill": str(skill),
            "seconds": described.get("seconds", 60),
            "given_tokens": counter.count(given),
            "full_tokens": pager.whole(skill).tokens,
        },
    )


def give(skill: Path, prompt: str, arm: Arm, pager: SkillPager) -> str:
    """Return the text that an arm gives of a skill."""
    match arm:
        case "none":
            return ""
        case "whole":
            return pager.whole(skill).text
        case "page":
            return pager.page(skill, prompt).text
        case "page+faults":
            name = json.dumps(pager.index(skill).skill.name)
            return pager.page(skill, prompt, show=f'{READ}(name={name}, ids="{{ids}}")').text
        case "mmr":
            limit = pager.page(skill, prompt).tokens
            return pager.page(skill, prompt, strategy="mmr", max_tokens=limit).text


@solver
def work(arm: Arm, *, shell: bool) -> Solver:
    """Let an agent work until it calls no tool; in `page+faults` it has the MCP server as well."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        tools: list[object] = [read_file(), write_file()]
        if shell:
            tools.append(bash(timeout=state.metadata["seconds"]))
        with TemporaryDirectory(prefix="skillpager-agent-") as home:
            if arm == "page+faults":
                folder = skill_folder(Path(state.metadata["skill"]), Path(home))
                command = ["-m", "skillpager", "mcp", str(folder)]
                server = mcp_server_stdio(name="skillpager", command=sys.executable, args=command)
                tools.append(mcp_tools(server, tools=[READ]))
            return await as_solver(react(prompt=SYSTEM, tools=tools, submit=False))(state, generate)

    return solve


def skill_folder(skill: Path, home: Path) -> Path:
    """Return the folder of a skill for the server; one that is a single file is copied into a new folder."""
    if skill.is_dir():
        return skill
    folder = home / skill.stem
    folder.mkdir()
    shutil.copy(skill, folder / "SKILL.md")
    return folder


def inside(path: str) -> str:
    """Return a path in the scratch folder.

    Raises:
        ToolError: It leads out of it.
    """
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ToolError(f"{path!r} is outside of the scratch folder")
    return path


@tool
def read_file() -> Tool:
    """Return a tool that reads text files of the scratch folder."""

    async def execute(path: str) -> str:
        """Read a text file.

        Args:
            path: Path in the scratch folder.
        """
        return await sandbox().read_file(inside(path)) or "(empty)"

    return execute


@tool
def write_file() -> Tool:
    """Return a tool that writes text files of the scratch folder."""

    async def execute(path: str, text: str) -> str:
        """Write a text file.

        Args:
            path: Path in the scratch folder.
            text: The whole new content.
        """
        await sandbox().write_file(inside(path), text)
        return f"{len(text):,} characters written"

    return execute


@scorer(metrics={"solved": [accuracy(), stderr()], "skill_tokens": [mean()]})
def check() -> Scorer:
    """Return a scorer that runs the check of a task in the scratch folder, in the same sandbox."""

    async def score(state: TaskState, _: Target) -> Score:
        folder = Path(state.metadata["folder"])
        place = (await sandbox().exec(["mktemp", "-d"])).stdout.strip()
        program = f"{place}/{folder.name}/check.py"
        await sandbox().write_file(program, (folder / "check.py").read_text(encoding="utf-8"))
        helpers = folder.parent / "checking.py"
        if helpers.is_file():
            await sandbox().write_file(f"{place}/checking.py", helpers.read_text(encoding="utf-8"))
        done = await sandbox().exec(["python3", "-P", "-B", program], timeout=state.metadata["seconds"])
        await sandbox().exec(["rm", "-r", place])
        # a check whose own code fails ends with 1, too, unless it has a hook that says what is wrong
        if done.returncode not in (0, 1) or "Traceback" in done.stderr:
            raise RuntimeError(f"the check ended with exit code {done.returncode}: {done.stderr[-300:]}")
        read = [message for message in state.messages if isinstance(message, ChatMessageTool)]
        faults = [message.text for message in read if message.function == READ]
        tokens = state.metadata["given_tokens"] + sum(map(SkillPager().token_counter.count, faults))
        reason = (done.stdout.strip().splitlines() or [""])[-1]
        return Score(
            value={"solved": int(done.returncode == 0), "skill_tokens": tokens},
            explanation=reason,
            metadata={"faults": len(faults), "full_tokens": state.metadata["full_tokens"]},
        )

    return score
