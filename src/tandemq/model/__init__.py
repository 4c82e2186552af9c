"""Floor 0: words. Records, policies, errors and names; no behaviour that needs a clock or a socket."""
