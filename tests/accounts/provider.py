"""A small OpenID Connect provider: a real server with discovery, keys and a token endpoint. It lies when asked to."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "handoff", "shared secret"


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """What it says next. `claims` go over the honest ones; `lies` over the discovery document."""

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    lies: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    key: rsa.RSAPrivateKey = field(default_factory=_key)
    signs_with: rsa.RSAPrivateKey | None = None
    asked: dict[str, str] = field(default_factory=dict)

    def authorize(self, location: str) -> str:
        """What a browser does at the service: the code and state with which it comes back."""
        parts = urlsplit(location)
        assert f"{parts.scheme}://{parts.netloc}" == self.issuer
        self.asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return f"code=abc&state={self.asked['state']}"

    def document(self) -> dict[str, Any]:
        paths = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
        honest = {"issuer": self.issuer, **{name: f"{self.issuer}/{name}" for name in paths}}
        methods = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        return {**honest, **methods, **self.lies}

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "k1", "alg": "RS256", "use": "sig"}]}

    def token(self, sent: dict[str, str]) -> dict[str, Any] | None:
        """The answer to the code, for the client that knows the secret and began this."""
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        known = (sent.get("client_id"), sent.get("client_secret"), sent.get("code"))
        if known != (CLIENT, SECRET, "abc") or challenge != self.asked.get("code_challenge"):
            return None
        now = int(time.time())
        honest = {
            "iss": self.issuer, "aud": CLIENT, "sub": "subject-1", "iat": now, "exp": now + 60, "auth_time": now,
            "nonce": self.asked["nonce"], "email": "kim@example.com", "email_verified": True,
        }  # fmt: skip
        said = {name: value for name, value in {**honest, **self.claims}.items() if value is not None}
        signer: Any = self.signs_with or self.key
        if self.algorithm == "none":
            signer = None
        elif self.algorithm == "HS256":
            signer = b"k" * 64
        token = jwt.encode(said, signer, algorithm=self.algorithm, headers={"kid": "k1"})
        return {"access_token": "at", "token_type": "Bearer", "id_token": token}


@contextmanager
def running() -> Iterator[Provider]:
    """A provider on a free port of this machine."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wants_keys = self.path == "/jwks_uri"
            self._answer(provider.keys() if wants_keys else provider.document())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(provider.token({name: values[0] for name, values in parse_qs(body).items()}))

        def _answer(self, body: dict[str, Any] | None) -> None:
            self.send_response(200 if body else 400)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body or {"error": "invalid_grant"}).encode())

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
