"""Policies that are documents: what they ask, what is refused where it is typed, and what happens where they fail."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.documents import DocumentPolicy, DocumentRefused, policy_of
from approvals.expressions import LONGEST, ExpressionRefused, compiled, context_of, money, rounded_up
from approvals.policy import CheckKind, Party, Quorum, Step, requirement

DOCS = Path(__file__).resolve().parents[2] / "docs"
DEAR = 'tool == "refund" && !(cost < money("100.00") && arguments.currency == "EUR")'


def text(*rules: dict[str, Any], checks: tuple[dict[str, Any], ...] = ()) -> str:
    named = [{"name": f"rule {n}", **rule} for n, rule in enumerate(rules, 1)]
    return json.dumps({"rules": named, "checks": list(checks)})


def policy(*rules: dict[str, Any], checks: tuple[dict[str, Any], ...] = ()) -> DocumentPolicy:
    return policy_of(text(*rules, checks=checks), version="refunds/held/1")


def step(cost: str | None = None, tool: str = "refund", **other: Any) -> Step:
    arguments = {"currency": "EUR", "amount": cost or "0.00"}
    return Step(
        **{"tool": tool, "arguments": arguments, "cost": cost and Decimal(cost), "reversible": False, **other}
    )


@pytest.mark.parametrize(
    ("when", "costs", "asked"),
    [
        (DEAR, ["99.99", "1"], False),
        (DEAR, ["1", "100.00"], True),
        (DEAR, ["99.9999999"], True),  # finer than a millionth: the next one, never the one below
        ('money(arguments.amount) >= money("100.00")', ["99.99"], False),
        ('money(arguments.amount) >= money("100.00")', ["100.000000"], True),
        ('total_cost > money("0.30")', ["0.10", "0.20"], False),  # as doubles it would be
        ('total_cost > money("0.29")', ["0.10", "0.20"], True),
        ("steps > 1", ["1"], False),
        ("steps > 1", ["1", "1"], True),
        ('"gb" in ["gb"] && !reversible', ["1"], True),
        ('principal == "anton" || tenant.startsWith("acme") || agent == "refunds"', ["1"], False),
        ('cost == null || has(arguments.iban)', ["1"], False),
        ('arguments.currency.endsWith("R") && size(arguments) == int("2")', ["1"], True),
    ],
)  # fmt: skip
def test_a_rule_looks_at_the_steps_exactly(when: str, costs: list[str], asked: bool) -> None:
    found = requirement(policy=policy({"when": when}), steps=[step(cost) for cost in costs])
    assert (found.needed, found.failure) == (int(asked), "")


def test_rules_count_together_and_groups_are_quorums() -> None:
    rules = (
        {"when": "true", "needed": 2, "not_by": ["principal"], "stands_for": "2h"},
        {"when": 'cost >= money("10")', "groups": ["Legal", "Finance"], "stands_for": "30m"},
        {"when": 'cost >= money("10")', "needed": 2, "groups": ["Finance", "Legal"]},
        {"when": 'cost >= money("1000")', "needed": 5, "groups": ["Board"], "not_by": ["other_tenant"]},
    )
    found = requirement(policy=policy(*rules), steps=[step("10")])
    assert found.needed == 2 and found.quorums == (Quorum(needed=2, groups=("Finance", "Legal")),)
    assert found.not_by == {Party.PRINCIPAL} and found.stands_for and found.stands_for.total_seconds() == 1800
    assert found.because == ("rule 1", "rule 2", "rule 3")


REFUSED = {
    "tool ==": "1:8", "\n tool == )": "2:10", "": "1:1", "unknown == 1": "1:1", "tool == 'a' && x.y": "1:16",
    "now()": "1:1", "tool.matches('a+')": "1:6", "[1].all(x, x > 0)": "1:5", "arguments.map (k, k) == []": "1:11",
    "[tool].exists(tool, true)": "1:8", "[1].exists_one(x, true)": "1:5", "arguments.filter(x, true) == []": "1:11",
    "tool": "1:1", "size(tool)": "1:1", "true ? 1 : 2": "1:1", "cost >= 100": "1:6", "100 <= cost": "1:5",
    "cost == '100'": "1:6", "(cost) >= 1": "1:1", "cost >= 99.99": "1:9", "money('a') < cost": "1:7",
    "money(arguments.amount) > 5": "1:25", "arguments.amount > '20.00'": "1:18", "cost > double('1')": "1:8",
    "r'a' == tool": "1:2", "'''a''' == tool": "1:3", "{'a': 1}.a == 1": "1:1", "tool < 5": "1:1",
    "((((((((((((((((((((((true))))))))))))))))))))))": "1:21", "!" * (LONGEST + 1): "1:1", "1 + 1 == 2.0": "1:10",
    "steps == 9223372036854775808": "1:10", "tool == `a`": "1:9",
}  # fmt: skip


@pytest.mark.parametrize("source", REFUSED)
def test_what_no_policy_may_say_is_refused_where_it_stands(source: str) -> None:
    with pytest.raises(ExpressionRefused) as refused:
        compiled(source)
    assert f"{refused.value.line}:{refused.value.column}" == REFUSED[source]
    with pytest.raises(DocumentRefused, match="rule 1"):
        policy({"when": source})


def test_a_name_inside_a_text_is_no_call() -> None:
    assert compiled("tool == 'all(x, unknown) >= 1.5 // map(' // exists(\n").names == {"tool"}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "Line 1, column 2"),
        ('{"rules": [], "rules": []}', "stands twice"),
        ('{"rules": [{"name": "a", "when": "true", "needed": 0}]}', "needed"),
        ('{"rules": [{"name": "a", "when": "true", "neded": 2}]}', "neded"),
        ('{"rules": [{"name": "a", "when": "true", "not_by": ["friend"]}]}', "not_by"),
        ('{"rules": [{"name": "a", "when": "true", "stands_for": "two hours"}]}', "two hours"),
        ('{"rules": [{"name": "a", "when": "true"}, {"name": "a", "when": "false"}]}', "Two rules"),
        ('{"rules": [{"name": "a\\ud800", "when": "true"}]}', "characters"),
        ('{"rules": [{"name": "a\\u0000", "when": "true"}]}', "characters"),
        ('{"rules": NaN}', "NaN"),
        ('{"rules": [], "more": ' + "1" * 5000 + "}", "digits"),
        ("[" * 20_000 + "]" * 20_000, "nested"),
        ('{"rules": []}' + " " * 50_000, "longer"),
        ("[]", "form"),
    ],
)
def test_a_document_that_is_none_is_refused(document: str, said: str) -> None:
    with pytest.raises(DocumentRefused, match=said):
        policy_of(document, version="1")


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(DocumentRefused) as refused:
        policy({"when": "x"}, {"when": "cost > 1"}, {"when": "true", "stands_for": "1y"})
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize("when", [
    "arguments.missing == 1", 'cost >= money("1")', "arguments.list[5] == 1", "money(arguments.word) > cost",
    "arguments.word", "arguments.number + 9223372036854775807 > 0", "arguments.number > arguments.word",
])  # fmt: skip
def test_a_rule_that_fails_asks_for_what_it_would_ask_and_for_a_person(when: str) -> None:
    arguments = {"word": "no amount", "list": [], "number": 7}
    failing = {"when": when, "needed": 2, "groups": ["Finance"]}
    found = requirement(policy=policy(failing), steps=[step(arguments=arguments)])
    assert (found.needed, len(found.quorums)) == (2, 1)
    assert {Party.PRINCIPAL, Party.PLAN_AUTHOR} <= found.not_by
    assert "rule 1" in found.failure and "no amount" not in found.failure


def test_a_cost_that_cannot_be_compared_asks_a_person() -> None:
    for cost in ("NaN", "Infinity", "1e40"):
        assert requirement(policy=policy({"when": 'cost < money("1")'}), steps=[step(cost)]).needed == 1


LIMIT = {
    "name": "limit",
    "kind": "hard",
    "must": 'cost == null || cost <= money("500")',
    "sentence": "At most 500.",
}


def test_a_check_that_fails_takes_a_person_even_where_no_rule_asks() -> None:
    checked = policy(checks=(LIMIT,))
    assert requirement(policy=checked, steps=[step("500"), step()]).needed == 0
    found = requirement(policy=checked, steps=[step("500"), step("500.01")])
    assert found.needed == 1 and Party.PRINCIPAL in found.not_by
    assert [(c.name, c.kind, c.steps, c.sentence) for c in found.failed] == [
        ("limit", CheckKind.HARD, (1,), "At most 500.")
    ]


def test_a_check_that_cannot_be_told_is_not_passed() -> None:
    check = {"name": "iban", "kind": "soft", "must": "arguments.iban.startsWith('DE')", "sentence": "German."}
    found = requirement(policy=policy(checks=(check,)), steps=[step("1")])
    assert found.needed == 1 and "iban" in found.failed[0].failure


@given(st.text(max_size=60))
def test_no_text_does_more_than_be_refused(source: str) -> None:
    _harmless(source)


_PIECES = st.sampled_from([
    "tool", "cost", "arguments", ".", "(", ")", "[", "]", "&&", "||", "==", ">=", "<", "!", "money", '"1.00"', "'a'",
    "all", "map", "x", ",", "in", "true", "null", "1", "1.5", "-", "+", "?", ":", "//", "\n", "size", '"""', "r'", "{",
    "}", "total_cost", "steps", "has", " ", "@", "\x00", "\ud800", "9" * 30, "'\\", "int", "b'",
])  # fmt: skip


@given(st.lists(_PIECES, max_size=25).map(" ".join) | st.lists(_PIECES, max_size=25).map("".join))
def test_no_pieces_put_together_loop_or_pass_for_a_no(source: str) -> None:
    _harmless(source)


def _harmless(source: str) -> None:
    """Refused, or it says true or false, or people are asked."""
    try:
        expression = compiled(source)
    except ExpressionRefused:
        return
    assert set(expression.program.variables()) <= {
        "tool", "arguments", "cost", "reversible", "tenant", "agent", "principal", "total_cost", "steps",
    }  # fmt: skip
    assert "@not_strictly_false" not in expression.program.functions()
    found = requirement(policy=policy({"when": source}), steps=[step("5"), step()])
    assert found.needed in (0, 1) and (not found.failure or found.needed == 1)


@given(
    st.decimals(min_value=0, max_value=10**12, places=6), st.decimals(min_value=0, max_value=10**12, places=8)
)
def test_money_is_exact_and_a_cost_never_counts_for_less(amount: Decimal, cost: Decimal) -> None:
    assert money(str(amount)).total_seconds() >= 0
    assert (money(str(amount)) < rounded_up(cost)) == (amount < cost)
    assert rounded_up(amount) == money(amount)


@given(
    st.decimals(min_value=-(10**13), max_value=10**13, places=6),
    st.decimals(min_value=0, max_value=10**13, places=6),
    st.sampled_from(["==", "<", ">="]),
)
def test_an_amount_that_an_expression_writes_out_is_what_its_call_would_give(
    amount: Decimal, cost: Decimal, sign: str
) -> None:
    """It is made once, when the expression is accepted, also beyond what CEL writes as a duration."""
    written = f'(cost {sign} money( "{amount:f}" )) == (cost {sign} money(arguments.amount))'
    written = f'{written} && tool != "money(\\"1\\")"'
    context = context_of({"cost": rounded_up(cost), "arguments": {"amount": f"{amount:f}"}, "tool": "x"})
    assert compiled(written).holds(context)


@pytest.mark.parametrize("value", [1.5, True, None, "1.0000001", "1e20", "NaN", "", "1,5", [], "Infinity"])
def test_what_is_no_exact_amount_is_none(value: object) -> None:
    with pytest.raises(ValueError, match="amount"):
        money(value)


def test_the_examples_of_the_docs_are_policies_that_ask_for_what_is_said_there() -> None:
    page = DOCS.joinpath("policies.md").read_text(encoding="utf-8")
    refunds, careful = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    dear = policy_of(refunds, version="docs/1").evaluate([step("1000.00")])
    assert dear.needed == 2 and dear.quorums == (Quorum(needed=1, groups=("Finance",)),)
    assert Party.CREATOR in dear.not_by
    assert policy_of(refunds, version="docs/1").evaluate([step("999.99")]).needed == 1
    assert policy_of(refunds, version="docs/1").evaluate([step("99.99")]).needed == 0
    stopped = policy_of(careful, version="docs/2").evaluate([step("5000.01")] * 11)
    assert [(check.name, check.kind) for check in stopped.failed] == [
        ("limit", CheckKind.HARD),
        ("short plans", CheckKind.SOFT),
    ]
