"""``python -m tandemq`` does what ``tandemq`` does."""

from __future__ import annotations

from tandemq.cli.main import main

if __name__ == "__main__":
    main()
