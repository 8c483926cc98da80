"""Steps of every command that asks a model: open it, agree on the cost, print the bill and what is left."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from skillpager.bench.cli.options import ModelOptions
from skillpager.cli.messages import FAILED, UsageError, note, print_error, print_json, print_text
from skillpager.cli.views import counted
from skillpager.errors import BenchError, SettingsError
from skillpager.settings import load_settings

if TYPE_CHECKING:
    from skillpager.bench.data.chat import Bill, ChatModel
    from skillpager.json_types import JsonObject

# more reasons would hide what to do about them
MAX_SHOWN = 5


def open_model(options: ModelOptions, purpose: str, max_retries: int) -> "ChatModel":
    """Return the model that options and settings name.

    Raises:
        SettingsError: No model is named, or endpoint, key, price or limit cannot be used.
        UsageError: One price is given without the other.
    """
    from skillpager.bench.data.chat import ChatModel, Prices, Spending
    from skillpager.remote.endpoint import Endpoint

    # as variables, so that a key meant for another address does not go to this one
    given = {"SKILLPAGER_LLM_BASE_URL": options.base_url, "SKILLPAGER_LLM_MODEL": options.model}
    chosen = {variable: value for variable, value in given.items() if value is not None}
    settings = load_settings(environ={**os.environ, **chosen})
    if (options.price_in is None) != (options.price_out is None):
        raise UsageError("Prices come in pairs: give both --price-in and --price-out.")
    both = options.price_in is not None and options.price_out is not None
    prices = Prices(options.price_in or 0.0, options.price_out or 0.0) if both else None
    spending = Spending(prices, max_cost=options.max_cost)
    if not settings.llm_model:
        raise SettingsError(
            f"{purpose} needs a model: give --model, or set SKILLPAGER_LLM_MODEL (and --base-url or "
            "SKILLPAGER_LLM_BASE_URL for another endpoint than OpenAI's)."
        )
    endpoint = Endpoint(
        settings.llm_model,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        key_variable="SKILLPAGER_LLM_API_KEY",
        purpose=purpose,
        timeout=options.timeout,
        max_retries=max_retries,
    )
    return ChatModel(endpoint, spending=spending)


def agree(bill: "Bill", options: ModelOptions) -> bool:
    """Return False for a dry run, which prints the estimate; on a terminal ask for confirmation."""
    if options.dry_run:
        if options.as_json:
            print_json({"estimate": bill_json(bill)})
        else:
            print_text(bill_text(bill, about=True))
        return False
    if bill.requests:
        note(bill_text(bill, about=True))
        if not options.yes and sys.stdin.isatty() and sys.stderr.isatty():
            typer.confirm("Go on?", abort=True, err=True)
    return True


def bill_json(bill: "Bill") -> "JsonObject":
    """Return a bill for `--json`."""
    return {
        "requests": bill.requests,
        "tokens_in": bill.usage.tokens_in,
        "tokens_out": bill.usage.tokens_out,
        "cost": bill.cost,
        "uncounted": bill.uncounted,
    }


def bill_text(bill: "Bill", *, about: bool = False) -> str:
    """Return a bill in words; `about` for an estimate."""
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


def end_asking(what: str, failures: Sequence[tuple[str, str]], stopped: str, *, as_json: bool) -> None:
    """Exit with code 1 if there are failures, each a name and a reason, or the run was stopped.

    `what` is the part that is left to do, such as `3 of 40 skills have no queries yet`.
    """
    if not failures and not stopped:
        return
    reasons = [f"{name}: {reason}" for name, reason in failures[:MAX_SHOWN]]
    if len(failures) > MAX_SHOWN:
        reasons.append(f"{len(failures) - MAX_SHOWN} more")
    if stopped:
        reasons.append(f"the run was stopped: {stopped}")
    text = f"{what}: {'; '.join(reasons)}. What is done is saved: repeat the command to go on."
    print_error(BenchError(text), as_json=as_json)
    raise typer.Exit(FAILED)
