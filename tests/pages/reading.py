"""Reads a page as a person does: visible text by test id, forms with what they would send."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse

VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass
class Node:
    """An element, its attributes, and what is inside in order."""

    tag: str
    attrs: dict[str, str]
    inside: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside, blanks joined."""
        parts = (x if isinstance(x, str) else x.text for x in self.inside)
        return " ".join(" ".join(parts).split())

    def all(self, tag: str = "", **attrs: str) -> list[Node]:
        """Every element inside of that tag with these attributes, in the order of the page."""
        found: list[Node] = []
        for child in self.inside:
            if isinstance(child, Node):
                named = {name.replace("_", "-"): value for name, value in attrs.items()}
                fits = all(child.attrs.get(name) == value for name, value in named.items())
                found += [child] if fits and tag in ("", child.tag) else []
                found += child.all(tag, **attrs)
        return found

    def one(self, tag: str = "", **attrs: str) -> Node:
        """The only such element."""
        (found,) = self.all(tag, **attrs)
        return found

    def part(self, testid: str) -> Node:
        """The element of that test id."""
        return self.one(data_testid=testid)

    def sends(self) -> dict[str, str]:
        """What the form would send untouched: hidden and text fields, and what is checked or selected."""
        found = {x.attrs["name"]: x.text for x in self.all("textarea")}
        for x in self.all("input"):
            loose = x.attrs.get("type") in ("radio", "checkbox") and "checked" not in x.attrs
            if "name" in x.attrs and not loose:
                found[x.attrs["name"]] = x.attrs.get("value", "")
        return found


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("root", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        while len(self.open) > 1 and self.open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def read(response: HttpResponse | Any) -> Node:
    """The page of an answer."""
    builder = _Builder()
    builder.feed(response.content.decode())
    return builder.open[0]


def form_of(page: Node, *, testid: str = "") -> Node:
    """The page's own form: the one of that test id, else the only POST form in its content."""
    content = page.one("main")
    return content.part(testid) if testid else content.one("form", method="post")
