"""What commands that ask a language model share: its options, what it costs, and how such a run ends."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import FAILED, UsageError, note, print_error, print_json, print_text

if TYPE_CHECKING:
    from skillpager.bench.data.chat import ChatModel
    from skillpager.bench.data.spending import Bill, Spending
    from skillpager.output.json import JsonObject

DEFAULT_JOBS = 8  # paper §4.1
# reasoning models think for minutes
DEFAULT_TIMEOUT = 180.0
# more reasons would hide what to do about them
MAX_SHOWN = 5

ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME", help="Chat model; SKILLPAGER_LLM_MODEL by default.", show_default=False
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible endpoint; SKILLPAGER_LLM_BASE_URL by default.",
        show_default=False,
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Requests at a time.")]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="S", min=0.1, help="Seconds to wait for an answer.")
]
PriceIn = Annotated[
    float | None,
    typer.Option(
        "--price-in", metavar="X", min=0, help="Price of a million tokens sent.", show_default=False
    ),
]
PriceOut = Annotated[
    float | None,
    typer.Option(
        "--price-out", metavar="X", min=0, help="Price of a million tokens answered.", show_default=False
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="X",
        min=0,
        help="Stop before this command costs more; needs the prices.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what it would cost, and ask nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal before money is spent.")]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of a command that asks a model, as they were given."""

    model: str | None
    base_url: str | None
    jobs: int
    timeout: float
    price_in: float | None
    price_out: float | None
    max_cost: float | None
    dry_run: bool
    yes: bool
    as_json: bool

    @classmethod
    def of_settings(cls, *, as_json: bool) -> "ModelOptions":
        """Return the options of a command that leaves model and endpoint to the settings."""
        return cls(None, None, DEFAULT_JOBS, DEFAULT_TIMEOUT, None, None, None, False, False, as_json)


def open_model(options: ModelOptions, *, purpose: str, max_retries: int) -> "ChatModel":
    """Return the model that options and settings mean.

    Raises:
        SettingsError: No model is named, or endpoint, key, price or limit cannot be used.
        UsageError: One price is given without the other.
    """
    from skillpager.bench.data.chat import open_chat_model
    from skillpager.settings import load_settings

    # as variables, so that a key meant for another address does not go to this one
    given = {"SKILLPAGER_LLM_BASE_URL": options.base_url, "SKILLPAGER_LLM_MODEL": options.model}
    chosen = {variable: value for variable, value in given.items() if value is not None}
    return open_chat_model(
        load_settings(environ={**os.environ, **chosen}),
        purpose=purpose,
        spending=_spending(options),
        max_retries=max_retries,
        timeout=options.timeout,
    )


def agree(bill: "Bill", options: ModelOptions) -> bool:
    """Tell whether to go on: not in a dry run, which prints the estimate; on a terminal a person is asked."""
    if options.dry_run:
        if options.as_json:
            print_json({"estimate": bill_json(bill)})
        else:
            print_text(_words(bill, about=True))
        return False
    if bill.requests:
        note(_words(bill, about=True))
        if not options.yes and sys.stdin.isatty() and sys.stderr.isatty():
            typer.confirm("Go on?", abort=True, err=True)
    return True


def tell_bill(bill: "Bill") -> None:
    """Say what was paid for."""
    note(_words(bill, about=False))


def bill_json(bill: "Bill") -> "JsonObject":
    """Return a bill for `--json`."""
    return {
        "requests": bill.requests,
        "tokens_in": bill.usage.tokens_in,
        "tokens_out": bill.usage.tokens_out,
        "cost": bill.cost,
        "uncounted": bill.uncounted,
    }


def end(what: str, failures: Sequence[tuple[str, str]], stopped: str, *, as_json: bool) -> None:
    """Exit with code 1 if anything is left to do.

    Args:
        what: What is left, such as `3 of 40 skills have no queries yet`.
        failures: Name and reason of what failed by itself.
        stopped: Why the rest was not tried; empty when all was.
        as_json: How the error is written.
    """
    from skillpager.errors import BenchError

    if not failures and not stopped:
        return
    reasons = [f"{name}: {reason}" for name, reason in failures[:MAX_SHOWN]]
    if len(failures) > MAX_SHOWN:
        reasons.append(f"{len(failures) - MAX_SHOWN} more")
    if stopped:
        reasons.append(f"the run was stopped: {stopped}")
    told = "; ".join(reasons)
    print_error(
        BenchError(f"{what}: {told}. What is done is kept: repeat the command to go on."), as_json=as_json
    )
    raise typer.Exit(FAILED)


def _spending(options: ModelOptions) -> "Spending":
    from skillpager.bench.data.spending import Prices, Spending

    if (options.price_in is None) != (options.price_out is None):
        raise UsageError("Prices come in pairs: give both --price-in and --price-out.")
    priced = options.price_in is not None and options.price_out is not None
    prices = Prices(options.price_in, options.price_out) if priced else None  # type: ignore[arg-type]
    return Spending(prices, max_cost=options.max_cost)


def _words(bill: "Bill", *, about: bool) -> str:
    from skillpager.cli.views import counted

    roughly = "about " if about else ""
    line = (
        f"{counted(bill.requests, 'request')}, {roughly}{counted(bill.usage.tokens_in, 'token')} in and "
        f"{bill.usage.tokens_out:,} out"
    )
    if bill.cost is not None:
        line += f", {roughly}{bill.cost:.4g} at these prices"
    if about:
        line += "; reasoning and repetitions come on top"
    elif bill.uncounted:
        line += f"; the endpoint did not count {counted(bill.uncounted, 'answer')}, which are estimates"
    return line
