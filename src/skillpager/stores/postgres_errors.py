"""Failures of PostgreSQL as errors that say what a user can do; which of them another attempt may mend."""

import re
from collections.abc import Sequence

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from skillpager.errors import StoreError

# errors of a session that another session may not have
PASSING = (
    *(errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.TooManyConnections),
    *(errors.SerializationFailure, errors.DeadlockDetected, errors.IdleInTransactionSessionTimeout),
)
# our statements fit the tables that we made, so these are not those tables any more; the last is what a
# prepared statement gives when a table has got another column
OTHER_TABLES = (
    *(errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName),
    errors.FeatureNotSupported,
)

_TOO_MANY = "has too many connections: raise max_connections on the server, or use fewer processes"
_REASONS: tuple[tuple[tuple[type[psycopg.Error], ...], str], ...] = (
    (
        (errors.InsufficientPrivilege,),
        "does not allow this role to do so: grant it the rights that docs/postgres.md lists",
    ),
    ((errors.DiskFull, errors.ConfigurationLimitExceeded), "is full: free some space on the server"),
    ((errors.OutOfMemory,), "has too little memory: give the server more"),
    (
        (errors.ReadOnlySqlTransaction,),
        "is read-only, as a standby is: name the primary, or add target_session_attrs=read-write",
    ),
    ((errors.LockNotAvailable,), "is locked by another session: wait for it or end it"),
    ((errors.QueryCanceled,), "takes too long: raise the statement_timeout of this role, or try again"),
    ((errors.DataCorrupted, errors.IndexCorrupted), "is damaged on the disk of its server: restore it"),
    (OTHER_TABLES, "has other tables than this SkillPager makes: use one release on all hosts"),
    ((errors.TooManyConnections,), _TOO_MANY),
    ((PoolTimeout,), "is busy, all connections of this process are in use: try again"),
)
# Of a failure to connect libpq gives no code, only the words of the server, in its language. A failure whose
# words are not recognized is tried again, and its reason is the last one.
_REFUSALS = (
    (
        r"authentication failed|no password supplied|no pg_hba\.conf entry|role .* (?:does not exist|is not)",
        "refuses this role or its password: correct them",
    ),
    (r"permission denied for database", "does not allow this role to connect: grant it CONNECT"),
    (r"database .* does not exist", "is not on this server: make it with `createdb`, or correct its name"),
    (r"SSL|TLS|certificate", "cannot be reached in the way that sslmode asks for: set up TLS, or correct it"),
    (r"invalid .*(?:option|value)", "has an option that is not valid: correct the address"),
)
_UNREACHABLE = (
    (r"too many clients|too many connections|connection slots", _TOO_MANY),
    (r"", "cannot be reached: start the server, or correct the address"),
)


def is_final(failure: Exception) -> bool:
    """Return whether connecting again would fail in the same way."""
    known = isinstance(failure, psycopg.Error)
    return not known or any(re.search(pattern, str(failure)) for pattern, _ in _REFUSALS)


def explain(error: psycopg.Error, place: str, secrets: Sequence[str]) -> StoreError:
    """Return the error that says what is wrong with the store at `place`, and what to do; without secrets."""
    said = error.diag.message_primary or str(error)
    for secret in secrets:
        said = said.replace(secret, "…")
    said = " ".join(said.split()).rstrip(".")
    reason = next((reason for kinds, reason in _REASONS if isinstance(error, kinds)), "")
    if not reason and error.sqlstate is None:
        known = (*_REFUSALS, *_UNREACHABLE)
        reason = next(reason for pattern, reason in known if re.search(pattern, said))
    reason = reason or "cannot be used: see the log of the server"
    return StoreError(f"The index store {place} {reason} (PostgreSQL: {said}).")
