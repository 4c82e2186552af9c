"""Floor 0: words. Records, policies, errors and names; nothing that needs a clock or a socket."""
