"""Every error that Council raises on purpose: one tree, each with a machine code, an exit code and an HTTP status.

    CouncilError
    ├── ConfigError            config_invalid     settings, council.toml, environment, flags
    │   ├── HomeNotFound       home_not_found     no home here or above
    │   └── DatabaseTooNew     database_too_new   a newer program wrote the database
    ├── CommandInvalid         command_invalid    a command file that cannot become a run
    │   └── IdConflict         id_conflict        the same `id` with another content
    ├── PathRefused            path_refused       a path outside what is allowed
    ├── PersonaError           persona_invalid    a missing or unreadable persona
    ├── MissingContextError    missing_context    an agent that requires what it cannot be given
    ├── InputUnreadable        input_unreadable   no named input could be read
    ├── ToolRefused            tool_refused       a request token that is not honoured
    ├── TookTooLong            took_too_long      work on a text from outside that did not end in time
    ├── GuardrailBlocked       guardrail_blocked  a task or a decision that a guardrail does not let pass
    ├── ModelError             model_<kind>       a call to a language model failed
    │   └── ReplayMiss         replay_miss        a cassette holds no reply to a request
    ├── CouncilSilent          council_silent     no member of a council could answer
    ├── Drift                  drift              what a step asks is not what it asked when it was recorded
    ├── JournalDamaged         journal_damaged    a record in the middle of a journal does not verify
    ├── StorageFailed          storage_failed     disk full, read-only folder, failing sync
    ├── KeysRefused            keys_refused       no key, or one that is kept where others read it
    ├── CredentialRefused      credential_refused a credential that is not there, expired or tampered with
    ├── RunNotFound            run_not_found      no run by that id
    ├── DaemonRunning          daemon_running     another process holds this home
    ├── WaitTimeout            wait_timeout       a wait ended before its answer came
    └── UsageError             usage              a command line that does not fit

Errors that one room alone raises are defined there, below CouncilError. Examples are a spent budget, a run that waits, and what
cannot be forgotten.

`message` says what and where, `fix` says how to mend it, `data` carries the values. Unknown exceptions never reach a
user as text: the rim reports them by type and keeps the traceback in the log.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NewType

EXIT_OK = 0
EXIT_FAILED = 1  # a run failed
EXIT_USAGE = 2  # the command line or a command file has a mistake (typer's own usage code)
EXIT_CONFIG = 3  # settings, home or personas have a mistake
EXIT_NO_DAEMON = 4  # a daemon is needed, or another one is in the way
EXIT_TIMEOUT = 5  # waited long enough
EXIT_REFUSED = 6  # refused by a rule: path, tool, approval
EXIT_DEGRADED = 7  # a run ended with something missing
EXIT_CANCELLED = 8  # a run was cancelled
EXIT_WAITING = 75  # only waiting runs remain (EX_TEMPFAIL of sysexits.h)
EXIT_INTERRUPTED = 130  # SIGINT, as shells count it

STATUS_EXIT: dict[str, int] = {
    "succeeded": EXIT_OK,
    "degraded": EXIT_DEGRADED,
    "failed": EXIT_FAILED,
    "cancelled": EXIT_CANCELLED,
    "skipped": EXIT_CANCELLED,  # the id of a scheduled occurrence that was skipped: nothing was run
}
EXIT_CODES: dict[int, str] = {
    EXIT_OK: "all is well",
    EXIT_FAILED: "a run failed, or would fail as things are",
    EXIT_USAGE: "the command line or a command file has a mistake",
    EXIT_CONFIG: "settings, home or personas have a mistake",
    EXIT_NO_DAEMON: "no daemon where one is needed, or another one holds the home",
    EXIT_TIMEOUT: "the wait ended before the answer came",
    EXIT_REFUSED: "refused by a rule (path, tool, guardrail)",
    EXIT_DEGRADED: "a run ended with something missing (status degraded)",
    EXIT_CANCELLED: "a run was cancelled",
    EXIT_WAITING: "only waiting runs remain; run again later",
    EXIT_INTERRUPTED: "interrupted",
}


GivenCode = NewType("GivenCode", str)
"""The code of another error, which one with a table of codes passes on."""


class CouncilError(Exception):
    """Root of the tree.

    `message`: one line, what went wrong and where. `fix`: one line, how to mend it. `data`: the values involved.
    """

    code: str = "internal"
    exit_code: ClassVar[int] = EXIT_FAILED
    http_status: int = 500

    def __init__(self, message: str, *, fix: str = "", **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} Fix: {self.fix}" if self.fix else self.message


class ConfigError(CouncilError):
    code = "config_invalid"
    exit_code = EXIT_CONFIG
    http_status = 500


class HomeNotFound(ConfigError):
    code = "home_not_found"


class DatabaseTooNew(ConfigError):
    code = "database_too_new"


class CommandInvalid(CouncilError):
    """A command file that cannot become a run. `line` and `column` count from 1; `field` is dotted, empty if unknown."""

    code = "command_invalid"
    exit_code = EXIT_USAGE
    http_status = 422

    def __init__(
        self,
        message: str,
        *,
        fix: str = "",
        line: int | None = None,
        column: int | None = None,
        field: str = "",
        **data: object,
    ) -> None:
        super().__init__(message, fix=fix, **data)
        self.line = line
        self.column = column
        self.field = field


class IdConflict(CommandInvalid):
    code = "id_conflict"
    http_status = 409


class PathRefused(CouncilError):
    """`reason` is a short machine word: absolute, parent, symlink, denied, not_found, directory, special, too_large, …
    `why` has the words of the refusal without the path, for who has named it; empty where the message is more than that."""

    code = "path_refused"
    exit_code = EXIT_REFUSED
    http_status = 403

    def __init__(self, message: str, *, reason: str, fix: str = "", why: str = "", **data: object) -> None:
        super().__init__(message, fix=fix, **data)
        self.reason = reason
        self.why = why


class PersonaError(CouncilError):
    code = "persona_invalid"
    exit_code = EXIT_CONFIG


class MissingContextError(CouncilError):
    """`data` holds the agent's role and the field that its manifest requires (source: conductor, "Context Boundaries")."""

    code = "missing_context"
    exit_code = EXIT_CONFIG
    http_status = 422


class InputUnreadable(CouncilError):
    code = "input_unreadable"
    http_status = 422


class ToolRefused(CouncilError):
    code = "tool_refused"
    exit_code = EXIT_REFUSED
    http_status = 403


class TookTooLong(CouncilError):
    code = "took_too_long"
    http_status = 422


class GuardrailBlocked(CouncilError):
    """`data["stage"]` says what was judged: task or decision."""

    code = "guardrail_blocked"
    exit_code = EXIT_REFUSED
    http_status = 422


ModelErrorKind = Literal[
    "auth",
    "billing",
    "not_found",
    "request",
    "rate",
    "overload",
    "server",
    "timeout",
    "network",
    "unreachable",
    "protocol",
    "blocked",
    "length",
    "empty",
]

# A later try can succeed with the same request.
RETRYABLE: frozenset[ModelErrorKind] = frozenset(
    {"rate", "overload", "server", "timeout", "network", "unreachable", "protocol", "empty"}
)
# Every further call would fail the same way: the run ends, and the steward is told what to mend.
FATAL: frozenset[ModelErrorKind] = frozenset({"auth", "billing", "not_found", "request"})


class ModelError(CouncilError):
    """A call to a model failed. `kind` decides what happens next; `retry_after_s` is the provider's own wish, if any.

    `unreachable`: there is no way to another machine just now, which time alone can mend. `network`: a connection failed
    that time alone does not mend, such as one to this machine itself.
    """

    exit_code = EXIT_FAILED
    http_status = 502

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        fix: str = "",
        retry_after_s: float | None = None,
        model: str = "",
        **data: object,
    ) -> None:
        super().__init__(message, fix=fix, **data)
        self.kind: ModelErrorKind = kind
        self.code = f"model_{kind}"
        self.retry_after_s = retry_after_s
        self.model = model

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE

    @property
    def unsent(self) -> bool:
        """True where no connection came about: nobody has heard of the call."""
        return bool(self.data.get("unsent"))

    @property
    def fatal(self) -> bool:
        return self.kind in FATAL


class ReplayMiss(ModelError):
    """A cassette has no reply to what is asked. `data["diff"]` is the first difference to the nearest recorded prompt."""

    def __init__(self, message: str, *, fix: str, model: str, diff: str = "") -> None:
        super().__init__("request", message, fix=fix, model=model, diff=diff)
        self.code = "replay_miss"


class JournalDamaged(CouncilError):
    code = "journal_damaged"


class CouncilSilent(CouncilError):
    """No member of a council could answer. The failed turns are recorded, so only a retry asks again."""

    code = "council_silent"


class Drift(CouncilError):
    """A run met a change under its feet (model, prompt, journal epoch): going on would mix two councils."""

    code = "drift"
    http_status = 409


class StorageFailed(CouncilError):
    code = "storage_failed"
    http_status = 507


class KeysRefused(CouncilError):
    """The key that seals credentials and signs the audit cannot be had. Not a ConfigError: runs wait for it."""

    code = "keys_refused"
    exit_code = EXIT_CONFIG


class CredentialRefused(CouncilError):
    """`reason`: absent, expired, tampered, unknown_key, unfit or unavailable."""

    code = "credential_refused"
    exit_code = EXIT_REFUSED
    http_status = 403

    def __init__(self, message: str, *, reason: str, fix: str = "", **data: object) -> None:
        super().__init__(message, fix=fix, **data)
        self.reason = reason


class RunNotFound(CouncilError):
    code = "run_not_found"
    exit_code = EXIT_USAGE
    http_status = 404


class DaemonRunning(CouncilError):
    code = "daemon_running"
    exit_code = EXIT_NO_DAEMON
    http_status = 409


class WaitTimeout(CouncilError):
    code = "wait_timeout"
    exit_code = EXIT_TIMEOUT
    http_status = 504


class UsageError(CouncilError):
    code = "usage"
    exit_code = EXIT_USAGE
    http_status = 400
