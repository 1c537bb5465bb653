"""Example contexts of every page template: a run with a refund in doubt, its plan under review, and the other pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from runs.pages.word_diff import word_diff

NOW: Final = datetime(2026, 11, 30, 7, 44, 10, tzinfo=UTC)
DIGEST: Final = "sha256:4b1e09aa51c0de77f0c3a1d2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4c07a"
KEY: Final = "9c41d2aa51c0de77f0c3a1d2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c407aa"
RUN: Final = "run_7QK2XHB0M9FD"
HOSTILE: Final = "duplicate\u200b, \u202ecapped <img src=x onerror=alert(1)> שלום 重复"

OVERLONG: Final = "x" * 2000 + "e\u0301\u0301\u0301" * 20


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


RUN_FACTS: Final[dict[str, Any]] = {
    "id": RUN,
    "title": "Refund duplicate charges, batch 2291",
    "state": "needs_human",
    "state_note": "1 effect that cannot be undone is in doubt",
    "seq": 43,
    "url": f"/runs/{RUN}/",
    "agent": "refunds",
    "agent_version": "v1",
    "since": ago(42),
    "since_label": "stopped",
    "why_stopped": "because payments did not say what became of E-7",
}

ARGUMENTS: Final[list[dict[str, Any]]] = [
    {"path": "order", "value": '"order-1042"', "type": "text"},
    {"path": "amount", "value": "1240.00", "type": "decimal"},
    {"path": "currency", "value": '"EUR"', "type": "text"},
    {"path": "reason", "value": f'"{HOSTILE}"', "type": "text", "note": "67 characters"},
    {"path": "reference", "value": "321588685835436831", "type": "integer"},
]

UNKNOWN: Final[dict[str, Any]] = {
    "id": "E-7",
    "title": "refund order-1042 to Acme GmbH",
    "amount_text": "EUR\u00a01\u00a0240.00",
    "system": "payments",
    "account": "acct_demo",
    "operation_id": "refund:order-1042",
    "key": KEY,
    "reversible": False,
    "state": "unknown",
    "state_note": "asked 4 times, no answer",
    "intent_at": ago(42.3),
    "sent_at": None,
    "receipt_at": None,
    "intent_seq": 38,
    "arguments": ARGUMENTS,
    "event_url": f"/runs/{RUN}/events/#event-38",
    "reconcile_url": f"/runs/{RUN}/effects/7/reconcile/",
    "last_network": "connection reset after 30.0 s (event 39)",
    "request_digest": DIGEST,
}

CONFIRMED: Final[dict[str, Any]] = {
    **UNKNOWN,
    "id": "E-6",
    "title": "refund order-1041 to 上海示例有限公司",
    "amount_text": "EUR\u00a0310.00",
    "operation_id": "refund:order-1041",
    "state": "confirmed",
    "state_note": None,
    "intent_at": ago(43),
    "receipt_at": ago(42.9),
    "receipt_ref": "rf_9a31",
    "reconcile_url": None,
}

PLANNED: Final[dict[str, Any]] = {
    "id": "E-8",
    "title": "mail to Acme GmbH",
    "system": "mail",
    "operation_id": "mail:order-1042",
    "key": None,
    "reversible": False,
    "state": "planned",
    "intent_at": None,
    "sent_at": None,
    "receipt_at": None,
    "arguments": [],
}

STEPS: Final[list[dict[str, Any]]] = [
    {
        "number": 1,
        "title": "refund order-1042",
        "tool": "refund",
        "system": "payments",
        "writes": True,
        "reversible": False,
        "change": "changed",
        "diffs": [
            {"path": "amount", "before": "1420.00", "after": "1240.00"},
            {"path": "reason", "before": '"duplicate"', "after": f'"{HOSTILE}"'},
        ],
        "state": "unknown",
        "state_note": "E-7",
    },
    {
        "number": 2,
        "title": "close ticket T-5512",
        "tool": "close",
        "system": "tickets",
        "writes": True,
        "reversible": True,
        "undo": "reopen the ticket",
        "change": "added",
        "diffs": [],
        "state": "planned",
    },
    {
        "number": 3,
        "title": "mail to old address",
        "tool": "mail",
        "system": "mail",
        "writes": True,
        "reversible": False,
        "change": "removed",
        "diffs": [],
    },
]

HANDOFF: Final[list[dict[str, Any]]] = [
    {
        "key": "goal",
        "mark": "ok",
        "text": "Committed, goal v2:",
        "quotes": [
            {"by": "Lin", "at": ago(63), "text": "Refund customers charged twice, only under EUR 2\u00a0000"},
            {"by": "Original, Ana", "at": ago(94), "text": "Refund customers charged twice in batch 2291"},
        ],
    },
    {"key": "constraints", "mark": "ok", "text": "2 in force.", "url": "/c", "url_label": "Constraints"},
    {
        "key": "obligations",
        "mark": "attention",
        "text": "1 open, due in 18 min: tell Acme GmbH about the refund.",
    },
    {"key": "last_confirmed", "mark": "ok", "text": "E-6 refund order-1041, receipt rf_9a31, 07:01:12 UTC."},
    {
        "key": "pending",
        "mark": "unknown",
        "text": "1 unknown (E-7), 1 planned and not sent (E-8), 0 in flight.",
    },
    {"key": "observations", "mark": "attention", "text": "2 used, 1 too old (O-2)."},
    {"key": "next", "mark": "next", "text": "Reconcile E-7 (above)."},
]

WHO: Final[list[dict[str, Any]]] = [
    {"action": "Reconcile E-7", "you": True, "url": f"/runs/{RUN}/effects/7/reconcile/"},
    {
        "action": "Approve plan v5",
        "you": False,
        "text": "Not you: you lack the right “approve plans”. Can: Kim, Mia.",
    },
    {"action": "Cancel", "you": True, "url": f"/runs/{RUN}/stop/"},
]

NEXT: Final[dict[str, Any]] = {
    "do": "Ask payments what happened to effect E-7",
    "why": "E-7 (refund EUR\u00a01\u00a0240.00, cannot be undone) may have been sent after 07:01:55 UTC and no "
    "receipt was stored.",
    "not_safe": ["Approving plan v5, restarting and cancelling: each could refund twice."],
    "label": "Reconcile E-7",
    "url": f"/runs/{RUN}/effects/7/reconcile/",
    "other_url": f"/runs/{RUN}/stop/",
    "decided": "Decided by rule NSA-4 from version 43, not by the agent.",
}

TIMELINE: Final[list[dict[str, Any]]] = [
    {
        "seq": 43,
        "at": ago(41),
        "kind": "system",
        "actor": "sweep",
        "text": "needs a person: effect_unknown",
        "url": "#",
    },
    {
        "seq": 39,
        "at": ago(42),
        "kind": "worker",
        "actor": "worker 3",
        "text": HOSTILE,
        "detail": '{"a": 1}',
        "url": "#",
    },
    {"seq": 12, "at": ago(900), "kind": "person", "actor": "Kim", "text": "approved plan v4", "url": "#"},
]

OBSERVATIONS: Final[list[dict[str, Any]]] = [
    {
        "id": f"O-{number}",
        "tool": "lookup",
        "arguments": '{"order":"order-1042"}',
        "value": '{"amount":"1240.00","supplier":"Acme GmbH"}',
        "resource": "order:1042",
        "version": '"W/91"',
        "at": ago(minutes),
        "age": timedelta(minutes=minutes),
        "limit": timedelta(minutes=15),
        "percent": min(100, int(minutes * 100 / 15)),
        "freshness": freshness,
        "used_by": "used by step 1",
        "number": number,
        "again": f"Read again at 07:40:00 UTC: {HOSTILE} 10.00 → 12.50 (+2.50) (event 41)."
        if number == 2
        else "",
    }
    for number, minutes, freshness in ((2, 21, "old"), (3, 12, "ageing"), (1, 3, "fresh"))
]

APPROVALS: Final[list[dict[str, Any]]] = [
    {
        "plan_version": 4,
        "digest": DIGEST,
        "state": "voided",
        "at": ago(90),
        "expires_at": ago(-10),
        "decisions": [{"name": "Kim", "verdict": "approved", "reason": "", "at": ago(80)}],
        "causes": ["No longer valid since 06:41:03 UTC: order:1042 version W/90 -> W/91 (event 30)"],
    }
]

SHELL: Final[dict[str, Any]] = {
    "now": NOW,
    "inbox_count": 12,
    "mine_count": 2,
    "notices_url": "/inbox/notices/?seq=43",
    "poll": timedelta(seconds=1),
    "checked_at": NOW,
}

GOAL_DIFF: Final = word_diff(
    "Refund customers charged twice in batch 2291",
    f"Refund customers charged twice, {HOSTILE}, and only charges under EUR 2 000",
)
GOALS: Final[list[dict[str, Any]]] = [
    {
        "version": 2, "text": f"Refund {HOSTILE}", "by": "Lin", "at": ago(63), "reason": OVERLONG, "taken": "",
        "diff": GOAL_DIFF,
    },
    {
        "version": 1, "text": "Refund customers charged twice in batch 2291", "by": "Ana", "at": ago(94), "reason": "",
        "taken": "This run began with it: it is goal v3 of run_0.", "diff": (),
    },
]  # fmt: skip

AUTHORITY: Final[dict[str, Any]] = {
    "lines": [
        "Lin lent to it refund, notify, runs, until 30 Nov 2026, 19:44 UTC (grant G-4b1e09aa).",
        "It may cost 2000.00, of which 760.00 is left.",
    ],
    "over": "",
    "end_url": "/grants/x/end/",
    "checked": {
        "at": ago(3),
        "seq": 42,
        "text": "Lin had 18 checks made. These fail, and nothing was moved:",
        "failed": [f"the version of what the plan acts on ({HOSTILE})"],
        "passed": ["the stored log is whole", "nobody asked for the end of the run"],
    },
    "check_url": f"/runs/{RUN}/check/",
}
GRANT_ROW: Final[dict[str, Any]] = {
    "name": "G-4b1e09aa",
    "url": "/grants/x/end/",
    "agent": "Refunds",
    "organisation": "Acme",
    "principal": "Lin",
    "scopes": "refund, notify, runs",
    "until": ago(-600),
    "money": "2000.00, of which 760.00 is left",
    "over": "",
}
END_GRANT: Final[dict[str, Any]] = {
    **SHELL,
    "list_url": "/grants/",
    "grant": GRANT_ROW,
    "ended": "",
    "impact": ["1 open run acts on it. It sends nothing more until somebody lends to it anew."],
    "runs": {"rows": [{**RUN_FACTS, "since": ago(3)}], "more": 2},
    "digest": DIGEST,
    "why_not": "",
    "values": {"reason": HOSTILE},
    "errors": [],
    "submission": "0d9a4b52-6d0f-4f51-8b1e-0c3f7f6a2c11",
}
OWED: Final[dict[str, Any]] = {
    "id": "B-1",
    "text": "Tell Acme GmbH",
    "to": "Acme GmbH",
    "due_at": ago(18),
    "overdue": True,
    "opened_at": ago(60),
    "opened_by": "promised with the receipt of E-6",
    "owner": "Kim",
    "state_note": "open until a person states that it is done",
    "attest_url": f"/runs/{RUN}/obligations/1/attest/",
    "hand_on_url": f"/runs/{RUN}/obligations/1/hand-on/",
}
OWNERS: Final = [{"value": "p-1", "label": "Kim"}, {"value": "p-2", "label": HOSTILE}]
ASSUMED: Final[list[dict[str, Any]]] = [
    {
        "id": "v4-1",
        "plan": 4,
        "text": HOSTILE,
        "code": "broken",
        "standing": "Broken",
        "basis": [
            {"id": "O-2", "name": "order:1042", "url": "#observation-O-2", "note": ""},
            {"id": "C-1", "name": OVERLONG, "url": "#constraint-C-1", "note": ""},
        ],
        "broken": "Broken since event 41 by O-2 (order:1042): total 10.00 → 12.50 (+2.50).",
        "event_url": f"/runs/{RUN}/events/?from=41#event-41",
    },
    {
        "id": "v5-1",
        "plan": 5,
        "text": "The supplier is open.",
        "code": "holds",
        "standing": "Holds",
        "basis": [],
    },
]

WORKING: Final[dict[str, Any]] = {
    "claim": {"name": "Kim", "at": ago(3), "mine": False},
    "assigned": {"name": HOSTILE, "by": "Ana", "at": ago(30), "able": False},
    "claim_url": f"/runs/{RUN}/claim/",
    "assign_url": f"/runs/{RUN}/assign/",
}
NOTES: Final[list[dict[str, Any]]] = [
    {"id": 2, "by": "Kim", "at": ago(3), "text": f"{HOSTILE}\n\n<b>call</b> Acme before 18:00"},
    {"id": 1, "by": HOSTILE, "at": ago(50), "text": OVERLONG},
]
NOTES_PAGE: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "notes": NOTES,
    "total": 52,
    "paging": {"page": 1, "pages": 2, "next_url": "?page=2"},
    "claimed": {"name": HOSTILE, "at": ago(3), "notes_url": f"/runs/{RUN}/notes/"},
    "values": {},
    "errors": [],
    "submission": "sub_31",
}

#: As pages beside the run's show them.
ASSUMED_ELSEWHERE: Final = [
    {**row, "basis": [{**basis, "url": f"/runs/{RUN}/{basis['url']}"} for basis in row["basis"]]}
    for row in ASSUMED
]

RUN_PAGE: Final[dict[str, Any]] = {
    **SHELL,
    "working": WORKING,
    "claim_submission": "sub_30",
    "notes": NOTES,
    "more_notes": True,
    "notes_url": f"/runs/{RUN}/notes/",
    "authority": AUTHORITY,
    "check_submission": "0d9a4b52-6d0f-4f51-8b1e-0c3f7f6a2c12",
    "run": RUN_FACTS,
    "inbox_url": "/",
    "handoff_url": f"/runs/{RUN}/handoff/",
    "artifacts_url": "#",
    "replay_url": f"/runs/{RUN}/replay/",
    "events_url": f"/runs/{RUN}/events/",
    "next": NEXT,
    "who": WHO,
    "handoff": HANDOFF,
    "plan": {
        "version": 5,
        "digest": DIGEST,
        "url": f"/runs/{RUN}/plan/5/",
        "review_url": f"/runs/{RUN}/plan/5/review/",
        "summary": "v5, compared with v4: 1 changed, 1 added, 1 removed",
        "unchanged": 11,
    },
    "steps": STEPS,
    "base_label": "v4, approved and used",
    "effects": [UNKNOWN, PLANNED, CONFIRMED],
    "effects_summary": "1 unknown, 1 planned, 1 confirmed",
    "timeline": TIMELINE,
    "observations": OBSERVATIONS,
    "constraints": [
        {
            "id": "C-1",
            "text": "No refund above EUR 2\u00a0000",
            "kind": "policy",
            "by": "refund policy 3",
            "at": ago(94),
            "enforced": "checked at approval and before each send",
            "state_note": f"Its source says now, in version 4: “{HOSTILE}”",
            "revoke_url": f"/runs/{RUN}/constraints/1/revoke/",
            "accept_url": f"/runs/{RUN}/constraints/1/accept/",
        },
        {
            "id": "C-2",
            "name": "cap",
            "text": HOSTILE,
            "predicate": "tool != 'refund' || money(arguments.amount) <= money('10000.00')",
            "kind": "inferred by the agent",
            "by": f"lookup_order {OVERLONG} 7",
            "at": ago(80),
            "inferred": "Inferred by the agent. Not confirmed by a person.",
            "read_in": "O-1",
            "read_in_url": "/runs/run_7QK2/#observation-O-1",
            "confirm_url": "/confirm",
        },
    ],
    "stated_since": [
        {
            "name": "tone",
            "text": OVERLONG,
            "predicate": "cost != null",
            "kind": "the orchestrator’s configuration",
            "by": 'https://orchestrator.example/limits.json "a1b2"',
        }
    ],
    "obligations": [OWED, {**OWED, "id": "B-2", "overdue": False, "text": HOSTILE, "owner": "the run"}],
    "owe_url": f"/runs/{RUN}/obligations/add/",
    "read_url": f"/runs/{RUN}/observations/read/",
    "read_submission": "sub_21",
    "assumptions": ASSUMED,
    "approvals": APPROVALS,
    "goals": GOALS,
    "claim": HOSTILE,
}

FINDING: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "effect": {**CONFIRMED, "reversible": False},
    "recorded": {
        "text": "E-6 is confirmed since 07:01:18 UTC (event 37), receipt rf_9a31.",
        "detail": "",
        "seq": 37,
        "url": f"/runs/{RUN}/events/?from=37#event-37",
    },
    "evidence": [
        {
            "text": "It says that E-6 happened, reference rf_9b02.",
            "at": ago(3),
            "seq": 42,
            "url": f"/runs/{RUN}/events/?from=42#event-42",
            "raw": f'{{"id": "rf_9b02", "note": "{HOSTILE}"}}',
            "found": "",
        }
    ],
    "findings": [
        {
            "name": "Lin",
            "at": ago(2),
            "what": "It happened twice.",
            "reference": "rf_9b02",
            "how": HOSTILE,
            "seq": 43,
            "event_url": f"/runs/{RUN}/events/?from=43#event-43",
            "evidence": 42,
        }
    ],
    "again": "",
    "form": {
        "may": True,
        "why_not": "",
        "second": "The effect cannot be undone: the record changes once two people found the same.",
        "subject": {"record_seq": 37, "evidence_seq": 42},
        "choices": [
            {
                "value": "as_recorded",
                "title": "It is as recorded.",
                "text": "The record of E-6 stays. The evidence stays beside it.",
                "available": True,
                "why_not": "",
            },
            {
                "value": "happened_twice",
                "title": "It happened twice.",
                "text": "Undoing the second one becomes an open obligation.",
                "available": False,
                "why_not": "You do not have the right “Attest effects”. People who can: Lin.",
            },
        ],
        "reference": "rf_9b02",
        "phrase": "310.00 order-1041",
    },
    "page_url": f"/runs/{RUN}/effects/6/finding/",
    "values": {},
    "errors": [],
    "submission": "6f0c5a1e-0000-4000-8000-000000000000",
}

REVIEW: Final[dict[str, Any]] = {
    **SHELL,
    "run": {**RUN_FACTS, "state": "waiting_approval"},
    "plan": {
        "version": 5,
        "digest": DIGEST,
        "url": f"/runs/{RUN}/plan/5/",
        "differences": "amount 1420.00 -> 1240.00; step 3 removed",
    },
    "reviewer": {"sentence": "You are Kim, approver for refunds. You did not write this plan or its goal."},
    "expires_at": NOW + timedelta(minutes=8, seconds=12),
    "summary": "If you approve, the agent will be allowed to make exactly these 2 changes. 1 of them cannot be undone.",
    "changes": [
        {
            "title": "refund order-1042 to Acme GmbH",
            "step": "refund:order-1042",
            "tool": "refund",
            "system": "payments",
            "reversible": False,
            "arguments": ARGUMENTS,
            "operation_id": "refund:order-1042",
            "key": KEY,
            "key_note": "same as the first attempt: a late arrival cannot double it",
            "expects": [
                {
                    "resource": "order:1042",
                    "version": '"W/91"',
                    "read_at": ago(13),
                    "limit": timedelta(minutes=15),
                }
            ],
            "if_fails": "Stop and hand over.",
        },
        {
            "title": "close ticket T-5512",
            "step": "close:T-5512",
            "tool": "close",
            "system": "tickets",
            "reversible": True,
            "undo": "can be reopened",
            "arguments": [
                {"path": "ticket", "value": '"T-5512"'},
                {"path": "text", "value": '"已为客户退款 1240.00 EUR"'},
            ],
            "operation_id": "close:T-5512",
            "key": KEY,
            "expects": [],
            "if_fails": "Stop and hand over.",
        },
    ],
    "left_out": [{"step": "mail:M-88", "reason": "Blocked by C-3 and stays blocked if you approve."}],
    "assumptions": ASSUMED_ELSEWHERE,
    "checks": [
        {"name": "plan digest unchanged", "state": "pass", "again": True},
        {"name": "observation O-2 newer than 15 min", "state": "fail", "detail": "21 min", "again": True},
    ],
    "claim": HOSTILE,
    "proposed": [
        {"name": "Mia", "at": ago(30), "version": 4, "text": HOSTILE, "says": "This version keeps to it."},
    ],
    "covers": {"policy_version": "refunds-3", "goal_version": 2, "constraints_digest": DIGEST},
    "may_decide": True,
    "phrase": "1240.00 Acme GmbH",
    "approve_text": "Approve these 2 changes, once, until 07:56:22 UTC.",
    "reject_text": "Reject. The run goes to “Needs a person”. Nothing is cancelled or undone.",
    "ask_text": "Ask for changes. The agent gets your text and makes another version, or hands the run to a person.",
    "values": {"decision": "", "reason": "", "phrase": ""},
    "errors": [],
    "submission": "sub_1",
}

LONG_ENDS: Final[dict[str, Any]] = {
    "name": "refund:order-1042 letter",
    "first": OVERLONG,
    "last": HOSTILE,
    "size": 200_000,
    "hash": DIGEST,
    "url": f"/runs/{RUN}/plan/5/value/3/",
    "opened": False,
}

TAKE_BACK: Final[dict[str, Any]] = {
    **SHELL,
    "run": {**RUN_FACTS, "state": "executing"},
    "plan": {"version": 5, "digest": DIGEST},
    "review_url": f"/runs/{RUN}/plan/5/review/",
    "given": "You approved it at 2026-11-30 07:40:10 UTC. The approval stands until 2026-11-30 07:56:22 UTC at most.",
    "over": "",
    "left": [f"close ticket T-5512 ({HOSTILE})"],
    "sent": ["E-7 (refund order-1042 to Acme GmbH, cannot be undone)"],
    "in_doubt": "1 change may be under way now: taking back does not stop that one. It is settled first.",
    "others": "Mia approved it too and will have to approve again.",
    "values": {"reason": ""},
    "errors": [],
    "submission": "sub_1",
}

CONFLICT: Final[dict[str, Any]] = {
    "text": "Your decision on plan v5 was not recorded and nothing was sent.",
    "since": 43,
    "events": [{"seq": 44, "at": ago(0.2), "text": "Mia rejected plan v5: “amount above the cap”"}],
    "compared": [{"saw": "plan v5, waiting for approval", "now": "plan v5, rejected by Mia"}],
    "seq": 44,
    "url": f"/runs/{RUN}/",
    "field": "field-reason",
}

RECONCILE: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "effect": UNKNOWN,
    "settled_at": ago(40.8),
    "settled": True,
    "ask": {
        "request": "This asks payments by operation id refund:order-1042. It sends nothing.",
        "url": f"/runs/{RUN}/effects/7/ask/",
        "submission": "sub_2",
    },
    "answers": [
        {
            "at": ago(1),
            "by": "Lin",
            "found": "1 match: rf_9b02",
            "account": "acct_demo",
            "facts": [{"name": "reference", "value": "rf_9b02"}, {"name": "status", "value": "final"}],
            "compared": [
                {"name": "amount", "sent": "1240.00", "found": "1240.00", "same": True},
                {"name": "supplier", "sent": "Acme GmbH", "found": "Acme Ltd", "same": False},
            ],
            "supports": "It happened. (rule: same key and same arguments)",
            "evidence_seq": 44,
            "raw": '{"matches": []}',
        },
        {
            "at": ago(30),
            "by": "sweep",
            "failed": "We could not ask payments (503 after 0.1 s).",
            "evidence_seq": 42,
        },
    ],
    "may_conclude": True,
    "outcomes": [
        {
            "value": "happened",
            "title": "It happened.",
            "text": "Record receipt rf_9b02. E-7 becomes Confirmed and is never sent again.",
            "available": True,
        },
        {
            "value": "not_happened",
            "title": "It did not happen.",
            "text": "E-7 may be sent again under the same key, after revalidation.",
            "available": False,
            "why_not": "the other system reports a match.",
            "needed": ["An answer heard after 07:03:20 UTC that finds nothing, and again 60 s later."],
        },
        {"value": "still_unknown", "title": "Still unknown.", "text": "Nothing changes.", "available": True},
    ],
    "values": {"conclusion": "", "note": ""},
    "errors": [],
    "evidence_seq": 44,
    "submission": "sub_3",
}


def _row(number: int, state: str, title: str, why: str, label: str) -> dict[str, Any]:
    return {
        "id": f"run_7QK2XHB0M{number:03d}",
        "title": title,
        "url": f"/runs/run_{number}/",
        "agent": "refunds",
        "agent_version": "v1",
        "state": state,
        "why": why,
        "since": ago(number * 11),
        "next": {"label": label, "url": "#"},
    }


TOGETHER: Final[dict[str, Any]] = {
    "url": "/inbox/together/",
    "submission": "sub_33",
    "buttons": [
        {"value": "claim", "label": "Claim"},
        {"value": "release", "label": "Release"},
        {"value": "assign", "label": "Assign…"},
        {"value": "note", "label": "Add note…"},
        {"value": "ask", "label": "Ask systems for receipts"},
    ],
}
SEVERAL: Final[dict[str, Any]] = {
    **SHELL,
    "title": "Add a note to runs",
    "inbox_url": "/inbox/?view=all",
    "back": "?view=all",
    "values": {},
    "errors": [],
    "form": {
        "do": "note",
        "runs": [{**RUN_FACTS, "since": None}, {**RUN_FACTS, "title": OVERLONG, "since": None}],
        "ids": [RUN],
        "submission": "sub_34",
    },
}
INBOX: Final[dict[str, Any]] = {
    **SHELL,
    "together": TOGETHER,
    "back": "?view=all",
    "view": "all",
    "counts": [
        {"key": "all", "label": "All", "url": "?view=all", "count": 3, "current": True},
        {"key": "unknown", "label": "Unknown outcome", "url": "?view=unknown", "count": 1, "current": False},
        {
            "key": "needs_human",
            "label": "Needs a person",
            "url": "?view=needs_human",
            "count": None,
            "current": False,
        },
        {
            "key": "waiting_approval",
            "label": "Waiting for approval",
            "url": "?view=waiting_approval",
            "count": 1,
        },
    ],
    "filters": {"mine": True},
    "agents": ["refunds", "invoices"],
    "groups": [
        {
            "risk": "critical",
            "runs": [
                _row(
                    4,
                    "unknown",
                    "Refund duplicate charges, batch 2291",
                    "1 effect has no receipt.",
                    "Reconcile E-7",
                )
            ],
        },
        {
            "risk": "high",
            "runs": [
                {
                    **_row(
                        1,
                        "waiting_approval",
                        "Refund order 1051",
                        "1 step cannot be undone.",
                        "Review plan v5",
                    ),
                    "working": {"name": "Kim", "at": ago(3), "you": False},
                    "assigned": HOSTILE,
                }
            ],
        },
        {
            "risk": "medium",
            "runs": [
                {
                    **_row(
                        6,
                        "needs_human",
                        "清理重复的供应商记录（第 12 批）",
                        "order:1042 changed 3 times.",
                        "Look",
                    ),
                    "next": {"label": "Replan", "url": None},
                    "watching": "you lack the right “operate runs”",
                }
            ],
        },
    ],
    "total": 3,
    "unfiltered_total": 12,
    "sort_text": "Sorted by risk, then oldest.",
    "paging": {"page": 1, "pages": 3, "next_url": "?page=2"},
    "news": {"text": "2 runs changed, 1 is new since you loaded this list.", "url": "?view=all"},
}

WRONG: Final[list[dict[str, str]]] = [
    {"field": "decision", "message": "Choose what you decide."},
    {
        "field": "reason",
        "message": "Enter a reason of at least 10 characters. The next operator will read it.",
    },
    {"field": "phrase", "message": "The phrase does not fit: type 1240.00 Acme GmbH."},
]

ARTIFACTS: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "artifacts": [
        {
            "id": "A-2",
            "name": f"{HOSTILE}.html",
            "kind": "file that a person attached",
            "media_type": "text/html",
            "size": "12.0 kB",
            "hash": DIGEST,
            "at": ago(3),
            "url": "#",
            "event_url": "#",
        },
        {
            "id": "A-1",
            "name": "refund-E-7.json",
            "kind": "evidence from another system",
            "about": "E-7",
            "media_type": "application/json",
            "size": "1.2 MB",
            "hash": DIGEST,
            "at": ago(9),
            "url": "#",
            "event_url": "#",
        },
    ],
    "may_attach": True,
    "limit_text": "At most 21.0 MB. It is kept as it is, and nobody here opens it.",
    "errors": [],
    "submission": "5f2b0c7e-9a51-4f0e-8d2e-0f6a3c1b2d4e",
}

EVENTS: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "events": [
        {
            "seq": 38,
            "at": ago(42),
            "type": "EffectIntended",
            "actor": "worker 3",
            "hash": DIGEST,
            "previous": DIGEST,
            "body": '{\n  "text": "' + HOSTILE + '"\n}',
        },
        {
            "seq": 37,
            "at": ago(43),
            "type": "NoteErased",
            "actor": "Ana",
            "hash": DIGEST,
            "previous": DIGEST,
            "body": None,
        },
    ],
    "types": ["EffectIntended", "EffectSent"],
    "verified": "The chain of hashes is whole up to event 43.",
    "older_url": "?after=36",
}

PLAN: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "plan": {
        "version": 5,
        "digest": DIGEST,
        "at": ago(50),
        "goal_note": "revised since: committed now is v3",
        "goal_text": HOSTILE,
        "goal_version": 2,
        "policy_version": "refunds-3",
        "state_note": "Waits for approval.",
        "review_url": "#",
    },
    "versions": [
        {"version": 4, "url": "#", "current": False, "note": "approved"},
        {"version": 5, "current": True, "note": ""},
    ],
    "bases": [{"label": "v4", "url": "#", "current": True}],
    "steps": STEPS,
    "base_label": "v4",
    "arguments": [{"step": "refund:order-1042", "arguments": ARGUMENTS}],
    "assumptions": ASSUMED_ELSEWHERE,
    "promises": ["tell Acme GmbH"],
    "claim": HOSTILE,
}

AUDIT: Final[dict[str, Any]] = {
    **SHELL,
    "entries": [
        {
            "at": ago(1),
            "actor": "Kim",
            "kind": "person",
            "did": "approved plan v5",
            "subject": RUN,
            "url": "#",
            "result": "recorded",
        },
        {
            "at": ago(2),
            "actor": "Lin",
            "kind": "person",
            "did": "tried to approve plan v5",
            "subject": RUN,
            "result": "refused",
            "why": "lacks the right “approve plans”",
            "seen": DIGEST,
            "reason": HOSTILE,
            "request_id": "8f3a1b2c",
            "via": "console",
            "ip": "2001:db8::7",
            "details": [("why", HOSTILE)],
        },
    ],
    "filters": {},
    "exports": {"csv": "/audit/export.csv", "jsonl": "/audit/export.jsonl"},
    "verify_url": "?verify=1",
    "verified": "Chain verified: the log of the 1 run on this page is as it was written.",
    "people": ["Kim", "Lin"],
    "actions": [{"value": "approve", "label": "Approve a plan"}],
    "paging": {"page": 1, "pages": 1},
}

STOP: Final[dict[str, Any]] = {
    "owners": OWNERS,
    **SHELL,
    "run": RUN_FACTS,
    "does": ["No new effect starts.", "1 open obligation is handed to a person."],
    "does_not": ["It does not undo the 1 confirmed effect."],
    "waits": "The run stays in Cancelling until E-7 is reconciled.",
    "may_cancel": True,
    "values": {},
    "errors": [],
    "submission": "sub_4",
}

REVISE: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "original": GOALS[1],
    "committed": GOALS[0],
    "next_version": 3,
    "impact": [
        "Plan v5 loses its validity at once.",
        f"E-7 ({OVERLONG}) is settled first.",
        "Obligations kept: 2.",
    ],
    "impact_digest": DIGEST,
    "limits": {"text": 2000, "reason": 4000},
    "over": "",
    "may_revise": True,
    "values": {},
    "errors": [],
    "submission": "sub_9",
}

ADD_CONSTRAINT: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "number": "C-3",
    "impact": ["Plan v5 loses its validity at once.", f"E-7 ({OVERLONG}) is settled first."],
    "impact_digest": DIGEST,
    "names": [{"name": "tool", "text": "the tool’s name"}, {"name": "total_cost", "text": OVERLONG}],
    "limits": {"name": 100, "text": 4000, "reason": 4000},
    "over": "",
    "may_add": True,
    "values": {},
    "errors": [],
    "submission": "sub_9",
}

CONFIRM_CONSTRAINT: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "constraint": {
        "id": "C-2",
        "text": HOSTILE,
        "predicate": f"cost <= money('{OVERLONG}')",
        "kind": "inferred by the agent",
        "by": "lookup_order 7",
    },
    "observation": {
        "id": "O-1",
        "url": "/runs/run_7QK2/#observation-O-1",
        "resource": OVERLONG,
        "value": HOSTILE,
        "at": ago(90),
    },
    "over": "",
    "may_confirm": True,
    "values": {},
    "errors": [],
    "submission": "sub_9",
}

RESTS: Final[dict[str, Any]] = {
    "text": "6 runs, 5 plans, 2 requests for approval and 1 approval lose their validity.",
    "rows": [
        {
            "id": "run_7QK2XHB0M9", "state": "waiting_approval", "what": "plan v5 and the request to approve it",
            "name": "C-3", "title": HOSTILE, "url": "/runs/run_7QK2XHB0M9/",
        },
        {
            "id": "run_7QK2XHB0MA", "state": "planning", "what": "no plan in force", "name": "C-2", "title": "",
            "url": "",
        },
    ],
    "paging": {"page": 2, "pages": 3, "previous_url": "?page=1", "next_url": "?page=3"},
}  # fmt: skip

REVOKE: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "constraint": {
        "id": "C-3", "name": "finance first", "text": HOSTILE, "predicate": f"tool != '{OVERLONG}'",
        "kind": "policy", "source": "held/7QK2XHB0M9 2", "at": NOW, "event_url": "/e",
    },
    "over": "",
    "possible": ["In a restarted run: message in mail (cannot be undone)."],
    "phrase": "C-3",
    "ends": ["Plan v5 loses its validity.", f"E-7 ({OVERLONG}) is reconciled first."],
    "stays": ["2 effects that stand.", "The other constraints: C-1, C-2."],
    "next": "from “Review plan v5” to “Decide how the run goes on”",
    "elsewhere": RESTS,
    "may_everywhere": True,
    "why_not_everywhere": "",
    "here_digest": DIGEST,
    "impact_digest": "d41d8cd98f00b204e9800998ecf8427e",
    "may_revoke": True,
    "values": {},
    "errors": [],
    "submission": "sub_31",
}  # fmt: skip

ACCEPT: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "id": "C-3",
    "name": "finance first",
    "over": "",
    "diff": GOAL_DIFF,
    "old": {
        "predicate": "cost < 5.0", "text": HOSTILE, "version": "1", "kind": "policy", "source": "held/7QK2XHB0M9",
        "at": NOW,
    },
    "new": {"predicate": "", "text": OVERLONG, "version": "2"},
    "changed_by": "Kim",
    "why": HOSTILE,
    "term": DIGEST,
    "may_accept": True,
    "values": {},
    "errors": [],
    "submission": "sub_32",
}  # fmt: skip

HELD_CONSTRAINT: Final[dict[str, Any]] = {
    "name": "finance first", "text": HOSTILE, "predicate": "tool != 'refund'", "version": 2, "at": NOW, "by": "Kim",
    "reason": OVERLONG, "withdrawn": False, "url": "/constraints/7QK2XHB0M9/", "for": "refunds of Acme",
    "kind": "policy", "progress": "3200 of 10000 runs were told of it.",
}  # fmt: skip
HELD_PAGES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "constraints": (
        "console/constraints.html",
        {
            **SHELL,
            "constraints": [HELD_CONSTRAINT, {**HELD_CONSTRAINT, "withdrawn": True, "text": OVERLONG}],
            "places": [{"value": "agent-1", "label": OVERLONG}, {"value": "tenant-1", "label": "all agents of Acme"}],
            "names": [{"name": "tool", "text": "the tool’s name"}],
            "values": {"place": "agent-1", "name": HOSTILE, "text": OVERLONG},
            "errors": [{"field": "predicate", "message": "1:5: there is no such name."}],
            "submission": "sub_33",
            "title_prefix": "Error:",
        },
    ),
    "constraints-none": (
        "console/constraints.html", {**SHELL, "constraints": [], "places": [], "values": {}, "errors": []},
    ),
    "constraint": (
        "console/constraint.html",
        {
            **SHELL,
            "constraint": HELD_CONSTRAINT,
            "history": [
                {"version": 2, "by": "Kim", "at": NOW, "reason": HOSTILE, "diff": GOAL_DIFF},
                {"version": 1, "by": "Kim", "at": NOW, "reason": OVERLONG, "diff": ()},
            ],
            "rests": RESTS,
            "seen": DIGEST,
            "may_change": True,
            "list_url": "/constraints/",
            "done": True,
            "values": {"text": HOSTILE, "predicate": "cost < 5", "reason": OVERLONG},
            "errors": [],
            "submission": "sub_34",
        },
    ),
    "constraint-not-you": (
        "console/constraint.html",
        {
            **SHELL,
            "constraint": {**HELD_CONSTRAINT, "predicate": "", "progress": ""},
            "history": [{"version": 1, "by": "Kim", "at": NOW, "reason": OVERLONG, "diff": (), "withdrawn": True}],
            "rests": RESTS,
            "may_change": False,
            "why_not": "You lack the right “Revoke constraints”.",
            "list_url": "/constraints/",
            "values": {},
            "errors": [],
        },
    ),
}  # fmt: skip

DECIDE: Final[dict[str, Any]] = {
    **SHELL,
    "run": RUN_FACTS,
    "title": "How does this run go on?",
    "why": ["The other system refused E-7: 403 after 0.1 s."],
    "choices": [
        {"value": "retry", "title": "Try again", "text": "The refused step is done again in a new round."},
        {"value": "replan", "title": "Ask for another plan", "text": "The present plan ends."},
    ],
    "may_decide": True,
    "move": {
        "title": "Move to another version",
        "text": "Another version of the agent goes on with the run.",
        "url": f"/runs/{RUN}/move/",
    },
    "subject": DIGEST,
    "commit": "Record decision",
    "values": {"note": HOSTILE},
    "errors": [{"field": "choice", "message": "Choose how the run goes on."}],
    "submission": "sub_6",
}

START: Final[dict[str, Any]] = {
    **SHELL,
    "agents": [{"name": "refunds", "label": "refunds v1"}],
    "columns": ["order", "supplier", "email", "amount", "currency", "ticket"],
    "limit_text": "Up to 20\u00a0000 rows.",
    "lending": {
        "scopes": "close_ticket, mail_supplier, refund, reopen_ticket, runs",
        "durations": [
            {"value": "1", "label": "1 h 0 min, until 2026-11-30 08:44:10 UTC"},
            {"value": "720", "label": "30 d 0 h, until 2026-12-30 07:44:10 UTC"},
        ],
        "bounds": [
            {
                "value": "free",
                "title": "Until then, or until I end it.",
                "text": "The runs go on when you have signed out.",
            },
            {
                "value": "session",
                "title": "Only while I stay signed in here.",
                "text": "Nothing more is sent then.",
            },
        ],
    },
    "values": {"agent": "refunds", "budget": "12,50", "lasts": "1", "bound": "session"},
    "errors": [{"field": "budget", "message": "Enter an amount such as 1000.00, or nothing."}],
    "problems": [
        {"row": 3, "column": "amount", "text": "-5.00 is not an amount above zero."},
        {"row": None, "column": None, "text": "The column “ticket” is missing."},
    ],
    "problems_total": 31,
    "submission": "sub_5",
}

REPLAY: Final[dict[str, Any]] = {
    **SHELL,
    "run": {**RUN_FACTS, "events_url": f"/runs/{RUN}/events/"},
    "step": {
        "seq": 38,
        "at": ago(42.3),
        "type": "OutcomeUnknown",
        "kind": "worker",
        "actor": "host:1",
        "text": f"does not know what became of E-7: {HOSTILE}",
        "whole": False,
        "recorded": "executing",
        "recomputed": "unknown",
        "agrees": False,
        "body": f'{{\n  "effect": 7,\n  "detail": "{OVERLONG}"\n}}',
    },
    "links": {"first": "?seq=1", "previous": "?seq=37", "next": "?seq=39", "last": ""},
    "jumps": [{"label": "stop", "url": "?seq=41"}, {"label": "first unknown", "url": "?seq=38"}],
    "first": 1,
    "last": 43,
    "warnings": ["Recorded state differs from recomputed state from event 38 on.", HOSTILE],
    "parts": [{"name": "Plan", "text": "v5, 1 of 3 steps done"}, {"name": "Reasons", "text": HOSTILE}],
    "effects": [{"state": "confirmed", "number": 6}, {"state": "unknown", "number": 1}],
    "changes": [
        {"mark": "changed", "text": "Run", "kind": "run", "was": "executing", "now": "unknown"},
        {"mark": "changed", "text": HOSTILE, "kind": "effect", "was": "in_flight", "now": "unknown"},
        {"mark": "added", "text": "Tries again at 07:02:11 UTC."},
    ],
}

AGENT_ROW: Final[dict[str, Any]] = {
    "name": "refunds",
    "version": "1",
    "title": f"Supplier refunds {HOSTILE}",
    "url": "/agents/refunds/1/",
    "registered": True,
    "workers": ["worker-1@host", OVERLONG[:300]],
    "open": 12,
    "stuck": 2,
    "runs_url": "/inbox/?view=any&agent=refunds",
    "stuck_url": "/inbox/?view=needs_human&agent=refunds",
    "note": "Runs of this version wait for a person, because no worker had their code.",
}
AGENT_PAGE: Final[dict[str, Any]] = {
    **SHELL,
    "agent": AGENT_ROW,
    "list_url": "/agents/",
    "sections": [
        {"key": "blind", "title": "Effects that can neither be asked nor sent again", "lines": ["None."]},
        {
            "key": "unmixed",
            "title": "Versions that must not be mixed",
            "lines": [f"tool:refund: {DIGEST}", HOSTILE],
        },
    ],
}
_SOME_RUN: Final[dict[str, Any]] = {
    "id": RUN,
    "title": f"Refund order 1042 {HOSTILE}",
    "url": f"/runs/{RUN}/",
    "state": "needs_human",
    "since": ago(42),
    "why": "",
}
MOVE: Final[dict[str, Any]] = {
    **SHELL,
    "agent": "refunds",
    "version": "1",
    "to": "2",
    "agent_url": "/agents/refunds/1/",
    "list_url": "/agents/",
    "fits": [_SOME_RUN, {**_SOME_RUN, "state": "waiting_approval"}],
    "fit": 23,
    "fits_more": 21,
    "unfit": [{**_SOME_RUN, "why": f"It has no tool refund, which the run uses. {HOSTILE}"}],
    "unfit_count": 1,
    "unfit_more": 0,
    "reasons": [{"text": "It has no tool refund, which the run uses.", "number": 1}],
    "served": "No worker serves version 2 now: moved runs wait until one does.",
    "limit": "There are 812 open runs. One form moves at most 200; open this page again then.",
    "may_move": True,
    "values": {"note": HOSTILE},
    "errors": [{"field": "note", "message": "Enter a reason of at least 10 characters."}],
    "submission": "sub_7",
}

#: name -> (template, context)
WAITS: Final[dict[str, Any]] = {
    "waits": [
        {
            "step": "hear:approved",
            "what": "the answer “approved”",
            "since": ago(40),
            "until": ago(-20),
            "note": "It has not come yet.",
        },
        {
            "step": OVERLONG,
            "what": "a time",
            "since": ago(90),
            "ended_at": ago(60),
            "note": "What it waited for came.",
        },
    ],
    "answers": [
        {
            "name": "approved",
            "payload": f'{{\n  "note": "{HOSTILE}"\n}}',
            "by": "Kim",
            "kind": "person",
            "at": ago(3),
            "note": "kept: no step has taken it",
        }
    ],
    "children": [
        {
            "id": "run_8WQ4MZ2KDJ5RT7YB",
            "url": "/runs/run_8WQ4MZ2KDJ5RT7YB/",
            "name": "supplier 7",
            "agent": "refunds",
            "goal": HOSTILE,
            "step": "delegate",
            "budget": "120.00",
            "state": "waiting",
            "started_at": ago(50),
            "ended": "",
        },
        {
            "id": "run_1QZ4MZ2KDJ5RT7YB",
            "url": "",
            "name": OVERLONG,
            "agent": "refunds",
            "goal": OVERLONG,
            "step": "delegate",
            "budget": None,
            "state": "",
            "started_at": None,
            "ended": "ended before its goal",
        },
    ],
    "unlisted": 4,
    "children_url": "#",
    "parent": {"run": "run_0PA4MZ2KDJ5RT7YB", "url": "#", "step": OVERLONG},
    "hears": True,
    "answer_url": f"/runs/{RUN}/answer/",
    "left": [f"E-1 ({HOSTILE})", OVERLONG],
}
_UNDOES: Final[dict[str, Any]] = {
    "step": "undo:payments:refund:order-1042",
    "title": "take back 1240.00 EUR",
    "tool": "take_back",
    "system": "payments",
    "reversible": True,
    "arguments": ARGUMENTS,
    "operation_id": "take_back:order-1042",
    "key": KEY,
    "expects": [],
    "if_fails": "The run stops and is handed to a person.",
    "undoes": f"E-7 ({HOSTILE})",
}
_DELEGATES: Final[dict[str, Any]] = {
    "step": "delegate",
    "wait": "Starts 1 run and waits until it has ended.",
    "reversible": True,
    "children": [
        {
            "name": "supplier 7",
            "agent": "refunds",
            "version": "1",
            "goal": HOSTILE,
            "input": ARGUMENTS,
            "budget": "120.00",
        }
    ],
}
_UNDO_STEPS: Final[list[dict[str, Any]]] = [
    {**STEPS[0], "change": "added", "diffs": [], "undoes": f"E-7 ({OVERLONG})"},
    {
        "number": "2",
        "title": "Waits for the answer “approved”, however long that takes.",
        "waits": True,
        "writes": False,
        "reversible": None,
        "change": "added",
        "diffs": [],
        "state_note": "waits since 07:02:10 UTC",
    },
]

_ORGANISATION: Final[dict[str, Any]] = {
    **SHELL,
    "organisation": {"slug": "acme", "name": f"Acme {HOSTILE}"},
    "organisations": [{"slug": "acme", "name": "Acme"}, {"slug": "neu", "name": HOSTILE}],
    "list_url": "/people/",
    "new_url": "/people/new/",
    "groups_url": "/groups/",
    "organisations_url": "/organisations/",
    "submission": "sub_10",
}
_HELD: Final[dict[str, Any]] = {
    "held": [
        {
            "right": "approve_plans",
            "label": "Approve plans",
            "place": "agent:1",
            "place_label": f"the agent {HOSTILE}",
        }
    ],
    "rights": [{"value": "approve_plans", "label": "Approve plans"}],
    "places": [{"value": "organisation", "label": "the whole organisation"}],
    "values": {"right": "approve_plans", "place": "", "run": OVERLONG[:200], "title": HOSTILE, "person": ""},
    "errors": [{"field": "place", "message": "Choose on what the right is held."}],
}
REVIEW_CHECKS: Final[dict[str, Any]] = {
    **REVIEW,
    "given": "1 of 2 approvals are given, for this digest: Kim. From Finance: 0 of 1.",
    "asked_by": f"The policy asks for it by: “refund from 100 EUR up” and “{HOSTILE}”.",
    "overrides": [
        {"name": "short plans", "text": "Approve although “short plans” fails: A plan has at most 10 steps."},
        {"name": HOSTILE, "text": f"Approve although “{HOSTILE}” fails: {OVERLONG}"},
    ],
    "values": {"overrides": ["short plans"], "decision": "approve", "reason": ""},
    "errors": [{"field": "overrides", "message": "Tick each check that you override, and say why."}],
}

POLICY_LINES: Final[list[dict[str, Any]]] = [
    {
        "text": "two people from 1,000 EUR up: 2 approvals, which stand for 15 min. By members of: Finance and Board. "
        "Not by: who started the run and the person on whose behalf the run acts.",
        "code": "tool == 'refund' && cost != null && cost >= money('1000.00')",
    },
    {
        "text": f"{HOSTILE}: A refund is at most 5,000 EUR. A plan that fails it cannot be approved.",
        "code": OVERLONG,
    },
]
POLICY_HEAD: Final[dict[str, Any]] = {
    **SHELL,
    "name": "refunds", "title": "Supplier refunds", "organisation": "Acme GmbH", "url": "#", "counts": "refunds/held/2",
    "held": True, "since": ago(300), "rules": 2, "list_url": "#", "may_manage": True,
}  # fmt: skip
POLICY: Final[dict[str, Any]] = {
    **POLICY_HEAD,
    "lines": POLICY_LINES,
    "versions": [
        {
            "number": number, "name": f"refunds/held/{number}", "author": "Lin", "at": ago(600 / number), "url": "#",
            "reason": HOSTILE, "digest": DIGEST, "current": number == 2,
        }
        for number in (3, 2, 1)
    ],
    "releases": [
        {"what": "version 2", "by": "Kim", "at": ago(300), "reason": "as decided on Monday", "current": True},
        {"what": "the agent’s own policy", "by": "Lin", "at": ago(500), "reason": OVERLONG, "current": False},
    ],
    "own_url": "#",
    "new_url": "#",
}  # fmt: skip
POLICY_TEXT: Final = '{\n  "rules": [\n    {"name": "dear", "when": "cost > 5"}\n  ]\n}'
POLICY_NEW: Final[dict[str, Any]] = {
    **POLICY_HEAD,
    "values": {"text": POLICY_TEXT, "reason": ""},
    "errors": [],
    "names": [{"name": "cost", "text": "what the step costs, as money; null where the tool names no cost"}],
    "parties": [{"name": "principal", "text": "the person on whose behalf the run acts"}],
    "loses_code": True,
    "submission": "6f0c5a1e-0000-4000-8000-000000000000",
}
POLICY_VERSION: Final[dict[str, Any]] = {
    **POLICY_HEAD,
    "number": 3,
    "version": {"author": {"shown_name": "Lin"}, "at": ago(4), "reason": HOSTILE},
    "current": False,
    "lines": POLICY_LINES,
    "text": POLICY_TEXT,
    "difference": [
        {"change": "same", "pieces": [{"text": '  "rules": [', "changed": False}]},
        {
            "change": "removed",
            "pieces": [
                {"text": '"when": "cost > ', "changed": False},
                {"text": "money('5')", "changed": True},
            ],
        },
        {
            "change": "added",
            "pieces": [{"text": '"when": "cost > ', "changed": False}, {"text": OVERLONG, "changed": True}],
        },
    ],
    "step": {
        "text": '{"tool": "refund", "cost": "1240.00"}',
        "said": {
            "asks": "2 people; 1 from Finance; check fails: limit",
            "failure": "",
            "rules": [
                {"name": "dear", "code": "cost > money('5')", "applies": True, "failure": ""},
                {"name": HOSTILE, "code": "arguments.iban == ''", "applies": False, "failure": ""},
            ],
            "checks": [
                {
                    "name": "limit",
                    "code": OVERLONG,
                    "passed": False,
                    "failure": "There is no argument “iban”.",
                }
            ],
        },
    },
    "tried": {
        "text": "Of the last 200 plans it would have asked people for 14; the one in force asks for 9.",
        "refused": "It would refuse 2 plans for too many changes that cannot be undone; the one in force refuses 0.",
        "differs": [
            {
                "run": RUN,
                "title": HOSTILE,
                "version": 2,
                "url": "#",
                "today": "nobody",
                "then": "2 people; 1 from Finance",
            }
        ],
        "hidden": 3,
    },
    "ends": "1 open request ends. 2 approved plans end. Their runs are planned and asked anew. What was sent "
    "already is not touched.",
    "rests": [{"run": RUN, "version": 5, "title": HOSTILE, "url": "#", "state": "waits for approval"}],
    "more": 2,
    "seen": DIGEST,
    "policy_url": "#",
    "action": "/policies/refunds/3/",
    "values": {},
    "errors": [],
    "submission": "6f0c5a1e-0000-4000-8000-000000000000",
}
POLICY_PAGES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "policies": (
        "console/policies.html",
        {**SHELL, "agents": [POLICY_HEAD, {**POLICY_HEAD, "name": "x", "title": HOSTILE, "held": False, "counts": ""}]},
    ),
    "policies-none": ("console/policies.html", {**SHELL, "agents": []}),
    "policy": ("console/policy.html", POLICY),
    "policy-not-you": (
        "console/policy.html",
        {
            **POLICY, "may_manage": False, "why_not": "You lack the right “Manage policies”.", "who_can": "Can: Lin.",
            "versions": [], "releases": [], "lines": [], "held": False,
        },
    ),
    "policy-new": ("console/policy_new.html", POLICY_NEW),
    "policy-new-wrong": (
        "console/policy_new.html",
        {
            **POLICY_NEW,
            "loses_code": False,
            "values": {"text": POLICY_TEXT, "reason": HOSTILE},
            "errors": [
                {
                    "field": "text",
                    "message": "“dear”, when, line 1, column 6: Compare money with money: cost >= money(\"100.00\").",
                },
                {"field": "reason", "message": "Enter a reason of at least 10 characters."},
            ],
        },
    ),
    "policy-version": ("console/policy_version.html", POLICY_VERSION),
    "policy-version-conflict": (
        "console/policy_version.html",
        {
            **POLICY_VERSION,
            "conflict": {**CONFLICT, "events": [], "compared": [], "title": "Not released."},
            "step": {"text": "{", "wrong": "This is no JSON: Expecting property name."},
            "values": {"reason": "as decided on Monday"},
        },
    ),
    "policy-version-own": (
        "console/policy_version.html",
        {
            **POLICY_VERSION,
            "number": 0, "version": None, "current": True, "text": "", "difference": [], "tried": None,
            "step": {"text": "{}"}, "rests": [], "more": 0, "result": {"text": "It is in force now."},
        },
    ),
}  # fmt: skip

PEOPLE_PAGES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "people": (
        "console/people.html",
        {
            **_ORGANISATION,
            "link": {"name": HOSTILE, "url": "https://console.example/password/" + "x" * 43 + "/"},
            "people": [
                {
                    "name": HOSTILE,
                    "username": "kim",
                    "url": "#",
                    "state": "belongs",
                    "groups": ["Finance", HOSTILE],
                    "factor": True,
                    "last": ago(5),
                },
                {
                    "name": "Lin",
                    "username": OVERLONG[:150],
                    "url": "#",
                    "state": "cannot sign in",
                    "groups": [],
                    "factor": False,
                    "last": None,
                },
            ],
        },
    ),
    "person-new": (
        "console/person_new.html",
        {
            **_ORGANISATION,
            "values": {"username": HOSTILE, "display_name": "", "email": ""},
            "errors": [{"field": "username", "message": "“x” is taken. Choose another."}],
        },
    ),
    "person": (
        "console/person.html",
        {
            **_ORGANISATION,
            **_HELD,
            "person": {
                "name": HOSTILE,
                "username": "kim",
                "email": "",
                "state": "belongs",
                "belongs": True,
                "active": True,
                "factor": True,
                "last": ago(5),
                "groups": ["Finance"],
                "password": True,
                "services": ["Example ID", HOSTILE],
            },
            "wholly": True,
            "ends": {"membership": "#", "account": "#", "factor": "#", "identity": "#"},
            "sign_ins": [{"at": ago(5), "what": "signed in", "from": "192.0.2.1"}],
        },
    ),
    "person-end": (
        "console/person_end.html",
        {
            **_ORGANISATION,
            "person": {"name": HOSTILE, "username": "kim", "url": "#"},
            "title": f"End the membership of {HOSTILE}",
            "button": "End the membership",
            "stands": True,
            "lines": ["2 sessions end at once.", HOSTILE, OVERLONG[:200]],
            "seen": "0" * 64,
            "values": {"reason": HOSTILE},
            "errors": [{"field": "reason", "message": "Enter a reason of at least 10 characters."}],
        },
    ),
    "groups": (
        "console/groups.html",
        {
            **_ORGANISATION,
            "groups": [{"title": HOSTILE, "url": "#", "members": ["Kim", HOSTILE], "held": _HELD["held"]}],
            "values": {"title": OVERLONG[:200]},
        },
    ),
    "group": (
        "console/group.html",
        {
            **_ORGANISATION,
            **_HELD,
            "group": {"title": HOSTILE, "empty": True},
            "members": [{"id": "1", "name": HOSTILE, "username": "kim"}],
            "others": [{"value": "2", "label": HOSTILE}],
        },
    ),
    "organisations": (
        "console/organisations.html",
        {
            **_ORGANISATION,
            "organisations": [{"slug": "acme", "name": HOSTILE, "second_factor": True, "url": "#"}],
            "organises": True,
            "organisers": [{"name": HOSTILE, "username": "kim"}],
            "values": {"slug": "", "name": HOSTILE, "username": ""},
        },
    ),
    "organisation": (
        "console/organisation.html",
        {
            **_ORGANISATION,
            "agents": [{"name": "refunds", "title": HOSTILE}, {"name": "invoices", "title": OVERLONG[:200]}],
            "usable": [{"value": "mail", "label": f"mail: {HOSTILE}"}],
            "values": {"name": HOSTILE, "second_factor": True, "agent": "mail", "title": HOSTILE},
            "errors": [{"field": "agent", "message": "No agent “x” is installed here."}],
        },
    ),
    "settings": (
        "console/settings.html",
        {
            **SHELL,
            "person": {"name": "Lin", "username": "lin", "email": ""},
            "values": {"display_name": HOSTILE, "zone": "UTC", "theme": "dark", "density": "compact"},
            "zones": ["Asia/Shanghai", "UTC"],
            "languages": [
                {"value": "", "label": "As the browser asks"},
                {"value": "zh-hans", "label": "简体中文"},
            ],
            "themes": [{"value": "light", "label": "Light theme"}, {"value": "dark", "label": "Dark theme"}],
            "densities": [{"value": "compact", "label": "Compact"}],
            "factor": True,
            "asked_by": ["Acme"],
            "sessions": [
                {"key": "abc", "at": ago(5), "from": "192.0.2.1", "agent": OVERLONG[:200], "mine": True},
                {"key": "def", "at": ago(50), "from": "–", "agent": HOSTILE, "mine": False},
            ],
            "urls": {"password": "#", "factor": "#", "codes": "#", "end": "#"},
            "views_url": "#",
            "views": [
                {
                    "id": 1,
                    "name": HOSTILE,
                    "url": "/?view=any",
                    "told": f"List: All, Text: {HOSTILE}",
                    "first": True,
                },
                {
                    "id": 2,
                    "name": OVERLONG[:60],
                    "url": "/?view=any",
                    "told": OVERLONG,
                    "group": HOSTILE,
                    "gone": [f"There is no agent “{HOSTILE}” any more."],
                    "last": True,
                },
            ],
        },
    ),
    "view-new": (
        "console/view_new.html",
        {
            **SHELL,
            "query": "?view=any",
            "told": f"List: All runs, Text: {HOSTILE}",
            "tenants": [{"slug": "acme", "name": HOSTILE}],
            "values": {"name": HOSTILE, "for": "me"},
            "back_url": "/?view=any",
            "errors": [{"field": "name", "message": "“x” is taken. Choose another."}],
        },
    ),
    "settings-password": (
        "console/password.html",
        {
            **SHELL,
            "settings_url": "/settings/",
            "errors": [{"field": "again", "message": "The two new passwords differ."}],
        },
    ),
    "settings-factor": (
        "console/factor.html",
        {
            **SHELL,
            "has": False,
            "secret": "JBSW Y3DP EHPK 3PXP",
            "picture_url": "/static/icon.svg",
            "asked_by": [HOSTILE],
            "settings_url": "/settings/",
            "errors": [{"field": "code", "message": "This code does not fit."}],
        },
    ),
    "settings-factor-codes": (
        "console/codes.html",
        {**SHELL, "codes": ["12345678", "87654321"], "left": 2, "settings_url": "/settings/"},
    ),
    "login-code": (
        "registration/code.html",
        {"now": NOW, "errors": [{"field": "code", "message": "Wrong."}]},
    ),
    "login-again": (
        "registration/again.html",
        {
            **SHELL,
            "next": "/runs/x/",
            "asks_password": True,
            "asks_code": True,
            "services": [{"name": HOSTILE, "url": "#"}],
        },
    ),
    "password-link": ("registration/password_link.html", {"now": NOW, "username": "kim", "errors": []}),
    "link-gone": ("registration/link_gone.html", {"now": NOW, "detail": "This link was used already."}),
    "service-failed": (
        "registration/service_failed.html",
        {"now": NOW, "incident_id": "8f3a1b2c", "detail": HOSTILE},
    ),
    "error-429": (
        "errors/429.html",
        {"now": NOW, "incident_id": "8f3a1b2c", "until": "08:00:00 UTC"},
    ),
}


def _number(text: str, number: int, **more: Any) -> dict[str, Any]:
    run = {"run": RUN, "run_url": f"/runs/{RUN}/", "since": ago(42)} if number else {}
    return {"text": text, "number": number, **run, "attention": False, **more}


HEALTH: Final[dict[str, Any]] = {
    **SHELL,
    "fleet": {
        "swept_at": ago(3),
        "late": True,
        "workers": [
            {"name": "worker@host", "serves": ["refunds.v1"], "started_at": ago(900),
             "seen_at": ago(0.1), "silent": False},
            {"name": OVERLONG[:200], "serves": [HOSTILE], "started_at": ago(9000), "seen_at": ago(90), "silent": True},
            {"name": "sweeper@host", "serves": [], "started_at": ago(9000), "seen_at": ago(0.1), "silent": False},
        ],
    },
    "panels": [
        {
            "key": "work", "title": "Work for workers", "text": "Open runs that a worker has to move.",
            "failed": False, "empty": False,
            "lines": [
                _number("Due, and no worker has taken it yet", 3, attention=True),
                _number("Of these, no live worker serves the version", 0, url="/agents/"),
            ],
        },
        {
            "key": "constraints", "title": "Changed constraints", "text": "Until every run was told.",
            "failed": False, "empty": False,
            "lines": [
                {"text": f"“{HOSTILE}” was withdrawn", "number": 1234, "url": "#fleet",
                 "note": "runs are still to be told", "since": ago(2)},
            ],
        },
        {"key": "doubts", "title": "Effects with an unknown outcome", "failed": True, "empty": False, "lines": None},
        {"key": "obligations", "title": "Obligations", "failed": False, "empty": True,
         "nothing": "Nothing that was promised is open."},
    ],
}  # fmt: skip
PAGES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    **PEOPLE_PAGES,
    "health": ("console/health.html", HEALTH),
    "health-unavailable": ("console/health.html", {**SHELL, "fleet": None, "panels": HEALTH["panels"][2:]}),
    **HELD_PAGES,
    **POLICY_PAGES,
    "review-checks": ("runs/review.html", REVIEW_CHECKS),
    "run-waits": (
        "runs/run.html",
        {
            **RUN_PAGE,
            **WAITS,
            "run": {**RUN_FACTS, "state": "waiting"},
            "steps": _UNDO_STEPS,
            "effects": [
                {**CONFIRMED, "state": "compensated", "undone_by": {"text": "E-8", "url": "#effect-E-8"}},
                {**PLANNED, "undoes": {"text": "E-6 of run_0PA4MZ2KDJ5RT7YB", "url": ""}},
            ],
        },
    ),
    "stop-undo": (
        "runs/stop.html",
        {
            **STOP,
            "undo": {
                "in_doubt": ["E-7 is settled first. If it happened, it stays."],
                "undone": [f"E-6 ({HOSTILE}), by: {OVERLONG}."],
                "stays": [f"E-5 ({OVERLONG}): it cannot be undone."],
                "children": True,
            },
            "errors": [{"field": "choice", "message": "Choose what becomes of what was done."}],
        },
    ),
    "add-constraint": ("runs/add_constraint.html", ADD_CONSTRAINT),
    "add-constraint-wrong": (
        "runs/add_constraint.html",
        {
            **ADD_CONSTRAINT,
            "errors": [
                {"field": "name", "message": "Enter a name."},
                {"field": "predicate", "message": "The predicate cannot be evaluated: It does not parse."},
            ],
            "values": {"text": HOSTILE, "predicate": OVERLONG, "reason": OVERLONG},
            "title_prefix": "Error:",
        },
    ),
    "add-constraint-conflict": (
        "runs/add_constraint.html",
        {**ADD_CONSTRAINT, "conflict": CONFLICT, "values": {"text": HOSTILE}},
    ),
    "add-constraint-over": (
        "runs/add_constraint.html",
        {**ADD_CONSTRAINT, "over": "This run is over.", "values": {"text": OVERLONG}},
    ),
    "add-constraint-not-you": (
        "runs/add_constraint.html",
        {**ADD_CONSTRAINT, "may_add": False, "why_not": "You may not."},
    ),
    "confirm-constraint": ("runs/confirm_constraint.html", CONFIRM_CONSTRAINT),
    "confirm-constraint-wrong": (
        "runs/confirm_constraint.html",
        {
            **CONFIRM_CONSTRAINT,
            "errors": [{"field": "note", "message": "Use at most 4000 characters."}],
            "values": {"note": OVERLONG},
            "title_prefix": "Error:",
        },
    ),
    "confirm-constraint-over": (
        "runs/confirm_constraint.html",
        {**CONFIRM_CONSTRAINT, "observation": None, "over": "Kim confirmed it.", "conflict": CONFLICT},
    ),
    "confirm-constraint-not-you": (
        "runs/confirm_constraint.html",
        {**CONFIRM_CONSTRAINT, "may_confirm": False, "why_not": "You may not."},
    ),
    "revoke": ("runs/revoke.html", REVOKE),
    "revoke-wrong": (
        "runs/revoke.html",
        {
            **REVOKE,
            "errors": [{"field": "scope", "message": "Choose where the constraint ends."}],
            "values": {"scope": "here", "reason": OVERLONG, "phrase": "C-4"},
            "may_everywhere": False,
            "why_not_everywhere": "its source is not held in this console: change it there.",
            "title_prefix": "Error:",
        },
    ),
    "revoke-conflict": ("runs/revoke.html", {**REVOKE, "conflict": CONFLICT, "elsewhere": None}),
    "revoke-over": ("runs/revoke.html", {**REVOKE, "over": "It was withdrawn already, at event 12."}),
    "revoke-not-you": ("runs/revoke.html", {**REVOKE, "may_revoke": False, "why_not": "You may not."}),
    "accept": ("runs/accept.html", ACCEPT),
    "accept-over": ("runs/accept.html", {**ACCEPT, "over": "Nothing waits to be accepted."}),
    "revise-goal": ("runs/revise_goal.html", REVISE),
    "revise-goal-wrong": (
        "runs/revise_goal.html",
        {**REVISE, "errors": [{"field": "text", "message": "Enter the new goal."}], "title_prefix": "Error:"},
    ),
    "revise-goal-difference": (
        "runs/revise_goal.html",
        {**REVISE, "review": {"diff": GOAL_DIFF}, "values": {"text": HOSTILE, "reason": OVERLONG}},
    ),
    "revise-goal-over": (
        "runs/revise_goal.html",
        {**REVISE, "over": "This run is over.", "conflict": CONFLICT, "values": {"text": OVERLONG}},
    ),
    "revise-goal-not-you": (
        "runs/revise_goal.html",
        {**REVISE, "may_revise": False, "why_not": "You may not."},
    ),
    "decide-undo": (
        "runs/decide.html",
        {
            **DECIDE,
            "choices": [
                {"value": "retry", "title": "Try again", "text": "It is tried again.", "lines": []},
                {
                    "value": "end",
                    "title": "End the run as it is",
                    "off": "You lack the right “Cancel runs”.",
                    "lines": [f"E-1 ({HOSTILE})", OVERLONG],
                },
            ],
        },
    ),
    "obligation-add": (
        "runs/obligation_add.html",
        {
            **SHELL,
            "run": RUN_FACTS,
            "owners": OWNERS,
            "steps": [{"value": "pay:7", "label": HOSTILE}, {"value": "tell:7", "label": OVERLONG}],
            "may_add": True,
            "values": {"owner": "p-2", "text": HOSTILE, "to": OVERLONG},
            "errors": [
                {"field": "due", "message": "This time is over. Enter one to come, or leave it empty."}
            ],
            "submission": "sub_22",
        },
    ),
    "obligation-attest": (
        "runs/obligation_attest.html",
        {
            **SHELL,
            "run": RUN_FACTS,
            "obligation": OWED,
            "may_attest": True,
            "values": {"how": HOSTILE, "reference": ""},
            "errors": [
                {"field": "reference", "message": "Enter the reference of a proof that this is done."}
            ],
            "submission": "sub_23",
        },
    ),
    "obligation-hand-on": (
        "runs/obligation_hand_on.html",
        {
            **SHELL,
            "run": RUN_FACTS,
            "obligation": {**OWED, "text": OVERLONG},
            "owners": OWNERS,
            "may_hand_on": True,
            "values": {},
            "errors": [],
            "submission": "sub_24",
        },
    ),
    "answer": (
        "runs/answer.html",
        {
            **SHELL,
            "run": {**RUN_FACTS, "state": "waiting"},
            "waits": "The run waits for the answer “approved” until 2026-11-30 08:00:00 UTC.",
            "may_answer": True,
            "values": {"name": "approved", "payload": HOSTILE},
            "errors": [{"field": "name", "message": "No answer can have this name."}],
            "submission": "sub_9",
        },
    ),
    "review-undo": (
        "runs/review.html",
        {**REVIEW, "undo": True, "phrase": "", "changes": [_UNDOES, _DELEGATES]},
    ),
    "plan-waits": (
        "runs/plan.html",
        {**PLAN, "steps": _UNDO_STEPS, "arguments": [{"waiting": _DELEGATES}]},
    ),
    "run": ("runs/run.html", RUN_PAGE),
    "run-notes": ("runs/notes.html", NOTES_PAGE),
    "run-notes-refused": (
        "runs/notes.html",
        {
            **NOTES_PAGE,
            "notes": [],
            "total": 0,
            "values": {"text": OVERLONG},
            "errors": [{"field": "text", "message": "Use at most 4000 characters; these are 5000."}],
        },
    ),
    "run-assign": (
        "runs/assign.html",
        {
            **SHELL,
            "run": RUN_FACTS,
            "assigned": HOSTILE,
            "choices": OWNERS,
            "may_assign": True,
            "values": {"to": "p-1"},
            "errors": [],
            "submission": "sub_32",
        },
    ),
    "run-assign-not-you": (
        "runs/assign.html",
        {**SHELL, "run": RUN_FACTS, "assigned": "", "may_assign": False, "why_not": OVERLONG},
    ),
    "run-new": (
        "runs/run.html",
        {
            **RUN_PAGE,
            "run": {**RUN_FACTS, "state": "planning", "state_note": ""},
            "plan": None,
            "effects": [],
            "assumptions": [],
            "observations": [],
            "constraints": [],
            "obligations": [],
            "approvals": [],
            "who": [],
            "claim": None,
            "result": {
                "text": "You approved plan v5.",
                "at": ago(0.1),
                "detail": "Execution has not started.",
            },
        },
    ),
    "run-overlong": (
        "runs/run.html",
        {
            **RUN_PAGE,
            "run": {**RUN_FACTS, "title": OVERLONG},
            "effects": [{**UNKNOWN, "title": OVERLONG, "operation_id": OVERLONG, "state_note": OVERLONG}],
            "who": [{"action": OVERLONG, "you": False, "text": OVERLONG}],
            "next": {**NEXT, "why": OVERLONG},
            "claim": OVERLONG,
        },
    ),
    "replay": ("runs/replay.html", REPLAY),
    "agents": (
        "console/agents.html",
        {**SHELL, "agents": [AGENT_ROW, {**AGENT_ROW, "workers": [], "stuck": 0}]},
    ),
    "agent": ("console/agent.html", AGENT_PAGE),
    "agent-elsewhere": (
        "console/agent.html",
        {
            **AGENT_PAGE,
            "sections": [],
            "runs": [_SOME_RUN, {**_SOME_RUN, "title": OVERLONG}],
            "more": 3,
            "heirs": [{"version": "2", "url": "/agents/refunds/1/move/2/"}],
        },
    ),
    "move": ("console/move.html", MOVE),
    "moved": (
        "console/move.html",
        {
            **MOVE,
            "result": {"text": "22 runs were moved.", "detail": "1 run was not, and stays as it is."},
            "moved": [{**_SOME_RUN, "state": "planning"}],
            "moved_more": 21,
            "refused": [{**_SOME_RUN, "why": OVERLONG}],
            "refused_more": 0,
            "errors": [],
            "limit": "",
            "may_move": False,
            "why_not": "You lack the right “Operate runs”.",
            "who_can": "Can: Kim, Mia.",
        },
    ),
    "review": ("runs/review.html", REVIEW),
    "review-long": (
        "runs/review.html",
        {
            **REVIEW,
            "changes": [
                {
                    **REVIEW["changes"][0],
                    "arguments": [{"path": "letter", "value": OVERLONG, "ends": LONG_ENDS}],
                }
            ],
            "unopened": [LONG_ENDS],
        },
    ),
    "value": (
        "runs/value.html",
        {
            **SHELL,
            "run": {**RUN_FACTS, "state": "waiting_approval"},
            "plan": {"version": 5, "digest": DIGEST},
            "review_url": "#",
            "value": {
                "number": 3,
                "step": "refund:order-1042",
                "path": "letter",
                "text": OVERLONG,
                "size": 200_000,
                "hash": DIGEST,
            },
        },
    ),
    "review-wrong": ("runs/review.html", {**REVIEW, "errors": WRONG, "title_prefix": "Error:"}),
    "review-conflict": (
        "runs/review.html",
        {**REVIEW, "conflict": CONFLICT, "values": {"reason": "The amount fits the order."}},
    ),
    "review-expired": (
        "runs/review.html",
        {
            **REVIEW,
            "closed": True,
            "expires_at": None,
            "expired_at": ago(2),
            "may_renew": True,
            "decided_title": "This plan cannot be decided any more",
            "decided": "The time for approving it is over.",
            "values": {"reason": "The amount fits the order."},
        },
    ),
    "review-not-you": (
        "runs/review.html",
        {**REVIEW, "may_decide": False, "why_not": "You revised the goal.", "who_can": "Can: Kim, Mia."},
    ),
    "review-given": (
        "runs/review.html",
        {
            **REVIEW,
            "decided_title": "You decided already",
            "decided": "1 of 2 approvals.",
            "take_back_url": "#",
        },
    ),
    "take-back": ("runs/take_back.html", TAKE_BACK),
    "take-back-over": (
        "runs/take_back.html",
        {
            **TAKE_BACK,
            "over": "You have no approval of this plan version that could be taken back.",
            "conflict": CONFLICT,
            "values": {"reason": "The wrong supplier."},
        },
    ),
    "reconcile": ("runs/reconcile.html", RECONCILE),
    "finding": ("runs/finding.html", FINDING),
    "inbox": ("console/inbox.html", INBOX),
    "inbox-empty": (
        "console/inbox.html",
        {**INBOX, "groups": [], "total": 0, "unfiltered_total": 0, "news": None, "idle": {"running": 14}},
    ),
    "inbox-filtered": ("console/inbox.html", {**INBOX, "groups": [], "total": 0, "news": None}),
    "together-note": (
        "console/together.html",
        {**SEVERAL, "values": {"text": OVERLONG}, "errors": [{"field": "text", "message": HOSTILE}]},
    ),
    "together-assign": (
        "console/together.html",
        {**SEVERAL, "title": "Assign runs", "form": {**SEVERAL["form"], "do": "assign", "choices": OWNERS}},
    ),
    "together-lines": (
        "console/together.html",
        {
            **SEVERAL,
            "form": None,
            "result": {"text": "1 done, 1 skipped, 1 failed."},
            "lines": [
                {"id": RUN, "run": RUN_FACTS, "came": "done", "came_text": "done", "text": HOSTILE},
                {"id": RUN, "run": RUN_FACTS, "came": "skipped", "came_text": "skipped", "text": OVERLONG},
                {"id": HOSTILE, "run": None, "came": "failed", "came_text": "failed", "text": "No such run."},
            ],
        },
    ),
    "artifacts": ("runs/artifacts.html", ARTIFACTS),
    "rereduce": (
        "runs/rereduce.html",
        {
            **SHELL,
            "run": RUN_FACTS,
            "differences": ["Effects 7: status is 'confirmed', the log says 'unknown'.", HOSTILE],
            "may_rereduce": True,
            "errors": [],
            "submission": "0d9a4b52-6d0f-4f51-8b1e-0c3f7f6a2c11",
        },
    ),
    "events": ("runs/events.html", EVENTS),
    "plan": ("runs/plan.html", PLAN),
    "stop": ("runs/stop.html", STOP),
    "decide": ("runs/decide.html", DECIDE),
    "lend": (
        "runs/decide.html",
        {
            **DECIDE,
            "title": "Lend to this run anew?",
            "why": ["What was lent does not carry it any more: the grant was ended.", HOSTILE],
            "choices": [
                {"value": "rest", "title": "For the rest of the plan: 1240.00", "text": "No more than that."}
            ],
            "hint": "Required, at least 10 characters.",
            "commit": "Lend anew",
        },
    ),
    "grants": (
        "runs/grants.html",
        {
            **SHELL,
            "lists": [
                {
                    "title": "What you lent",
                    "empty": "You lent nothing.",
                    "rows": [GRANT_ROW, {**GRANT_ROW, "over": "the grant was ended", "principal": HOSTILE}],
                    "more": True,
                },
                {"title": "What others lent", "empty": "Nothing.", "rows": [], "more": False},
            ],
        },
    ),
    "end-grant": ("runs/end_grant.html", END_GRANT),
    "end-grant-changed": (
        "runs/end_grant.html",
        {**END_GRANT, "changed": True, "errors": [{"field": "reason", "message": "Enter a reason."}]},
    ),
    "end-grant-over": ("runs/end_grant.html", {**END_GRANT, "ended": "Lin ended it: “no need”"}),
    "start": ("runs/start.html", START),
    "handoff": (
        "runs/handoff.html",
        {
            **RUN_PAGE,
            "notices_url": None,
            "unknown": [UNKNOWN],
            "printed": {"by": "Lin", "at": NOW, "url": "http://h/r/"},
            "may": "You may take it (right “Reconcile effects”).",
            "json_url": f"/runs/{RUN}/handoff.json",
            "schema_url": "/static/schemas/handoff-1.json",
            "more": [
                {
                    "key": "never",
                    "title": "What must never be sent again",
                    "lines": [
                        {
                            "text": "E-6 refund EUR 310.00 to cus_51: it happened, and the other system honours no "
                            "key. A second send is a second effect."
                        }
                    ],
                },
                {"key": "assumptions", "title": "What is taken for true", "lines": [{"text": "Nothing."}]},
            ],
        },
    ),
    "audit": ("console/audit.html", AUDIT),
    "permissions": (
        "console/permissions.html",
        {
            **SHELL,
            "tenants": [
                {
                    "name": "Acme",
                    "rows": [{"label": "Approve plans", "groups": ["approvers: Payer"], "people": [HOSTILE]}],
                    "groups": [
                        {"title": "approvers", "people": ["Kim", "Lin"]},
                        {"title": "x", "people": []},
                    ],
                }
            ],
            "rules": ["Workers, agents and commands never count as people."],
        },
    ),
    "why-cannot": (
        "console/why_cannot.html",
        {
            **SHELL,
            "people": [{"value": "1", "label": "Lin", "chosen": True}],
            "actions": [{"value": "approve_plans", "label": "Approve plans", "chosen": True}],
            "places": [
                {"value": "tenant-1", "label": "all of Acme", "chosen": False},
                {"value": "agent-1", "label": f"the agent {HOSTILE} of Acme", "chosen": False},
            ],
            "run_id": RUN,
            "verdict": "No: Lin cannot do this now.",
            "rule": "Lin does not have the right “Approve plans” here.",
            "more": ["It can be held on this run.", HOSTILE],
        },
    ),
    "login": (
        "registration/login.html",
        {"now": NOW, "form": {"username": {"value": "lin"}}, "next": "/runs/x/"},
    ),
    "error-400": ("errors/400.html", {"now": NOW, "incident_id": "8f3a1b2c"}),
    "error-403": (
        "errors/403.html",
        {"now": NOW, "incident_id": "8f3a1b2c", "detail": "You cannot approve.", "who_can": "Kim"},
    ),
    "error-404": ("errors/404.html", {"now": NOW, "incident_id": "8f3a1b2c", "id": "run_XX"}),
    "error-409": ("errors/409.html", {"now": NOW, "incident_id": "8f3a1b2c", "conflict": CONFLICT}),
    "error-422": ("errors/422.html", {"now": NOW, "incident_id": "8f3a1b2c"}),
    "error-500": ("errors/500.html", {"incident_id": "8f3a1b2c", "may_have_recorded": True}),
}
