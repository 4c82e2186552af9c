"""A plain HTTP client for tests."""

from __future__ import annotations

import http.client
import json
from typing import Any


class Web:
    """One keep-alive connection to a server's HTTP port."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.headers: dict[str, str] = {}  # of the last answer

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send a request and return the answer; see ``send``."""
        self.send(method, path, body, headers)
        return self.answer()

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> None:
        """Send a request. A body of bytes goes as it is, anything else as JSON."""
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self._connection.request(method, path, sent, {**self._headers, **(headers or {})})

    def answer(self) -> tuple[int, Any]:
        """Return the status of the answer and what it holds, JSON or text."""
        answer = self._connection.getresponse()
        text = answer.read().decode()
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        is_json = self.headers.get("content-type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json and text else text

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        return self.ask("POST", path, {} if body is None else body)

    def close(self) -> None:
        self._connection.close()
