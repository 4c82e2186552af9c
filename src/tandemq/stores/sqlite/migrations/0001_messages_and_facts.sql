-- Version 1. The whole layout; docs/decisions/0003-sqlite-layout.md says why it looks like this.

PRAGMA application_id = 1413762385; -- "TDMQ": the file is ours

-- A message: what changes (head), and what does not (body). A large body is NULL here and
-- stands in the table of that name, so that a change of the head leaves it alone.
CREATE TABLE message (
    seq INTEGER PRIMARY KEY,
    head BLOB NOT NULL,
    body BLOB
);

CREATE TABLE body (
    seq INTEGER PRIMARY KEY,
    body BLOB NOT NULL
);

-- Everything that is not a message: settings of queues, schedules, logs.
CREATE TABLE fact (
    key TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
