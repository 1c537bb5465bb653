"""Reads a CSV of orders to refund: every row is good, or nothing is taken and the causes are named."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal

from django.utils.translation import gettext as _

COLUMNS = ("order", "supplier", "email", "amount", "currency", "ticket")
MAX_ROWS = 20_000
MAX_BYTES = 16 * 1024 * 1024
SHOWN = 20

# A spreadsheet that opens the file would run such a cell; the full-width forms count too.
_FORMULA = tuple("=+-@\t\r＝＋－＠")
_AMOUNT = re.compile(r"[0-9]{1,10}(\.[0-9]{1,2})?")
_CURRENCY = re.compile(r"[A-Z]{3}")
_EMAIL = re.compile(r"[^\s@,;<>\"]{1,64}@[^\s@,;<>\"]{1,189}")
_NAME = re.compile(r"\w[\w.-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRow:
    """One order to refund. `amount` is decimal text with two digits, such as "120.00"."""

    order: str
    supplier: str
    email: str
    amount: str
    currency: str
    ticket: str

    def as_input(self) -> dict[str, str]:
        """The input of the run that refunds this order."""
        return asdict(self)

    @property
    def start_key(self) -> str:
        """The same for the same row in whatever file: starting it twice starts it once."""
        text = json.dumps(self.as_input(), sort_keys=True, ensure_ascii=False)
        return f"order-{self.order}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def goal(self) -> str:
        """What the run is for, in words."""
        return _("Refund %(amount)s %(currency)s to %(supplier)s for order %(order)s.") % self.as_input()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why the file is refused. Rows are counted as a spreadsheet does: the header is row 1."""

    cause: str
    row: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        """The place and the cause, in words."""
        if self.row is None:
            return self.cause
        if self.column is None:
            return _("Row %(row)d: %(cause)s") % {"row": self.row, "cause": self.cause}
        place = {"row": self.row, "column": self.column, "cause": self.cause}
        return _("Row %(row)d, column %(column)s: %(cause)s") % place


class CsvRefused(Exception):
    """Nothing of the file was taken. `problems` holds the first of them, `total` says how many there are."""

    def __init__(self, problems: list[Problem]) -> None:
        """Keep what a page can show."""
        self.problems = tuple(problems[:SHOWN])
        self.total = len(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def read_orders(data: bytes) -> tuple[OrderRow, ...]:
    """The orders of a file, in its order. Raises CsvRefused."""
    text = _text(data)
    _refuse_semicolons(text)
    records = _records(text)
    positions = _positions(records[0])
    rows = records[1:]
    if not rows:
        raise CsvRefused([Problem(cause=_("The file has a header and no orders."))])
    if len(rows) > MAX_ROWS:
        cause = _("The file has %(rows)d rows; at most %(limit)d are taken at once.")
        raise CsvRefused([Problem(cause=cause % {"rows": len(rows), "limit": MAX_ROWS})])
    return _checked(rows, positions)


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise CsvRefused(
            [Problem(cause=_("The file is larger than %(limit)d bytes.") % {"limit": MAX_BYTES})]
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise CsvRefused([Problem(cause=_("The text is not UTF-8."), row=row)]) from error


def _refuse_semicolons(text: str) -> None:
    """Name the usual fault of a spreadsheet's export once, instead of each column that is missing for it."""
    names = {name.strip(' "') for name in text.partition("\n")[0].rstrip("\r").split(";")}
    if {*COLUMNS} <= names:
        raise CsvRefused([Problem(cause=_("Columns are separated by semicolons; use commas."), row=1)])


def _records(text: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records: list[list[str]] = []
    try:
        for record in reader:
            records.append(record)
    except csv.Error as error:
        cause = _("The quotes or separators cannot be read (%(error)s).") % {"error": error}
        raise CsvRefused([Problem(cause=cause, row=len(records) + 1)]) from error
    while records and not records[-1]:
        records.pop()
    if not records:
        raise CsvRefused([Problem(cause=_("The file is empty."))])
    return records


def _positions(header: list[str]) -> dict[str, int]:
    """Where each column stands."""
    problems = [
        *(_header_problem(_("The column is missing."), name) for name in COLUMNS if name not in header),
        *(_header_problem(_("The column is not known."), name) for name in header if name not in COLUMNS),
        *(_header_problem(_("The column stands twice."), name) for name in COLUMNS if header.count(name) > 1),
    ]
    if problems:
        raise CsvRefused(problems)
    return {name: header.index(name) for name in COLUMNS}


def _header_problem(cause: str, name: str) -> Problem:
    return Problem(cause=cause, row=1, column=name)


def _checked(rows: list[list[str]], positions: dict[str, int]) -> tuple[OrderRow, ...]:
    problems: list[Problem] = []
    taken: list[OrderRow] = []
    first_row: dict[str, int] = {}
    for number, record in enumerate(rows, start=2):
        found = list(_row_problems(record, positions, number=number))
        if not found:
            row = _order_row(record, positions)
            found = list(_duplicate(row.order, first=first_row.setdefault(row.order, number), number=number))
            taken.append(row)
        problems += found
    if problems:
        raise CsvRefused(problems)
    return tuple(taken)


def _row_problems(record: list[str], positions: dict[str, int], *, number: int) -> Iterator[Problem]:
    if not record:
        yield Problem(cause=_("The row is empty."), row=number)
    elif len(record) != len(positions):
        cause = _("The row has %(cells)d cells instead of %(columns)d.")
        yield Problem(cause=cause % {"cells": len(record), "columns": len(positions)}, row=number)
    else:
        for column, position in positions.items():
            if problem := _cell_problem(column, record[position]):
                yield Problem(cause=problem, row=number, column=column)


def _cell_problem(column: str, cell: str) -> str | None:
    """What is wrong with a cell, if anything."""
    if not cell.strip():
        return _("The cell is blank.")
    if "\0" in cell:
        return _("The cell holds a NUL byte.")
    if column != "amount" and cell.startswith(_FORMULA):
        return _("The cell begins like a formula (%(character)r).") % {"character": cell[0]}
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in cell):
        return _("The cell holds a line break or a control character.")
    if cell != cell.strip():
        return _("The cell begins or ends with a blank.")
    return _COLUMN_CHECKS[column](cell)


def amount_of(cell: str) -> Decimal | None:
    """The amount that a text is, in the form that the file takes; None where it is none."""
    return None if _amount_problem(cell) else Decimal(cell)


def _amount_problem(cell: str) -> str | None:
    if cell.startswith(("-", "\u2212")):
        return _("The amount is negative.")
    if not _AMOUNT.fullmatch(cell):
        return _("The amount must look like 120.00: digits, a point, at most two decimals.")
    if Decimal(cell) == 0:
        return _("The amount is zero.")
    return None


def _currency_problem(cell: str) -> str | None:
    return (
        None if _CURRENCY.fullmatch(cell) else _("The currency must be three capital letters, such as EUR.")
    )


def _email_problem(cell: str) -> str | None:
    return None if _EMAIL.fullmatch(cell) else _("This is not a mail address.")


def _name_problem(cell: str) -> str | None:
    if _NAME.fullmatch(cell):
        return None
    return _("Only letters, digits, underscores, points and hyphens are taken here, at most 64.")


def _line_problem(cell: str) -> str | None:
    return None if len(cell) <= 200 else _("The text is longer than 200 characters.")


_COLUMN_CHECKS: dict[str, Callable[[str], str | None]] = {
    "order": _name_problem,
    "supplier": _line_problem,
    "email": _email_problem,
    "amount": _amount_problem,
    "currency": _currency_problem,
    "ticket": _name_problem,
}


def _duplicate(order: str, *, first: int, number: int) -> Iterator[Problem]:
    if first != number:
        cause = _("The order %(order)s already stands in row %(first)d.") % {"order": order, "first": first}
        yield Problem(cause=cause, row=number, column="order")


def _order_row(record: list[str], positions: dict[str, int]) -> OrderRow:
    cells = {name: record[position] for name, position in positions.items()}
    return OrderRow(**cells | {"amount": f"{Decimal(cells['amount']):.2f}"})
