"""Floor 2: where messages survive the process. Rows in, rows out."""
