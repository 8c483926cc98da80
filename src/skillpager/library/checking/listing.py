"""The lists of skills that hosts put into prompts: how much of a library they show of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# estimate of both hosts; code.claude.com/docs/en/skills gives 8,000 characters for 200,000 tokens
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A skill in a list: what its front matter says, and its SKILL.md."""

    name: str
    description: str
    when_to_use: str
    file: Path


@dataclass(frozen=True, slots=True)
class Host:
    """A host that rations its list of skills.

    Attributes:
        name: Its name.
        share: Part of the context window that the list may take.
        window: Tokens of the context window that is assumed.
        entry_characters: Most characters of an entry's description; None for no limit.
        shows_when: Whether an entry has the front matter's `when_to_use`.
        shows_path: Whether an entry names the file.
        remedy: How its user raises the ration.
    """

    name: str
    share: float
    window: int
    entry_characters: int | None
    shows_when: bool
    shows_path: bool
    remedy: str


HOSTS = (
    # code.claude.com/docs/en/skills: 1 % of the window, 1,536 characters of description and when_to_use;
    # names always stay, the descriptions of the skills that are used least go
    Host("Claude Code", 0.01, 200_000, 1_536, True, False, "raise skillListingBudgetFraction"),
    # developers.openai.com/codex/skills: 2 % of the window; descriptions are shortened first, then skills are
    # left out. The window is that of GPT-5 in Codex, of which openai/codex#24299 shows the 2 %: 5,440 tokens.
    Host("Codex", 0.02, 272_000, None, False, True, "raise skills.max_context_tokens"),
)


@dataclass(frozen=True, slots=True)
class Listing:
    """The list of a library's skills in the prompt of a host, in characters.

    Attributes:
        host: The host.
        ration: What the list may take.
        needed: What it takes with whole descriptions.
        names: What it takes without descriptions.
        skills: Number of skills.
        described: Number of descriptions of average length that fit.
        listed: Number of skills that fit without their descriptions.
    """

    host: Host
    ration: int
    needed: int
    names: int
    skills: int
    described: int
    listed: int

    @property
    def fits(self) -> bool:
        """Whether every description is shown."""
        return self.needed <= self.ration


def list_for(host: Host, entries: Sequence[Entry]) -> Listing:
    """Return how a host lists skills."""
    ration = int(host.share * host.window * CHARACTERS_PER_TOKEN)
    bare = described = 0
    for entry in entries:
        bare += len(f"- {entry.name}\n") + (len(f" (file: {entry.file})") if host.shows_path else 0)
        when = f" - {entry.when_to_use}" if host.shows_when and entry.when_to_use else ""
        described += len(f": {f'{entry.description}{when}'[: host.entry_characters]}")
    count = len(entries)
    left = max(0, ration - bare)
    fit = count if described <= left else count * left // described
    listed = count if bare <= ration else count * ration // bare
    return Listing(host, ration, bare + described, bare, count, fit, listed)
