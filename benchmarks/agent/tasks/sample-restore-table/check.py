"""Solved if the list holds what belongs to the table and the foreign key to it, and the command uses it."""

import shlex
import sys
from itertools import pairwise
from pathlib import Path

# by the number that begins an entry; 3231 is the foreign key of another table, which CASCADE has dropped
EXPECTED = {215, 216, 3350, 3210, 3340, 3351, 3215, 3221, 3230, 3231}


def fail(reason: str) -> None:
    """End the check: the task is not solved."""
    print(reason)
    sys.exit(1)


try:
    lines = Path("orders.list").read_text(encoding="utf-8").splitlines()
    words = shlex.split(Path("command.txt").read_text(encoding="utf-8").replace("\\\n", " "))
except (OSError, ValueError) as error:
    fail(f"an answer cannot be read: {error}")
kept = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(";")]
numbers = {int(line.split(";")[0]) for line in kept if line.split(";")[0].isdigit()}
if missing := EXPECTED - numbers:
    fail(f"missing entries: {sorted(missing)}")
if extra := numbers - EXPECTED:
    fail(f"entries of other tables: {sorted(extra)}")
options = " ".join(words).replace("=", " ").split()
if options[:1] != ["pg_restore"] or "shop-2025-03-01.dump" not in options:
    fail("command.txt holds no pg_restore of the dump")
if not {"--single-transaction", "-1"} & set(options):
    fail("the restore is not all or nothing")
used = [after for option, after in pairwise(options) if option in ("--use-list", "-L")]
into = [after for option, after in pairwise(options) if option in ("--dbname", "-d")]
if used != ["orders.list"] or into != ["shop"]:
    fail("the restore does not use orders.list, or goes into another database")
print("the table is restored")
