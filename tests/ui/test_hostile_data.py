"""HTML and script in every field that users fill: shown as text on every page, never run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.server import Server, is_own
from tests.support.vibe import Vibe
from tests.support.web import Web
from tests.support.wire import Wire as Frames
from tests.ui.site import READY, WHY_NOT, asked, browse

from tandemq.wires.sniff import Wire

pytestmark = [
    pytest.mark.skipif(not READY, reason=WHY_NOT),
    pytest.mark.skipif(not is_own(), reason="the page of this server is tested"),
]

EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\"'><svg onload=alert(3)>"
QUEUE = "evil"


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def test_nothing_that_users_write_is_run(server: Server, web: Web) -> None:
    job = {
        "name": EVIL,
        "data": {EVIL: [EVIL]},
        "jobId": "id " + EVIL,
        "tags": [EVIL],
        "groupId": EVIL,
        "uniqueKey": EVIL,
        "maxAttempts": 1,
    }
    asked(web, "POST", f"/queues/{QUEUE}/jobs", job)
    pulled = asked(web, "POST", f"/queues/{QUEUE}/jobs/pull-batch", {"count": 1, "owner": EVIL})
    [dead], [token] = pulled["jobs"], pulled["tokens"]
    with Frames(server.port) as wire, Vibe(server.port, Wire.JSON) as vibe:
        wire.do("Progress", id=dead["id"], progress=5, message=EVIL)
        wire.do("AddLog", id=dead["id"], message=EVIL, level="error")
        wire.do("FAIL", id=dead["id"], token=token, error=EVIL, stack=[EVIL, EVIL])
        wire.do("RegisterWorker", name=EVIL, queues=[EVIL], workerId=EVIL, hostname=EVIL, pid=1)
        wire.do("Cron", name=EVIL, queue=QUEUE, data=EVIL, schedule="0 6 * * *", jobName=EVIL)
        vibe.connect()
        vibe.subscribe(QUEUE)
        vibe.publish(QUEUE, EVIL, {EVIL: EVIL})
        browse("hostile", server.http_port, id=dead["id"], queue=QUEUE, evil=EVIL)
