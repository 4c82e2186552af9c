"""Floor 3: bytes to requests and effects to bytes; no sockets."""
