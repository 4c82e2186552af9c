"""The client: links, calls, queues and jobs; asyncio first, with a sync twin."""
