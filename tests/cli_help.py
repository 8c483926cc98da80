"""The generator of docs/cli.md, and the examples in the help texts."""

import importlib.util
from types import ModuleType

from cli_process import ROOT


def generator() -> ModuleType:
    """Return docs/generate_cli.py as a module."""
    spec = importlib.util.spec_from_file_location("generate_cli", ROOT / "docs" / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examples() -> list[str]:
    """Return every command line that follows `Examples:` in a help text."""
    found = []
    for _, text in generator().helps():
        _, _, after = text.partition("Examples:\n")
        found += [line.strip() for line in after.partition("\n\n")[0].splitlines()]
    return found
