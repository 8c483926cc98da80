"""What documents show: their blocks of code, and running them as a reader does who pastes them."""

import os
import re
import subprocess
import sys
from pathlib import Path


def blocks(document: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    fence = rf"^(`{{3,}}){language}\n(.*?)^\1$"
    return [code for _, code in re.findall(fence, document.read_text(encoding="utf-8"), re.DOTALL | re.M)]


def stands_in(shortened: str, printed: str) -> bool:
    """Tell whether the parts of a text that is shortened by lines of `…` stand in what is printed, in order."""
    position = 0
    for part in map(str.strip, shortened.split("\n…\n")):
        position = printed.find(part, position)
        if position < 0:
            return False
    return True


def path_with_skillpager(folder: Path) -> str:
    """Return a PATH whose `skillpager` is the one under test; its file is made in `folder`."""
    program = folder / "bin" / "skillpager"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m skillpager "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def paste(code: str, *, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run shell code up to its first failure."""
    return _run(["bash", "-e", "-o", "pipefail", "-c", code], env=env, cwd=cwd)


def run_python(code: str, *, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python code with every warning an error."""
    return _run([sys.executable, "-W", "error", "-c", code], env=env, cwd=cwd)


def _run(command: list[str], *, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=env, cwd=cwd, capture_output=True, text=True, check=False, encoding="utf-8"
    )
