"""How much a person may write, and how large what is kept may be: for the forms and for what checks them."""

from __future__ import annotations

from typing import Final

LONGEST_TEXT: Final = 4000  #: characters of a reason or a note
LONGEST_GOAL: Final = 2000  #: characters of a goal that a person writes or an agent gives another run
LONGEST_CONSTRAINT: Final = 2000  #: characters of a constraint's text
LONGEST_CONSTRAINT_NAME: Final = 100
LONGEST_NAME: Final = 200  #: characters of a file's name
#: Bytes of an evidence or a value that stand in the event itself; a longer one is kept as an artifact.
LARGEST_INLINE: Final = 64 * 1024
LARGEST_RESULT: Final = 256 * 1024  #: bytes of a result that a planner keeps
LARGEST_FILE: Final = 20 * 1024 * 1024  #: bytes of a file that a person attaches
#: Bytes of an artifact. Evidence beyond it stands in its event, as it does where the storage is away.
LARGEST_ARTIFACT: Final = 256 * 1024 * 1024
