"""Collect every sentence that people read into locale/django.pot and each language's files, or check that all is there.

Babel reads the Python and compiles; Django turns templates into what looks like Python. No system gettext is needed.
A language is complete or the check fails: an English sentence amid another language reads as an error.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
POT = ROOT / "locale" / "django.pot"
PACKAGES = ("accounts", "approvals", "console", "examples", "runs")
PLACE = re.compile(r"%\(\w+\)[sd]|%%")
KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}


def sources() -> Iterator[tuple[Path, bytes]]:
    """Each file that may hold sentences, as Python that Babel can read."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, path.read_bytes()
    for path in sorted([*(ROOT / "templates").rglob("*.html"), *ROOT.glob("*/templates/**/*.html")]):
        yield path, _as_python(path)


def _as_python(path: Path) -> bytes:
    """A template's sentences as calls; without indentation, which would mean something in Python."""
    lines = templatize(path.read_text(), origin=str(path)).splitlines()
    return "\n".join(line.strip() for line in lines).encode()


def collected() -> Catalog:
    """All sentences. The date is fixed, so that the same sentences make the same file."""
    catalog = Catalog(project="handoff", charset="utf-8", creation_date=datetime(2026, 1, 1, tzinfo=UTC))
    for path, source in sources():
        where = str(path.relative_to(ROOT))
        found = extract("python", io.BytesIO(source), keywords=KEYWORDS, comment_tags=["Translators:"])
        for _line, message, comments, context in found:
            if message:
                catalog.add(message, locations=[(where, 0)], auto_comments=comments, context=context)
    return catalog


def written(catalog: Catalog) -> bytes:
    out = io.BytesIO()
    write_po(out, catalog, width=0, sort_by_file=True, include_lineno=False, ignore_obsolete=True)
    return out.getvalue()


def faults() -> list[str]:
    """What is not fresh, or not said in a language that is offered, as sentences."""
    catalog = collected()
    fresh = POT.exists() and POT.read_bytes() == written(catalog)
    found = [] if fresh else ["locale/django.pot is not fresh: run make catalogues"]
    for path in languages():
        translated, name = read(path), path.relative_to(ROOT)
        if {key(message) for message in translated} != {key(message) for message in catalog}:
            found.append(f"{name} has not the sentences of locale/django.pot: run make catalogues")
        found += [f"{name}: {fault}" for message in translated if message.id for fault in wrong(message)]
        compiled_ = path.with_suffix(".mo")
        if not compiled_.exists() or compiled_.read_bytes() != compiled(translated):
            found.append(f"{compiled_.relative_to(ROOT)} is not fresh: run make catalogues")
    return found


def languages() -> list[Path]:
    """The file of each language."""
    return sorted(POT.parent.glob("*/LC_MESSAGES/django.po"))


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3])


def key(message: Message) -> tuple[object, str | None]:
    return message.id, message.context


def wrong(message: Message) -> list[str]:
    """Why a sentence does not stand for the English one: it is missing, a guess, or fills in other values."""
    said = message.string if isinstance(message.string, tuple | list) else (message.string,)
    english = message.id if isinstance(message.id, tuple | list) else (message.id,)
    if not all(said) or message.fuzzy:
        return [f"{english[0]!r} is not translated"]
    names, texts = set(PLACE.findall(english[-1])), [one for one in said if one]
    return [f"{one!r} does not fill in {sorted(names)}" for one in texts if set(PLACE.findall(one)) != names]


def compiled(catalog: Catalog) -> bytes:
    out = io.BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def update() -> None:
    """Write the template, and bring every language's files to its sentences."""
    catalog = collected()
    POT.parent.mkdir(exist_ok=True)
    POT.write_bytes(written(catalog))
    for path in languages():
        translated = read(path)
        translated.update(catalog, no_fuzzy_matching=True)
        path.write_bytes(written(translated))
        path.with_suffix(".mo").write_bytes(compiled(translated))


def main(arguments: list[str]) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    sys.path.insert(0, str(ROOT))
    if arguments != ["--check"]:
        update()
        return 0
    found = faults()
    sys.stderr.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
