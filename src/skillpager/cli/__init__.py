"""The command line."""

from skillpager.cli.app import main

__all__ = ["main"]
