"""The payer under a policy that wants people to approve taking a payment back."""

from __future__ import annotations

from dataclasses import replace

from approvals.policy import ApprovalRule, RulePolicy
from tests.outside import PAYER

TAKING_BACK = ApprovalRule(name="taking back", applies=lambda step: step.tool == "take_back")
CAREFUL = replace(PAYER, policy=RulePolicy(version="1", rules=(TAKING_BACK,)))
