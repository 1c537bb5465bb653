"""A file of orders is taken whole or not at all, and a refusal names the row, the column and the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.refunds import csvfile
from examples.refunds.csvfile import COLUMNS, CsvRefused, Problem, read_orders

HEADER = ",".join(COLUMNS)
GOOD = {
    "order": "1042",
    "supplier": "Nord GmbH",
    "email": "pay@nord.example",
    "amount": "120.00",
    "currency": "EUR",
    "ticket": "T-1",
}
ORDERS = Path(csvfile.__file__).with_name("orders.csv")


def row(**cells: str) -> str:
    """A good row but for the cells that are named."""
    return ",".join((GOOD | cells).values())


def file(*rows: str, header: str = HEADER) -> bytes:
    """A file of these rows."""
    return "\n".join((header, *rows, "")).encode()


def refused(data: bytes) -> list[Problem]:
    """The problems that a refusal shows."""
    with pytest.raises(CsvRefused) as refusal:
        read_orders(data)
    return list(refusal.value.problems)


def test_it_takes_the_demo_file() -> None:
    rows = read_orders(ORDERS.read_bytes())
    assert len(rows) == 25
    assert rows[1].supplier == "深圳市华强电子有限公司"
    assert {float(order.amount) >= 100 for order in rows} == {True, False}
    assert len({order.start_key for order in rows}) == 25


@pytest.mark.parametrize(("written", "kept"), [("120", "120.00"), ("0.5", "0.50"), ("007.10", "7.10")])
def test_amounts_are_kept_with_two_digits(written: str, kept: str) -> None:
    assert read_orders(file(row(amount=written)))[0].amount == kept


def test_the_columns_may_stand_in_any_order_with_a_mark_in_front_and_other_line_ends() -> None:
    header = "\ufeffticket,currency,amount,email,supplier,order"
    data = f"{header}\r\nT-1,EUR,1.00,a@b.example,北京,7\r\n\r\n".encode()
    (order,) = read_orders(data)
    assert (order.order, order.supplier, order.ticket) == ("7", "北京", "T-1")


@pytest.mark.parametrize(
    ("cells", "column", "cause"),
    [
        ({"amount": "-5.00"}, "amount", "negative"),
        ({"amount": "\u22125.00"}, "amount", "negative"),
        ({"amount": "0.00"}, "amount", "zero"),
        ({"amount": "1.234"}, "amount", "must look like"),
        ({"amount": "1e3"}, "amount", "must look like"),
        ({"amount": "NaN"}, "amount", "must look like"),
        ({"amount": "١٢"}, "amount", "must look like"),
        ({"amount": "=1+1"}, "amount", "must look like"),
        ({"amount": ""}, "amount", "blank"),
        ({"supplier": "   "}, "supplier", "blank"),
        ({"supplier": " Nord"}, "supplier", "begins or ends"),
        ({"supplier": "=HYPERLINK(1)"}, "supplier", "formula"),
        ({"supplier": "+1"}, "supplier", "formula"),
        ({"supplier": "-1"}, "supplier", "formula"),
        ({"supplier": "@SUM(A1)"}, "supplier", "formula"),
        ({"supplier": "\t=1"}, "supplier", "formula"),
        ({"supplier": "＝1"}, "supplier", "formula"),
        ({"supplier": "No\0rd"}, "supplier", "NUL"),
        ({"supplier": '"No\nrd"'}, "supplier", "line break"),
        ({"supplier": "x" * 201}, "supplier", "longer"),
        ({"email": "nobody"}, "email", "mail address"),
        ({"email": "a@b@c.example"}, "email", "mail address"),
        ({"currency": "eur"}, "currency", "three capital"),
        ({"order": "10/42"}, "order", "Only letters"),
        ({"ticket": "T 1"}, "ticket", "Only letters"),
    ],
)
def test_a_bad_cell_is_named(cells: dict[str, str], column: str, cause: str) -> None:
    (problem,) = refused(file(row(order="1"), row(**cells)))
    assert (problem.row, problem.column) == (3, column)
    assert cause in problem.cause


def test_a_missing_column_is_named() -> None:
    (problem,) = refused(file(header=HEADER.replace(",amount", "")))
    assert (problem.row, problem.column, problem.cause) == (1, "amount", "The column is missing.")


def test_unknown_and_repeated_columns_are_named() -> None:
    problems = refused(file(header=f"{HEADER},note,order"))
    assert [(problem.column, problem.cause) for problem in problems] == [
        ("note", "The column is not known."),
        ("order", "The column stands twice."),
    ]


def test_a_duplicate_order_names_both_rows() -> None:
    (problem,) = refused(file(row(order="1"), row(order="2"), row(order="1", amount="3.00")))
    assert str(problem) == "Row 4, column order: The order 1 already stands in row 2."


@pytest.mark.parametrize(
    ("data", "row_number", "cause"),
    [
        (b"", None, "empty"),
        (b"\n\n", None, "empty"),
        (file(), None, "no orders"),
        (file(row(), "", row(order="2")), 3, "empty"),
        (file("1,2,3"), 2, "3 cells instead of 6"),
        (file(row(), '"unclosed'), 3, "cannot be read"),
        (file(row()) + b"7,N\xe4gel,a@b.example,1.00,EUR,T\n", 3, "not UTF-8"),
        (HEADER.encode("utf-16"), 1, "not UTF-8"),
    ],
)
def test_a_bad_file_is_refused(data: bytes, row_number: int | None, cause: str) -> None:
    (problem,) = refused(data)
    assert problem.row == row_number
    assert cause in problem.cause


def test_twenty_problems_are_shown_and_all_are_counted() -> None:
    rows = [row(order=str(number), amount="-1") for number in range(30)]
    with pytest.raises(CsvRefused) as refusal:
        read_orders(file(*rows))
    assert (len(refusal.value.problems), refusal.value.total) == (20, 30)
    assert "Row 2, column amount: The amount is negative." in str(refusal.value)


def test_too_many_rows_are_refused_and_ten_thousand_are_taken() -> None:
    rows = [row(order=str(number)) for number in range(20_001)]
    assert len(read_orders(file(*rows[:10_000]))) == 10_000
    (problem,) = refused(file(*rows))
    assert "20001 rows" in problem.cause


def test_the_start_key_follows_the_row_and_not_the_file() -> None:
    first, second = read_orders(file(row(order="1"), row(order="2")))
    (again,) = read_orders(file(row(order="1", amount="120")))
    (other,) = read_orders(file(row(order="1", amount="121")))
    assert first.start_key == again.start_key
    assert len({first.start_key, second.start_key, other.start_key}) == 3


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    with pytest.raises(CsvRefused):
        read_orders(HEADER.encode() + b"\n" + data.replace(b"@", b""))


@given(st.text(min_size=1, max_size=40))
def test_a_supplier_is_kept_as_it_came_or_refused(supplier: str) -> None:
    quoted = '"' + supplier.replace('"', '""') + '"'
    try:
        data = file(row(supplier=quoted))
    except UnicodeEncodeError:
        return
    try:
        (order,) = read_orders(data)
    except CsvRefused:
        return
    assert order.supplier == supplier


@pytest.mark.parametrize("quote", ["", '"'])
def test_semicolons_are_one_fault_and_not_one_for_each_column(quote: str) -> None:
    header = ";".join(f"{quote}{name}{quote}" for name in COLUMNS)
    (problem,) = refused(file(row().replace(",", ";"), header=header))
    assert str(problem) == "Row 1: Columns are separated by semicolons; use commas."
