"""Later versions of the payer: one that takes its runs over as they are, and others that differ in one thing each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from approvals.policy import RulePolicy
from tests.outside import PAYER, POLICY, LookUp, Pay, PayArguments, Tell


class PatientPay(Pay):
    """The same operations, declared with more patience."""

    patience: ClassVar[timedelta | None] = timedelta(days=1)


class OtherPay(Pay):
    """Pays the same order under another operation id: it could be done twice."""

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"payment:{arguments['order']}"


class ElsewherePay(Pay):
    system = "other_bank"


class NotedArguments(PayArguments):
    note: str = ""


class NotedPay(Pay):
    """Takes one argument more, which has a default."""

    schema = NotedArguments


class DemandingArguments(PayArguments):
    note: str


class DemandingPay(Pay):
    schema = DemandingArguments  # a schema of its own, as any tool may have


class FaultyPay(Pay):
    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        raise ZeroDivisionError


TOOLS = PAYER.tools
#: Everything as before, but for the version and the prompt.
SAME = replace(PAYER, version="2", takes_over=("1",), versions={"prompt": "p-2"})
#: Another tool declaration: what was approved does not stand with it.
CHANGED = replace(SAME, version="3", tools=(LookUp(), PatientPay(), Tell()))
OTHER_POLICY = replace(SAME, version="4", policy=RulePolicy(version="2", rules=POLICY.rules))
STRANGER = replace(SAME, version="5", takes_over=())
OTHER_IDS = replace(SAME, version="6", tools=(LookUp(), OtherPay(), Tell()))
ELSEWHERE = replace(SAME, version="7", tools=(LookUp(), ElsewherePay(), Tell()))
NOTED = replace(SAME, version="8", tools=(LookUp(), NotedPay(), Tell()))
DEMANDING = replace(SAME, version="9", tools=(LookUp(), DemandingPay(), Tell()))
FAULTY = replace(SAME, version="10", tools=(LookUp(), FaultyPay(), Tell()))
WITHOUT_PAY = replace(SAME, version="11", tools=(LookUp(), Tell()))
BLIND_TO_ORDERS = replace(SAME, version="12", tools=(Pay(), Tell()))
