"""What to click in the demo, as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from examples.refunds.demo.people import APPROVER, OPERATOR, PEOPLE, SECOND

MANAGE = ".venv/bin/python manage.py"

_STORY = """
What to do (console: {console}, outside world: {outside}, commands in a second terminal)

 1. Approve and reject. Sign in as {approver}: the inbox shows the plans from 100 EUR up. Approve some,
    reject one. A rejected run waits for the operator: sign in as {operator}, open it, "Other actions",
    "Cancel the run". A request stands for 15 minutes; after that {operator} asks for approval again.
 2. Kill a worker in the middle of a refund. On the outside world's page press "Execute the next refund and
    hold its answer". Have this command ready, approve a plan, and press Enter as soon as that page lists a
    held request (after five seconds the worker gives up waiting by itself, which comes to the same):
        {manage} ctl kill worker
    Nobody has to do anything: the run asks the service what became of the refund and goes on.
 3. The same in an outage. Press "The same, and refuse questions", approve a plan, kill the worker. After a
    minute the run stands first in the inbox. Press "End the outage", sign in as {operator}, open the run,
    press "Ask again" and record what the service answers.
 4. Change an order behind the plan. {manage} ctl stop worker
    Press "Change" beside an order that waits (leave the amount empty), approve its plan, then:
        {manage} ctl start worker
    The approval is voided, the run page says what changed, and a new version waits for review.
 5. Take the right from someone who approved.
        {manage} ctl stop worker
    Approve a plan as {approver}, then:
        {manage} rights withdraw {approver} approve_plans refunds
        {manage} ctl start worker
    The approval is voided and the run page names who lost which right; {second} can approve it.
    {manage} rights grant {approver} approve_plans refunds gives the right back.
 6. End a run and undo what can be undone. On the outside world's page, under "Switches", let it drop the
    connection of the next 1, refuse questions, and hit only paths that begin with /mail/. Approve a plan. As
    {operator} open its run: "Other actions", "End, and undo what can be undone". Then "End the outage": the
    mail is settled, the ticket is opened again, and the page lists what still stands.
 7. Change the policy. As {operator} open "Policies", refunds, "Write another version". Add the rules for 1,000 EUR
    and more from docs/policies.md, and keep it. Its page tries it on past plans and on a step that you type, and
    lists the requests that a release would end. "Release": they are void at once, each says from which policy to
    which, and is asked for anew. Order 1008 now takes {approver} and {second}, who is in the group Finance.
 8. Count. The outside world's page says how often each refund was executed;
    {manage} rereduce --check compares every log with the rows beside it.
"""


def guide(*, console: str, outside: str) -> str:
    """The story's steps, with where to go and what to type."""
    return _STORY.format(
        console=console,
        outside=outside,
        manage=MANAGE,
        approver=APPROVER.username,
        second=SECOND.username,
        operator=OPERATOR.username,
    )


def sign_ins(passwords: Mapping[str, str], *, file: Path) -> str:
    """Who signs in with what, as a small table."""
    lines = [f"  {p.username:<8} {passwords[p.username]:<18} {p.role}, {p.name}" for p in PEOPLE]
    return "\n".join([f"Sign-ins, kept in {file}:", *lines])
