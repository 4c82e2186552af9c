"""The bunqueue wire: length-prefixed MessagePack, protocol version 3."""
