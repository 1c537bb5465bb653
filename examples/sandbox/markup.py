"""HTML from functions: every text is escaped unless it came from here."""

from __future__ import annotations

from html import escape

VOID = {"input", "link", "meta", "br"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


type Child = Markup | str | int | None


def el(tag: str, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """An element. `class_` is class, other underscores are hyphens; None and False leave one out."""
    opening = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{opening}>")
    return Markup(f"<{tag}{opening}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Children one after another; None is nothing."""
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(child: Markup | str | int) -> str:
    return child if isinstance(child, Markup) else escape(str(child))


def _attribute(name: str, value: str | bool | None) -> str:
    shown = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {shown}" if value is True else f' {shown}="{escape(value)}"'
