"""The VibeMQ wires: JSON, and binary 1.1 and 1.0 (docs/protocol/vibemq.md)."""
