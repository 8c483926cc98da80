"""A judge of others, named `MODULE:NAME` or by the entry point of an installed package."""

from skillpager.bench.data.chat import Blame, NoAnswerError
from skillpager.bench.data.spending import SpendLimitError
from skillpager.bench.judge.cases import Judge, Verdict
from skillpager.bench.judge.evidence_judge import EVIDENCE
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.factories import PartKind, is_installed, load_part


def _unanswered(message: str) -> NoAnswerError:
    """Return the error for a case that an exception left without a verdict; the others are judged."""
    return NoAnswerError(message.removesuffix("."), blame=Blame.QUESTION)


def _verdict_fault(method: str, made: object, _arguments: tuple[object, ...]) -> str:
    if method != "judge" or isinstance(made, Verdict):
        return ""
    return f"an object of {type(made).__name__}, not a Verdict"


JUDGE = PartKind(
    *("judge", "skillpager.judges", Judge, _unanswered),
    passed=(SkillPagerError, NoAnswerError, SpendLimitError),
    fault=_verdict_fault,
)


def names_judge(name: str) -> bool:
    """Return whether a name can be that of a judge of others."""
    return ":" in name or is_installed(JUDGE, name)


def make_judge(name: str) -> Judge:
    """Return the judge that `MODULE:NAME` or an entry point names; this runs its code.

    Raises:
        SettingsError: There is none, it cannot be loaded, or lacks what `bench.judge.Judge` needs.
    """
    judge: Judge = load_part(JUDGE, name, (EVIDENCE, "llm"))
    if judge.id == EVIDENCE:
        raise SettingsError(f"The judge {name} has the id {EVIDENCE}, under which other verdicts are stored.")
    return judge
