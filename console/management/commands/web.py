"""`manage.py web`: the pages, by uvicorn."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from typing import Any

import uvicorn
from django.core.management.base import BaseCommand

from console.ports import listen


class Command(BaseCommand):
    help = "Serve the pages. Loopback only, unless --host says otherwise."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument(
            "--port", type=int, default=8000, help="the next free one is used where it is taken"
        )
        parser.add_argument("--fd", type=int, help="a listening socket that was opened already")

    def handle(self, *args: Any, **options: Any) -> None:
        given = options["fd"]
        opened = socket.socket(fileno=given) if given else listen(host=options["host"], port=options["port"])
        self.stdout.write(f"Serving on http://{options['host']}:{opened.getsockname()[1]}")
        config = uvicorn.Config(
            "console.asgi:application",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # An open stream would hold the process for ever.
            timeout_graceful_shutdown=2,
        )
        uvicorn.Server(config).run(sockets=[opened])
