"""One process for one data file, also after a kill.

The lock is an flock on ``<file>.lock``. The kernel frees it with the process, however that ends,
and SQLite does not know it, so that a shell or a backup can read the data while we run. The file
stays behind empty-handed: to delete it would let two processes lock two files of one name.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from tandemq.stores.base import StoreUnusable

NO_ENTRY = {errno.EACCES, errno.EPERM, errno.EROFS}


class FileLock:
    """The right to use a data file; taken once, and kept until released or the process ends."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._path = data.with_name(data.name + ".lock")
        self._fd: int | None = None

    def take(self) -> None:
        """Lock, or say who holds it.

        Raises:
            StoreUnusable: another process holds the file, or no lock can be made beside it.
        """
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as exc:
            raise self._no_file(exc) from exc
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            refusal = self._held(fd, exc)
            os.close(fd)
            raise refusal from exc
        self._sign(fd)
        self._fd = fd

    def release(self) -> None:
        """Let go; without effect when nothing is held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _sign(self, fd: int) -> None:
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass  # a full disk: the number only makes the refusal of others friendlier

    def _no_file(self, exc: OSError) -> StoreUnusable:
        if exc.errno in NO_ENTRY:
            return StoreUnusable(
                f"{self._data}: the folder {self._data.parent} is not writable ({exc.strerror}). "
                "SQLite makes files beside the data: let this user write there, or give another "
                "file with --data."
            )
        return StoreUnusable(f"{self._data}: {self._path} cannot be opened ({exc.strerror}).")

    def _held(self, fd: int, exc: OSError) -> StoreUnusable:
        if not isinstance(exc, BlockingIOError):
            return StoreUnusable(
                f"{self._data}: the file system cannot lock files ({exc.strerror}). "
                "Keep the data on a local disk."
            )
        signed = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
        holder = f"process {signed}" if signed.isdecimal() else "another process"
        return StoreUnusable(
            f"{self._data}: {holder} uses this file. Stop it first, or give another file "
            "with --data."
        )
