"""Floor 1: the broker without I/O. It is told the time and never asked to wait."""
