"""Options of a benchmark run."""

from dataclasses import dataclass
from pathlib import Path

QUICK_DOCUMENTS = 1
SAMPLES = Path(__file__).parents[1] / "examples" / "skills"


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of one run.

    Attributes:
        data: Folders of `<id>.md` and `<id>.ann.json`; empty for the sample skills.
        quick: Few repetitions and small inputs, to see that everything runs.
    """

    data: tuple[Path, ...] = ()
    quick: bool = False

    def documents(self) -> list[Path]:
        """Return the documents to measure on: those of all folders, else the sample skills."""
        found = [path for folder in self.data for path in sorted(folder.glob("*.md"))]
        found = [path for path in found if path.with_suffix(".ann.json").exists()]
        found = found or sorted(SAMPLES.glob("*/SKILL.md"))
        return found[:QUICK_DOCUMENTS] if self.quick else found

    def corpus(self) -> str:
        """Return what `documents` are, in words and without a path."""
        if not self.data:
            return "sample skills of `examples/skills`"
        return "documents of " + " + ".join(f"`{folder.name}`" for folder in self.data)
