"""The list of skills in Claude Code, really run: with and without `--replace-listing`.

    python benchmarks/host_listing.py PROGRAM SKILLS

PROGRAM is the command of Claude Code, such as the one that `benchmarks/hosts.py --prefix DIR` installs.
SKILLS is a folder of skills, which is copied to a home folder of its own. `scripted_model` plays the model.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from host_hook import Recorder
from host_sessions import claude_code, private_environment, run_agent
from hosts import private_home, version_of
from scripted_model import Request, Say
from skillpager.tokens import default_counter

START = [sys.executable, "-m", "skillpager"]
OWN = "mcp__skillpager__"


def first_request(program: Path, home: Path, project: Path) -> Request:
    """Return the largest request that the model gets in a session of one prompt."""
    model = Recorder(lambda _: Say("Done."), "load_skill")
    run_agent(model, *claude_code(program, home), project)
    return max(model.requests, key=lambda request: len(json.dumps(request.body)))


def listing_of(request: Request, names: set[str]) -> str:
    """Return the lines about skills that the model reads: of the host's list, and of SkillPager's server."""
    text = f"{json.dumps(request.body.get('system'))}\n{request.conversation}".replace("\\n", "\n")
    lines = [
        line for line in text.splitlines() if (found := re.match(r"- ([\w-]+)", line)) and found[1] in names
    ]
    tools = [
        json.dumps(tool) for tool in request.body.get("tools", []) if str(tool.get("name")).startswith(OWN)
    ]
    own = re.findall(r"(?s)Skills are instructions for tasks.*?(?=\n## |\n</system|\"|$)", text)[:1]
    return "\n".join([*lines, *tools, *own])


def digest(folder: Path) -> str:
    """Return a digest of all files of a folder: paths and bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()


def skillpager(words: str, home: Path, project: Path) -> str:
    """Run a command of SkillPager and return what it prints."""
    done = subprocess.run(
        [*START, *words.split()],
        env=private_environment(home),
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


def main() -> None:
    """Run and print."""
    program, skills = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    counter = default_counter()
    with private_home() as (home, project):
        claude = home / ".claude"
        shutil.copytree(skills, claude / "skills")
        settings = claude / "settings.json"
        settings.write_text('{\n  "cleanupPeriodDays": 30}')
        names = {folder.name for folder in skills.iterdir()}
        before = digest(claude / "skills"), settings.read_bytes()
        print("version:", version_of(program, home), "skills:", len(names))

        def measure(what: str) -> None:
            request = first_request(program, home, project)
            listing = listing_of(request, names)
            whole = counter.count(json.dumps(request.body, ensure_ascii=False))
            print(f"{what}: {counter.count(listing):,} tokens about skills, {whole:,} in the request")

        measure("before")
        print(skillpager("install --agent claude-code --replace-listing --yes", home, project))
        measure("with --replace-listing")
        print(skillpager("uninstall --agent claude-code --yes", home, project))
        measure("after uninstall")
        print(
            "skills and settings are as before:", before == (digest(claude / "skills"), settings.read_bytes())
        )


if __name__ == "__main__":
    main()
