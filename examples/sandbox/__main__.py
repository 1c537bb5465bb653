"""Run the service: `python -m examples.sandbox --port 8100 --home DIR`."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from examples.sandbox.faults import Holds
from examples.sandbox.journal import Journal, JournalInUse
from examples.sandbox.routes import Router
from examples.sandbox.server import Server
from examples.sandbox.world import JournalDamaged, World


def main() -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code."""
    options = _options()
    try:
        server = _server(options.home, port=options.port)
    except (JournalInUse, JournalDamaged, OSError) as error:
        sys.stderr.write(f"The sandbox cannot start: {error}\n")
        return 1
    sys.stdout.write(f"listening on {server.url}\n")
    sys.stdout.flush()
    _serve(server)
    return 0


def _server(home: Path, *, port: int) -> Server:
    world = World(Journal(home / "journal.jsonl"))
    return Server(port, Router(world, Holds()))


def _serve(server: Server) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        server.server_close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.sandbox", description=__doc__)
    parser.add_argument("--port", type=int, default=8100, help="0 takes a free one and prints it")
    parser.add_argument("--home", type=Path, required=True, help="folder of the journal, made where missing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
