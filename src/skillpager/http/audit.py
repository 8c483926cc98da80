"""The audit log: a line of JSON for each request, with the name of its token, never with the token itself."""

import json
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path

from skillpager.errors import SettingsError
from skillpager.http.visits import Visit

logger = logging.getLogger(__name__)


class AuditLog(WatchedFileHandler):
    """Appends lines to a file; if that was renamed or removed, as by logrotate, to a new one of its name.

    Each line is one write at the file's end, so that several processes may share it. A line that cannot be
    written is an error in the log, and the request is answered all the same.

    Args:
        path: The file; only its owner may read one that is made.
        queries: Whether lines hold the queries.
        failed: Called for each line that could not be written.

    Raises:
        SettingsError: The file cannot be written.
    """

    def __init__(self, path: Path, *, queries: bool, failed: Callable[[], None]) -> None:
        try:
            super().__init__(path, encoding="utf-8")
        except OSError as error:
            raise SettingsError(
                f"{path}: the audit log cannot be written ({error.strerror}): choose another "
                "file with --audit-log."
            ) from error
        self._queries = queries
        self._failed = failed
        self._said = False

    def _open(self):  # type: ignore[no-untyped-def]
        """Open the file for its owner alone: it says who read what."""
        opened = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(opened, "a", encoding=self.encoding)

    def write(
        self,
        visit: Visit,
        *,
        client: str | None,
        method: str,
        route: str,
        status: int,
        size: int,
        seconds: float,
    ) -> None:
        """Append the line of a request.

        Args:
            visit: What is noted of it.
            client: Address of its sender.
            method: Its method.
            route: Template of its path; the path itself may hold what a client made up.
            status: Status of the answer.
            size: Bytes of the answer's body.
            seconds: Time that the answer took.
        """
        line: dict[str, object] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "token": None if visit.token is None else visit.token.name,
            "client": client,
            "method": method,
            "route": route,
            "skills": visit.skills,
            "status": status,
            "bytes": size,
            "ms": round(seconds * 1000, 2),
        }
        if self._queries:
            line["query"] = visit.query
        self.handle(logging.LogRecord(__name__, logging.INFO, "", 0, json.dumps(line), None, None))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; the look for a renamed file may fail as well."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - as logging has it
        """Count a line that could not be written, and say so once."""
        self._failed()
        if not self._said:
            logger.error(
                "Lines of the audit log %s are lost, because it cannot be written.", self.baseFilename
            )
            self._said = True
