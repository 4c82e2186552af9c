"""Floor 4: asyncio. Sockets, commit, clock."""
