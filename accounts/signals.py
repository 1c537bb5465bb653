"""What other parts may listen to."""

from __future__ import annotations

from django.dispatch import Signal

#: A session has ended: its person signed out, or somebody ended it. Sent with `session_key` (str) in the transaction
#: that removes its row; whatever rests on the session asks the row, this only says when to look.
session_closed = Signal()
