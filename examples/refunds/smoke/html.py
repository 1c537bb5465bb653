"""A page as its reader meets it: texts, links, and forms with what stands in their fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_UNSEEN = frozenset({"script", "style", "template"})


class NotOnPage(Exception):
    """The page does not have what was looked for; the text says what, and what the page says instead."""


@dataclass(slots=True)
class Node:
    """One element. Texts are kept among its children."""

    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """An attribute; the empty string where it is missing or has no value."""
        return self.attributes.get(name, "")

    @property
    def text(self) -> str:
        """All its words, with single spaces between them."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif child.tag not in _UNSEEN:
                yield " "
                yield from child._texts()

    def all(self, tag: str = "", **attributes: str) -> Iterator[Node]:
        """Every element inside, in the page's order; underscores in names stand for hyphens."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        for child in self.children:
            if isinstance(child, Node):
                if tag in ("", child.tag) and all(child.get(n) == v for n, v in wanted.items()):
                    yield child
                yield from child.all(tag, **attributes)

    def one(self, tag: str = "", **attributes: str) -> Node:
        """The first of them. Raises NotOnPage."""
        found = next(self.all(tag, **attributes), None)
        if found is None:
            raise NotOnPage(
                f"there is no {tag or 'element'} with {attributes}; the page says: {self.text[:600]}"
            )
        return found

    def link(self, words: str) -> str:
        """Where the first link with these words leads. Raises NotOnPage."""
        for link in self.all("a"):
            if words in link.text:
                return link.get("href")
        raise NotOnPage(f"there is no link “{words}”; the page says: {self.text[:600]}")

    def button(self, words: str) -> Form:
        """The form whose button has these words. Raises NotOnPage."""
        for form in self.all("form"):
            if any(words in button.text for button in form.all("button")):
                return Form.of(form)
        raise NotOnPage(f"there is no button “{words}”; the page says: {self.text[:600]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Where a form goes, and what is sent when nothing is changed in it. `choices`: its radio buttons."""

    method: str
    action: str
    values: dict[str, str]
    choices: dict[str, list[str]]

    @classmethod
    def of(cls, node: Node) -> Form:
        """Read the form of an element."""
        values: dict[str, str] = {}
        choices: dict[str, list[str]] = {}
        for item in node.all("input"):
            name, kind = item.get("name"), item.get("type")
            if kind == "radio":
                choices.setdefault(name, []).append(item.get("value"))
            if name and (kind not in ("radio", "checkbox", "file") or "checked" in item.attributes):
                values[name] = item.get("value")
        values |= {item.get("name"): item.text for item in node.all("textarea")}
        return cls(
            method=node.get("method").lower(), action=node.get("action"), values=values, choices=choices
        )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def read(text: str) -> Node:
    """The page of a text."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.root
