"""People at their browsers: they read pages, follow links and press buttons. Nothing else reaches the product."""

from __future__ import annotations

from urllib.parse import urljoin

import httpx

from examples.refunds.smoke.html import Form, Node, NotOnPage, read

TIMEOUT = 20.0


class NotAnswered(Exception):
    """A page did not answer as it should; the text has the status and the first words."""


class Visitor:
    """One browser on one site. Give it `name` for what is said about it."""

    def __init__(self, *, name: str, url: str) -> None:
        self.name = name
        self._client = httpx.Client(
            base_url=url, timeout=TIMEOUT, trust_env=False, verify=False, follow_redirects=True
        )

    def sign_in(self, *, username: str, password: str) -> None:
        """Through the sign-in form, as it is. Raises NotAnswered where it is refused."""
        form = self.open("/login/").button("Sign in")
        page = self.send("/login/", form, username=username, password=password)
        if any(field.get("name") == "password" for field in page.all("input")):
            raise NotAnswered(f"{username} was not signed in: {page.text[:300]}")

    def open(self, path: str) -> Node:
        """Read a page. Raises NotAnswered."""
        return _page(self._client.get(path))

    def press(self, path: str, words: str, **typed: str) -> Node:
        """Open the page and press the button with these words, after typing into its form."""
        return self.send(path, self.open(path).button(words), **typed)

    def send(self, path: str, form: Form, **typed: str) -> Node:
        """Send a form of the page at `path`. Its hidden fields go as they came. Raises NotOnPage, NotAnswered."""
        for name, value in typed.items():
            if value not in form.choices.get(name, [value]):
                raise NotOnPage(f"{path}: {name} cannot be {value}, only {form.choices[name]}")
        target = urljoin(path, form.action) if form.action else path
        return _page(self._client.post(target, data={**form.values, **typed}))

    def json(self, path: str, **parameters: str) -> object:
        """What a path without a page answers."""
        return self._client.get(path, params=parameters).raise_for_status().json()

    def close(self) -> None:
        """Close the browser."""
        self._client.close()


def _page(response: httpx.Response) -> Node:
    page = read(response.text)
    if not response.is_success:
        where = f"{response.request.method} {response.request.url.path}"
        raise NotAnswered(f"{where} answered {response.status_code}: {page.text[:500]}")
    return page
