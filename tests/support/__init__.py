"""What the tests against a real server process share: the process, a raw client, patience."""
