#!/usr/bin/env python
"""Run a management command: `python manage.py help` lists them."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    if sys.argv[1:2] == ["web"]:
        # The role decides how the settings open connections, so it has to stand before they are read.
        os.environ.setdefault("HANDOFF_ROLE", "web")
    from django.core.management import execute_from_command_line

    from console.env import BadEnvironment

    try:
        execute_from_command_line(sys.argv)
    except BadEnvironment as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
