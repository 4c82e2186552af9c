"""Delivering events over HTTP: bounded, patient with targets, never in the way of the loop.

A delivery is a POST that is tried a few times and then given up; what waits when the server ends
is lost, the registration is not (bunqueue semantics 16). Each webhook has a line of its own with a
few senders, so that a slow target delays nobody but itself, and a line that is full refuses more.

A name is resolved when a connection is made, and every address it stands for is judged then: one
that leads into this machine or its network is refused unless it is allowed (``webhook_allow``),
whatever the name said before. Redirects are followed and judged the same way.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from importlib.util import find_spec
from ssl import SSLContext, create_default_context
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from tandemq.engine.webhooks import EVENTS, Webhook
from tandemq.model import webhook_url
from tandemq.model.errors import BadRequest
from tandemq.model.outcome import Event
from tandemq.server.payloads import payload

if TYPE_CHECKING:
    from tandemq.server.runtime import Runtime

Headers = Mapping[bytes | str, bytes | str]

log = logging.getLogger("tandemq.webhooks")

MISSING = "webhooks cannot be delivered: pip install 'tandemq[webhooks]'"
TIMEOUT = 10.0  # s for one try, redirects and the head of the answer included
REDIRECTS = 5  # at most
SENDERS = 4  # deliveries of one webhook that run at once
GRACE = 1.0  # s for deliveries that run when the server stops
POOL = 500  # connections, in use or kept
KEEP_ALIVE = 15.0  # s that an idle connection is kept


class Refused(Exception):
    """A delivery that must not be made, or that a target did not take; the text says why."""


class Line:
    """The deliveries of one webhook."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[Webhook, Event]] = deque()
        self.running = 0


class Deliveries:
    """Every delivery that waits or runs."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        settings = runtime.settings
        self._tries = settings.webhook_max_retries
        self._pause = settings.webhook_retry_delay_ms / 1000
        self._networks = settings.webhook_networks
        self._most, self._most_bytes = settings.webhook_max_waiting, settings.webhook_max_bytes
        self._line = max(1, self._most // 10)
        self._lines: dict[str, Line] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._post: Post | None = None
        self._making = asyncio.Lock()
        self.waiting = 0
        self.held_bytes = 0  # of data in what waits or runs
        self.dropped = 0  # refused because too many waited
        self._closed = False

    def check_client(self) -> None:
        """Say so if nothing can be delivered for want of an HTTP client."""
        if find_spec("httpcore2") is None:
            log.error(MISSING)

    def offer(self, hook: Webhook, event: Event) -> None:
        """Deliver an event when its turn comes; it is counted as failed if too many wait."""
        if self._closed:
            return
        line, size = self._lines.setdefault(hook.id, Line()), _size(event)
        full = len(line.waiting) >= self._line or self.waiting >= self._most
        if full or (self.held_bytes and self.held_bytes + size > self._most_bytes):
            self.dropped += 1
            if self.dropped % 1_000 == 1:
                log.warning("%d deliveries wait: more to %s are dropped", self.waiting, hook.id)
            self._runtime.loop.call_soon(self._ended, hook, event, False)
            return
        line.waiting.append((hook, event))
        self.waiting += 1
        self.held_bytes += size
        if line.running < SENDERS:
            line.running += 1
            task = self._runtime.loop.create_task(self._send_all(hook.id, line))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give what runs a moment to end; what waits is given up."""
        self._closed = True
        for line in self._lines.values():
            line.waiting.clear()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=GRACE)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        if self._post is not None:
            await self._post.close()

    async def _send_all(self, id: str, line: Line) -> None:
        try:
            while line.waiting:
                hook, event = line.waiting.popleft()
                self.waiting -= 1
                if self._runtime.engine.webhooks.get(id) is not None:
                    self._ended(hook, event, await self._deliver(hook, event))
                self.held_bytes -= _size(event)
        finally:
            line.running -= 1
            if not (line.running or line.waiting):
                self._lines.pop(id, None)

    async def _deliver(self, hook: Webhook, event: Event) -> bool:
        body = await payload(event)
        for n in range(1, self._tries + 1):
            try:
                await self._try(hook, event, body)
                return True
            except Refused as problem:
                log.debug("try %d to deliver to %s: %s", n, hook.url, problem)
                reason = problem
            if n < self._tries:
                await asyncio.sleep(self._pause * n)
        log.warning("%s of %s was not delivered to %s: %s", event.type, event.id, hook.url, reason)
        return False

    async def _try(self, hook: Webhook, event: Event, body: bytes) -> None:
        post = await self._client()
        headers: dict[bytes | str, bytes | str] = {
            "Content-Type": "application/json",
            "X-Webhook-Event": EVENTS[event.type],
            "X-Webhook-Timestamp": str(event.at),
        }
        if hook.secret:
            signature = hmac.new(hook.secret.encode("utf-8", "surrogatepass"), body, "sha256")
            headers["X-Webhook-Signature"] = signature.hexdigest()
        try:
            async with asyncio.timeout(TIMEOUT):
                await post.send(hook.url, headers, body)
        except TimeoutError:
            raise Refused(f"no answer within {TIMEOUT:g} s") from None

    async def _client(self) -> Post:
        """Return the client, which is made when it is first needed: most servers need none."""
        if find_spec("httpcore2") is None:
            raise Refused(MISSING)
        async with self._making:
            if self._post is None:
                trust = await asyncio.to_thread(create_default_context)
                self._post = Post(self._networks, trust)
            return self._post

    def _ended(self, hook: Webhook, event: Event, well: bool) -> None:
        self._runtime.delivered(hook, EVENTS[event.type], well)


def _size(event: Event) -> int:
    data = event.fields.get("data")
    return len(data) if isinstance(data, bytes) else 0


class Post:
    """An HTTP client that goes only where webhooks may."""

    def __init__(self, networks: tuple[webhook_url.Network, ...], trust: SSLContext) -> None:
        import httpcore2

        from tandemq.server.outward import Outward

        self._http = httpcore2
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust,
            network_backend=Outward(networks),
            max_connections=POOL,
            keepalive_expiry=KEEP_ALIVE,
        )

    async def send(self, url: str, headers: Headers, body: bytes) -> None:
        """Send a body until somebody takes it.

        Raises:
            Refused: nobody did, or its way led where it must not.
        """
        method = "POST"
        for _ in range(REDIRECTS + 1):
            status, location = await self._ask(method, url, headers, body)
            if location is None:
                if not 200 <= status < 300:
                    raise Refused(f"answer {status}")
                return
            url = urljoin(url, location)
            if status not in (307, 308):
                method, body = "GET", b""
        raise Refused(f"more than {REDIRECTS} redirects")

    async def _ask(
        self, method: str, url: str, headers: Headers, body: bytes
    ) -> tuple[int, str | None]:
        """Return the status of the answer, and where it points to if it is a redirect."""
        try:
            target = webhook_url.check(url)
            request = self._request(method, target, headers, body)
            answer = await self._pool.handle_async_request(request)
            try:
                found = {name.lower(): value for name, value in answer.headers}
            finally:
                await answer.aclose()
        except BadRequest as problem:
            raise Refused(str(problem)) from None
        except (
            self._http.NetworkError,
            self._http.ProtocolError,
            self._http.TimeoutException,
        ) as problem:
            raise Refused(str(problem) or type(problem).__name__) from None
        where = found.get(b"location") if answer.status in (301, 302, 303, 307, 308) else None
        return answer.status, None if where is None else where.decode("latin-1")

    def _request(
        self,
        method: str,
        target: webhook_url.Target,
        headers: Headers,
        body: bytes,
    ) -> Any:
        host = f"[{target.host}]" if ":" in target.host else target.host
        named: dict[bytes | str, bytes | str] = {
            "Host": host,
            "User-Agent": "tandemq",
            "Accept": "*/*",
            **headers,
        }
        if target.port != webhook_url.SCHEMES[target.scheme]:
            named["Host"] = f"{host}:{target.port}"
        if target.userinfo is not None:
            login = ":".join(target.userinfo).encode()
            named["Authorization"] = "Basic " + b64encode(login).decode()
        if method == "POST":
            named["Content-Length"] = str(len(body))
        where = self._http.URL(
            scheme=target.scheme, host=target.host, port=target.port, target=target.path
        )
        return self._http.Request(method, where, headers=named, content=body)

    async def close(self) -> None:
        await self._pool.aclose()
