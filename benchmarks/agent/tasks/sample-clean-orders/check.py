"""Solved if the cleaned file has the rows that the rules give."""

import csv
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

ORIGINAL_BYTES = 249
EXPECTED = [
    ["order", "customer", "country", "date", "amount", "note"],
    ["1001", "René Fabre", "FR", "2024-04-04", "1300.00", "corrected"],
    ["0002", "Müller & Sohn", "DE", "2024-03-17", "99.00", ""],
    ["1003", "Tangeni", "NA", "2024-04-05", "0.00", ""],  # NA is Namibia here
    ["1004", "Bakker; Zn", "NL", "", "12.50", ""],
]


def fail(reason: str) -> None:
    """End the check: the task is not solved."""
    print(reason)
    sys.exit(1)


try:
    text = Path("orders.clean.csv").read_bytes().decode("utf-8")
except (OSError, UnicodeDecodeError) as error:
    fail(f"orders.clean.csv cannot be read as UTF-8: {error}")
if text.startswith("\ufeff"):
    fail("the file begins with a byte order mark")
rows = list(csv.reader(text.splitlines()))
if len(rows) != len(EXPECTED):
    fail(f"{len(rows)} rows instead of {len(EXPECTED)}")
for row, expected in zip(rows, EXPECTED, strict=True):
    try:
        same_amount = expected is EXPECTED[0] or Decimal(row[4]) == Decimal(expected[4])
    except (IndexError, InvalidOperation):
        same_amount = False
    if not same_amount or row[:4] + row[5:] != expected[:4] + expected[5:]:
        fail(f"{row} instead of {expected}")
if Path("orders.csv").stat().st_size != ORIGINAL_BYTES:
    fail("the original was changed")
print("the file is clean")
