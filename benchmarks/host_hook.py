"""The hook in Claude Code, really run: is the page of a prompt before the model with its first request?

    python benchmarks/host_hook.py PROGRAM

PROGRAM is the command of Claude Code, such as the one that `benchmarks/hosts.py --prefix DIR` installs. It
runs with a home folder of its own, against `scripted_model`.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from host_sessions import PAGE_LINE, QUERY, claude_code, private_environment, run_agent
from hosts import SKILLS, private_home, version_of
from scripted_model import Request, Say, ScriptedModel

ELSEWHERE = "Thanks, that looks good to me."
BROKEN = "--no-such-option"


class Recorder(ScriptedModel):
    """A model that ends every turn at once; `requests` holds all that it was asked."""

    def answer(self, request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the events of an answer."""
        self.requests.append(request)
        return super().answer(request)


def ask(program: Path, home: Path, project: Path, prompt: str) -> tuple[int, str]:
    """Return the exit code of a session of one prompt, and the longest conversation that its model saw."""
    model = Recorder(lambda _: Say("Done."), "no tool")
    command, environment = claude_code(program, home)
    command[command.index("-p") + 1] = prompt
    done = run_agent(model, command, environment, project)
    return done.returncode, max((request.conversation for request in model.requests), key=len, default="")


def main() -> None:
    """Run and print."""
    program = Path(sys.argv[1]).resolve()
    with private_home() as (home, project):
        print("version:", version_of(program, home))
        words = ["install", "--agent", "claude-code", "--hook", "--skills-dir", str(SKILLS), "--yes"]
        start = [sys.executable, "-m", "skillpager"]
        subprocess.run([*start, *words], env=private_environment(home), cwd=project, check=True)
        subprocess.run([*start, "index", str(SKILLS)], env=private_environment(home), cwd=project, check=True)
        # on a busy machine a page takes longer than the hook waits by default
        settings = home / ".claude" / "settings.json"
        settings.write_text(
            settings.read_text().replace("hook --skills-dir", "hook --seconds 14 --skills-dir")
        )
        code, told = ask(program, home, project, QUERY)
        print("the page is before the model:", code == 0 and PAGE_LINE in told)
        code, told = ask(program, home, project, ELSEWHERE)
        print("a prompt that needs no skill goes on without:", code == 0 and "SkillPager" not in told)
        settings.write_text(settings.read_text().replace("hook --seconds", f"hook {BROKEN} --seconds"))
        code, told = ask(program, home, project, QUERY)
        print("a prompt with a broken hook goes on:", code == 0 and QUERY in told and PAGE_LINE not in told)


if __name__ == "__main__":
    main()
