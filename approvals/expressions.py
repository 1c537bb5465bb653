"""The expressions of policy documents and of constraints: CEL over one step of a plan, and what of CEL they may use.

An expression is refused where it is typed: if it does not parse, names what there is not, calls what is not offered,
loops, is too long or too deep, compares money inexactly, or is not true or false. One that fails all the same when it
is evaluated raises ExpressionFailed, and never counts as false.

Money is an amount of its own kind, exact to a millionth: `cost`, `total_cost` and `money("100.00")` can be compared and
added to each other and to nothing else. A decimal text of the arguments becomes one by `money(arguments.amount)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final, NoReturn

import cel
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

LONGEST: Final = 1000  #: characters
MOST_TOKENS: Final = 250
DEEPEST: Final = 20  #: brackets within brackets
#: What an expression may name, with what it is.
NAMES: Final[Mapping[str, Promise]] = {
    "tool": gettext_lazy("the tool’s name; “run” where the step starts runs"),
    "system": gettext_lazy("the system that the tool acts on; empty where the step starts runs"),
    "step": gettext_lazy("the step’s name, as the agent gave it"),
    "arguments": gettext_lazy("the arguments as they will be sent: arguments.currency"),
    "cost": gettext_lazy("what the step costs, as money; null where the tool names no cost"),
    "reversible": gettext_lazy("whether the step can be undone"),
    "tenant": gettext_lazy("the organisation’s short name"),
    "agent": gettext_lazy("the agent’s name"),
    "principal": gettext_lazy("the sign-in name of the person on whose behalf the run acts"),
    "total_cost": gettext_lazy("what the plan’s steps cost together, as money; null where no cost is known"),
    "steps": gettext_lazy("how many steps the plan has"),
}
FUNCTIONS: Final = frozenset({"size", "contains", "startsWith", "endsWith", "has", "int", "money"})
_LOOPS: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})
_WORDS: Final = frozenset({"true", "false", "null", "in"})
_MONEY: Final = frozenset({"cost", "total_cost"})
_COMPARES: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_ORDERS: Final = _COMPARES - {"==", "!="}
_OPENS, _CLOSES = "([", ")]"
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<fraction>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+)
    |(?P<number>\d+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||[=!<>]=|[<>!()\[\].,?:+*-])""",
    re.VERBOSE,
)
_PARSER = re.compile(r"<input>:(?P<line>\d+):(?P<column>\d+): (?P<why>[^\n]*)")
_FINEST = Decimal("0.000001")
_LARGEST = Decimal(10) ** 13
_SHORT = 40  #: characters of an amount that is kept


class ExpressionRefused(ValueError):
    """This cannot be an expression of a policy. `line` and `column` say where, from 1; the text says why."""

    def __init__(self, why: str, *, source: str = "", at: int = 0) -> None:
        before = source[:at]
        self.line, self.column = before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1
        super().__init__(why)


class ExpressionFailed(Exception):
    """The expression has no value for this step. The text is a sentence that names no value of the arguments."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Expression:
    """One that was accepted. `names` are those of NAMES that it uses."""

    source: str
    names: frozenset[str]
    program: cel.Program

    def holds(self, context: cel.Context) -> bool:
        """Whether it is true of what the context holds. Raises ExpressionFailed, also for what is neither."""
        value = _in_cel(lambda: self.program.execute(context))
        if not isinstance(value, bool):
            raise ExpressionFailed(_("It is neither true nor false: it gives another value."))
        return value


def money(value: object) -> timedelta:
    """An exact amount, from a decimal text or a whole number. Raises ValueError for anything else.

    CEL has no decimals: an amount travels as a duration, which it compares and adds exactly and mixes with no number.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError('an amount is a decimal text, as "100.00", or a whole number')
    return _written(value) if isinstance(value, str) and len(value) <= _SHORT else _exact(value)


@lru_cache(maxsize=4096)
def _written(text: str) -> timedelta:
    """The same amounts stand in a policy's text each time that it is evaluated."""
    return _exact(text)


def _exact(value: str | int | Decimal) -> timedelta:
    try:
        amount = Decimal(value)
        millionths = amount.scaleb(6)
        if not amount.is_finite() or abs(amount) > _LARGEST or millionths != millionths.to_integral_value():
            raise ValueError("an amount has at most six decimals and is not beyond ten trillions")
    except InvalidOperation:
        raise ValueError('an amount is a decimal text, as "100.00"') from None
    return timedelta(microseconds=int(millionths))


def rounded_up(cost: Decimal) -> timedelta:
    """A cost as money; one that is finer than a millionth counts as the next millionth. Raises ValueError."""
    if not cost.is_finite() or abs(cost) > _LARGEST:
        raise ValueError("a cost is a number, and not beyond ten trillions")
    return timedelta(microseconds=int(cost.quantize(_FINEST, rounding=ROUND_CEILING).scaleb(6)))


def context_of(values: Mapping[str, object]) -> cel.Context:
    """What expressions are evaluated on. Raises ExpressionFailed where CEL cannot hold the values."""
    made: cel.Context = _in_cel(lambda: cel.Context(variables=dict(values), functions={"money": money}))
    return made


@lru_cache(maxsize=1024)
def compiled(source: str) -> Expression:
    """The expression of this text. Raises ExpressionRefused."""
    tokens = _tokens(source)
    _judge_names(source, tokens)
    _judge_money(source, tokens)
    program = _parsed(source)
    found = Expression(
        source=source, names=frozenset(t.text for t in tokens if t.text in NAMES), program=program
    )
    if unknown := sorted(set(program.variables()) - NAMES.keys()):
        raise ExpressionRefused(_unknown(unknown[0]))
    _try(found)
    return replace(found, program=_with_amounts(source, tokens) or program)


def _with_amounts(source: str, tokens: list[_Token]) -> cel.Program | None:
    """The same with each `money("…")` as the amount that it is, which is not made anew each time; None: it has none.

    An amount that CEL writes otherwise stays a call.
    """
    written, at = "", 0
    for number, token in enumerate(tokens):
        text = _literal(tokens, number) if token.text == "money" else None
        if text and (amount := _as_duration(text.text[1:-1])):
            end = tokens[number + 3]
            written, at = written + source[at : token.at] + amount, end.at + len(end.text)
    return _parsed(written + source[at:]) if at else None


def _as_duration(text: str) -> str:
    """An amount as CEL writes the duration that it travels as; empty where that would be another."""
    amount = money(text)
    made = f'duration("{amount // timedelta(microseconds=1)}us")'
    try:
        same = _in_cel(lambda: cel.compile(made).execute(context_of({})))
    except ExpressionFailed:
        return ""
    return made if same == amount else ""


def _tokens(source: str) -> list[_Token]:
    if len(source) > LONGEST:
        raise ExpressionRefused(_("It is longer than %(most)d characters.") % {"most": LONGEST})
    found, at, depth = list[_Token](), 0, 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            character = {"character": source[at]}
            _refuse(_("“%(character)s” cannot stand here.") % character, source, at)
        kind, text = str(match.lastgroup), match[0]
        depth += (text in _OPENS) - (text in _CLOSES) if kind == "sign" else 0
        if depth > DEEPEST:
            _refuse(
                _("It has more than %(most)d brackets within each other.") % {"most": DEEPEST}, source, at
            )
        if kind == "text" and found and found[-1].at + len(found[-1].text) == at and found[-1].kind in _GLUED:
            _refuse(_("A text is written in plain quotes: no prefix, no triple quotes."), source, at)
        if kind != "space":
            found.append(_Token(kind, text, at))
        at = match.end()
    if len(found) > MOST_TOKENS:
        raise ExpressionRefused(_("It has more than %(most)d parts.") % {"most": MOST_TOKENS})
    return found


#: After these a quote would make another kind of text, which CEL ends elsewhere than the pattern above does.
_GLUED: Final = frozenset({"name", "text", "number"})


def _refuse(why: str, source: str, at: int) -> NoReturn:
    raise ExpressionRefused(why, source=source, at=at)


def _judge_names(source: str, tokens: list[_Token]) -> None:
    """Each name is one that there is; each call is of a function that is offered; nothing loops."""
    for number, token in enumerate(tokens):
        if token.kind == "fraction":
            _refuse(_('Write an amount as money("1.50"), so that it is compared exactly.'), source, token.at)
        if token.kind != "name":
            continue
        before = tokens[number - 1].text if number else ""
        called = number + 1 < len(tokens) and tokens[number + 1].text == "("
        if called and token.text in _LOOPS:
            _refuse(
                _("“%(name)s” loops, and a policy may not: its time must not depend on data.")
                % {"name": token.text},
                source,
                token.at,
            )
        if called and token.text not in FUNCTIONS:
            facts = {"name": token.text, "known": ", ".join(sorted(FUNCTIONS))}
            _refuse(_("There is no function “%(name)s”. There are: %(known)s.") % facts, source, token.at)
        if not called and before != "." and token.text not in NAMES and token.text not in _WORDS:
            _refuse(_unknown(token.text), source, token.at)


def _unknown(name: str) -> str:
    facts = {"name": name, "known": ", ".join(NAMES)}
    return _("There is no “%(name)s”. There are: %(known)s.") % facts


def _judge_money(source: str, tokens: list[_Token]) -> None:
    """Money is compared with money alone, and no text by its letters: "9.00" is more than "100.00" there."""
    for number, token in enumerate(tokens):
        if token.text == "money" and _literal(tokens, number) is not None:
            _judge_amount(source, tokens[number + 2])
        if token.text not in _COMPARES or token.kind != "sign":
            continue
        left, right = tokens[number - 1] if number else None, tokens[number + 1 : number + 2]
        sides = [(left, right[0])] if left and right else []
        for one, other in sides:
            texts = "text" in (one.kind, other.kind)
            plain = texts or "number" in (one.kind, other.kind)
            if plain and (_is_money(tokens, number - 1) or other.text in _MONEY or other.text == "money"):
                _refuse(_('Compare money with money: cost >= money("100.00").'), source, token.at)
            if texts and token.text in _ORDERS:
                why = _(
                    'Texts are compared by their letters. Write money(arguments.amount) >= money("100.00").'
                )
                _refuse(why, source, token.at)


def _literal(tokens: list[_Token], number: int) -> _Token | None:
    """The text of `money("…")` whose name is there."""
    kinds = [t.kind for t in tokens[number : number + 4]]
    return tokens[number + 2] if kinds == ["name", "sign", "text", "sign"] else None


def _judge_amount(source: str, token: _Token) -> None:
    try:
        money(token.text[1:-1])
    except ValueError:
        _refuse(_('%(text)s is no amount. Write it as "100.00".') % {"text": token.text}, source, token.at)


def _is_money(tokens: list[_Token], last: int) -> bool:
    """Whether the operand that ends there is money: a cost, or a call of money()."""
    if tokens[last].text in _MONEY:
        return last == 0 or tokens[last - 1].text != "."
    if tokens[last].text != ")":
        return False
    depth = 0
    for number in range(last, -1, -1):
        depth += (tokens[number].text == ")") - (tokens[number].text == "(")
        if depth == 0:
            return number > 0 and tokens[number - 1].text == "money"
    return False


def _parsed(source: str) -> cel.Program:
    try:
        program: cel.Program = _in_cel(lambda: cel.compile(source))
    except ExpressionFailed as error:
        found = _PARSER.search(str(error.__cause__))
        if found is None:
            raise ExpressionRefused(_("It does not parse.")) from None
        refused = ExpressionRefused(
            _("It does not parse: %(why)s.") % {"why": found["why"].split(" expecting {")[0]}
        )
        refused.line, refused.column = int(found["line"]), int(found["column"])
        raise refused from None
    return program


#: A step that no tool has: enough to see that types do not fit, wherever no argument is looked at.
_SAMPLE: Final[Mapping[str, Any]] = {
    "tool": "tool", "system": "system", "step": "step", "arguments": {}, "reversible": False,
    "cost": timedelta(seconds=1), "total_cost": timedelta(seconds=1), "steps": 1,
    "tenant": "tenant", "agent": "agent", "principal": "principal",
}  # fmt: skip


def _try(expression: Expression) -> None:
    try:
        expression.holds(context_of(_SAMPLE))
    except ExpressionFailed as error:
        # Which arguments there are is the tool's business, and known only when there is a step.
        if not isinstance(error.__cause__, KeyError | IndexError):
            raise ExpressionRefused(str(error)) from None


def _in_cel(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        raise ExpressionFailed(_why(error)) from error
    except BaseException as error:
        # A panic of the library, which is no Exception, is its failure and not the end of this process.
        if type(error).__name__ != "PanicException":
            raise
        raise ExpressionFailed(_("The expression could not be evaluated.")) from error


def _why(error: Exception) -> str:
    match error:
        case KeyError():
            return _("There is no argument “%(name)s” in this step.") % {"name": error.args[0]}
        case IndexError():
            return _("A list in this step is shorter than the expression takes it to be.")
        case TypeError():
            return _(
                "Two values of different kinds are compared or added, such as money and a number, or null."
            )
        case _:
            return _("The expression could not be evaluated (%(kind)s).") % {"kind": type(error).__name__}
