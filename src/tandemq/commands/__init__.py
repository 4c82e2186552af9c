"""Floor 2: one typed request and one function for every command."""
