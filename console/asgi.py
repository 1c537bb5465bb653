"""The ASGI application, for any ASGI server: `uvicorn console.asgi:application`."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
os.environ.setdefault("HANDOFF_ROLE", "web")

application = get_asgi_application()
