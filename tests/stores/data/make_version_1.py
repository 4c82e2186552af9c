"""Made version-1.db and version-1.json: a data file of schema version 1, and what is in it.

Kept to show where they come from. Never run it again once a later version exists: the file is
worth having because old code wrote it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tandemq.model.message import Lease, Message, Options, Run, State, Step
from tandemq.stores.base import Batch, Row
from tandemq.stores.rows import encode_head
from tandemq.stores.sqlite import SQLiteStore

HERE = Path(__file__).parent
START = 1_760_000_000_000
FACTS = {
    "queue/emails": msgspec.msgpack.encode({"paused": True, "limit": 5}),
    "schedule/nightly": msgspec.msgpack.encode({"cron": "0 3 * * *", "runs": 12}),
    "log/017a-done": msgspec.msgpack.encode(["started", "halfway", "ended"]),
    "empty": b"",
}


def steps(*states: State) -> list[Step]:
    return [Step(state, START + n * 10) for n, state in enumerate(states)]


def message(seq: int, state: State, **rest: object) -> Message:
    plain = Message(
        id=f"017a-{state.name.lower()}-{seq}",
        queue="emails",
        name="welcome",
        body=b"\x81\xa1n\x01",
        seq=seq,
        created=START + seq,
        due=START + seq,
        state=state,
        born=State.READY,
        stored=True,
    )
    return msgspec.structs.replace(plain, **rest)


MESSAGES = [
    message(1, State.NEW),
    message(2, State.PARKED, queue="Bücher", name="großer Auftrag ✓", born=State.PARKED),
    message(3, State.DELAYED, due=START + 86_400_000, born=State.DELAYED, priority=-7),
    message(4, State.READY),
    message(5, State.READY, body=b"", options=Options(max_attempts=1, tags=("a", "é"))),
    message(6, State.READY, body=b"large body " * 400, options=Options(backoff=1.5, ttl=60_000)),
    message(
        7,
        State.LEASED,
        attempts=1,
        leases=2,
        options=Options(
            max_attempts=5,
            backoff=250,
            backoff_type="exponential",
            ttl=1e9,
            timeout=5000,
            lifo=True,
            durable=True,
            remove_on_complete=True,
            remove_on_fail=True,
            custom_id=True,
            stall_timeout=30_000,
            stack_trace_limit=3,
            keep_logs=100,
            size_limit=4096.5,
            tags=("x",),
        ),
        lease=Lease("0199-token", START + 30_000, 30_000, 12, 3),
        run=Run(
            started=START + 10,
            heartbeat=START + 20,
            progress=42.5,
            progress_message="halfway",
            stack=("Error: no", "  at line 1"),
            error="no",
            stalls=1,
            interruptions=2,
            retired="0199-older",
            history=[
                Step(State.READY, START),
                Step(State.LEASED, START + 5),
                Step(State.DELAYED, START + 6, "no", 1),
            ],
        ),
    ),
    message(8, State.LEASED, leases=1, lease=Lease(None, 0, 0, None), run=Run(started=START)),
    message(
        9,
        State.DONE,
        leases=1,
        run=Run(
            started=START,
            finished=START + 99,
            progress=100,
            result=b"\x82\xa2ok\xc3\xa1n\x07",
            history=steps(State.READY, State.LEASED, State.DONE),
        ),
    ),
    message(
        10,
        State.DEAD,
        attempts=3,
        leases=3,
        run=Run(
            finished=START + 99,
            error="boom",
            cause="max_attempts_exceeded",
            stack=(),
            history=steps(State.READY, State.LEASED, State.DEAD),
        ),
    ),
    message(11, State.GONE),
]


def main() -> None:
    store = SQLiteStore(HERE / "version-1.db")
    store.open()
    new = [Row(m.seq, encode_head(m), m.body) for m in MESSAGES]
    store.commit(Batch(new=new, facts={**FACTS}))
    store.close()
    (HERE / "version-1.db.lock").unlink()
    told = msgspec.json.encode({"messages": MESSAGES, "facts": FACTS})
    (HERE / "version-1.json").write_bytes(msgspec.json.format(told, indent=1) + b"\n")


if __name__ == "__main__":
    main()
