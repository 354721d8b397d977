"""Everything that can go wrong, as a tree with two branches.

WeirError
├── Permanent            a rerun cannot change it: nothing retries it
│   ├── DeclarationError     a topic, table or job was declared wrongly
│   ├── SettingsError        a profile or environment value is missing or wrong
│   ├── SetupError           the machine or the installation lacks something
│   ├── UsageError           a command was asked for something that does not exist or may not be
│   ├── PositionError        checkpoint, table and topics do not agree on where a release is
│   ├── ArchiveError         a release's archive is missing or not what was frozen
│   ├── RejectLimitExceeded  more bad records than the job allows
│   └── Superseded           a newer owner runs this release
└── Retryable            the same call may go through later
    ├── ServiceUnavailable   broker, control store or another service does not answer
    ├── LeaseHeld            somebody else owns it now
    └── BatchFailed          a batch stopped for a reason outside the data

Every error says what, where, what came instead, and what to do next.
"""

from __future__ import annotations


class WeirError(Exception):
    """The root. `what` is one sentence with its place; `remedy` is the next thing to do."""

    exit_code = 1

    def __init__(self, what: str, *, remedy: str = "") -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what} {remedy}".strip())


class Permanent(WeirError):
    """A rerun cannot change it."""


class Retryable(WeirError):
    """The same call may go through later."""

    exit_code = 75  # EX_TEMPFAIL


class DeclarationError(Permanent):
    """A declared value is wrong; the message names owner and field."""

    exit_code = 65  # EX_DATAERR


class SettingsError(Permanent):
    exit_code = 78  # EX_CONFIG


class SetupError(Permanent):
    exit_code = 69  # EX_UNAVAILABLE


class UsageError(Permanent):
    exit_code = 64  # EX_USAGE


class PositionError(Permanent):
    exit_code = 66


class ArchiveError(Permanent):
    exit_code = 66


class RejectLimitExceeded(Permanent):
    exit_code = 65


class Superseded(Permanent):
    exit_code = 70


class ServiceUnavailable(Retryable):
    pass


class LeaseHeld(Retryable):
    pass


class BatchFailed(Retryable):
    pass
