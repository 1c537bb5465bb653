"""Documents of constraints that an orchestrator's configuration holds outside: what they say, asked for and kept.

`document` reads one, `outside` fetches it, `kept` holds what was last heard and decides how long that counts.
"""

from __future__ import annotations

from runs.configuration.document import Document, DocumentRefused, Stated
from runs.configuration.kept import ask, ask_all, ask_due, document_of, last

__all__ = ["Document", "DocumentRefused", "Stated", "ask", "ask_all", "ask_due", "document_of", "last"]
