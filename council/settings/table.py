"""Every setting: its type, unit, bounds, default and meaning. Reads nothing; `layers` finds the values."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal, get_args, get_origin
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from council.proposals import nearest_zone
from council.settings.model_names import (
    DEFAULT_EMBEDDING_MODEL,
    DEFAULT_MODEL,
    PROVIDER_NAME,
    SPEAK_FOR_ALL,
    WITHOUT_EMBEDDINGS,
    model_chain,
    model_spelling,
)

_DAY_S = 86_400
_MIB = 1_048_576

MAX_GLOB_CHARS = 1024  # as long as a path may be
MAX_ROUNDS = 100
MAX_AGENTS = 9
ProtocolName = Literal["triad", "independent", "review"]
Names = tuple[str, ...]  # in a file a list, or as text in the two spellings that `_listed` takes


class PriceSetting(BaseModel):
    """US dollars per million tokens. `cached`: input served from a cache, the same as `input` when unset."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class ProviderSetting(BaseModel):
    """One provider's own settings, or a server of one's own.

    Further keys in a table are for an installed provider to judge; a key is never for a file.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    base_url: str | None = Field(
        default=None,
        description="Where the server is: the address before `/chat/completions`, usually ending in `/v1`.",
        json_schema_extra={"allowed": "an http:// or https:// URL"},
    )
    key_env: str | None = Field(
        default=None,
        pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,127})?$",
        description="Name of the variable that holds the key; empty for a server that wants none.",
        json_schema_extra={"allowed": "the name of a variable; empty: no key"},
    )
    context_tokens: int | None = Field(
        default=None, ge=512, le=10**9, description="What the model holds, prompt and answer together."
    )
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        default=None,
        description="The server's name for the token limit of a reply. Council tries another one if the server refuses it.",
    )
    json_mode: Literal["schema", "object", "none"] | None = Field(
        default=None,
        description="How Council asks for JSON: by schema, as any object, or in words alone.",
    )
    headers: dict[str, str] | None = Field(
        default=None,
        description="Further headers; never one with a key.",
        json_schema_extra={"allowed": "a table of texts, by name"},
    )
    models: dict[str, str] | None = Field(
        default=None,
        description="Short names for model ids.",
        json_schema_extra={"allowed": "a table of model ids, by short name"},
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Like the setting of that name, for this provider only."
    )
    max_output_tokens: int | None = Field(
        default=None, ge=1, le=_MIB, description="Like the setting of that name, for this provider only."
    )
    request_timeout_s: float | None = Field(
        default=None, ge=1, le=3600, description="Like the setting of that name, for this provider only."
    )

    @field_validator("context_tokens", "temperature", "max_output_tokens", "request_timeout_s", mode="before")
    @classmethod
    def _refuse_bool(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("true and false are not numbers")
        return value

    @field_validator("base_url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is not None and "@" in urlsplit(value).netloc:
            raise ValueError("a user and a password do not belong in an address; name the key's variable with key_env")
        return _checked_url(value)

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name, text in (value or {}).items():
            if _KEY_HEADER.search(name):
                raise ValueError(f"{name} would put a key in a file; name the key's variable with key_env")
            if not (_HEADER_NAME.fullmatch(name) and text.isascii() and text.isprintable()):
                raise ValueError(f"{name[:40]!r} is not a header that can be sent")
        return value

    @model_validator(mode="before")
    @classmethod
    def _refuse_keys(cls, value: object) -> object:
        for name in value if isinstance(value, dict) else ():
            if str(name) not in cls.model_fields and _KEY_NAME.search(str(name)):
                raise ValueError(f"`{name}` would put a key in a file; name the key's variable with key_env")
        return value

    def options(self) -> dict[str, Any]:
        """The values that are set."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


_KEY_NAME = re.compile(r"(?:key|token|secret|password|credentials?)$", re.IGNORECASE)
_KEY_HEADER = re.compile(r"authorization|api[-_]?key|token|secret|cookie", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_WITHOUT_SETTINGS = ("offline", "scripted")


def _listed(value: object) -> object:
    """A name, a JSON list, or names separated by commas."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError("neither a JSON list nor a list separated by commas") from None
    return [part.strip() for part in value.split(",") if part.strip()]


def _checked_url(value: str | None) -> str | None:
    if value is not None and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname):
        raise ValueError("not an http or https URL")
    return value


class Settings(BaseModel):
    """All settings. Seconds end in `_s`, sizes in `_bytes`; lists are JSON or separated by commas."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    model: str = Field(
        default=DEFAULT_MODEL,
        description="The model of every agent; `gemini` and `kairos` alone mean their first model (docs/models.md).",
        json_schema_extra={
            "allowed": "gemini, gemini:<model id>, scripted:<file>, cassette:<file>, offline, kairos or <provider>:<model id>"
        },
    )
    fallback_models: Names = Field(
        default=(),
        max_length=8,
        description="Models that answer, in this order, when one is overloaded, rate-limited, failing or unreachable.",
        examples=[["gemini:gemini-2.5-flash-lite"]],
        json_schema_extra={"allowed": "a list of at most 8 models"},
    )
    agent_models: dict[str, Names] = Field(
        default={},
        description="Models of single agents, by role: one model, or a list of it and its fallbacks.",
        examples=[{"AUDITOR": ["gemini:gemini-2.5-pro", "gemini:gemini-2.5-flash"]}],
        json_schema_extra={"allowed": "a table with a model or a list of models per role"},
    )
    protocol: ProtocolName = Field(
        default="triad", description="How a council deliberates if its command names no `protocol` (docs/protocols.md)."
    )
    max_rounds: int = Field(
        default=3,
        ge=1,
        le=MAX_ROUNDS,
        description="Rounds of a deliberation if its command names no `max_rounds`. Unset, the offline model takes 1, or 2 in "
        "another protocol than `triad`.",
    )
    agents: Names = Field(
        default=(),
        max_length=MAX_AGENTS,
        description="Who takes part, by role, if a command names no `agents`. Unset: COORDINATOR, STRATEGIST, AUDITOR.",
        examples=[["COORDINATOR", "AUDITOR"]],
        json_schema_extra={"allowed": f"a list of at most {MAX_AGENTS} roles"},
    )
    embedding_model: str | None = Field(
        default=None,
        description="With it, QUERY_CORTEX also finds passages by meaning. All passages are sent to this model's server.",
        examples=["gemini:gemini-embedding-001"],
        json_schema_extra={"allowed": "<provider>:<model id> of Gemini or an OpenAI-compatible server"},
    )
    embedding_dimensions: int | None = Field(
        default=None,
        ge=8,
        le=4096,
        description="Length of its vectors, if the model lets you choose. Unset: 768 with Gemini, else the model's own.",
        examples=[768],
    )
    gemini_api_version: str | None = Field(
        default=None,
        pattern=r"^v[0-9]+[a-z0-9]*$",
        description="API version for Gemini calls; the client's own default when unset.",
        examples=["v1"],
        json_schema_extra={"allowed": "a version such as v1 or v1beta"},
    )
    gemini_base_url: str | None = Field(
        default=None,
        description="Base URL for Gemini calls, a proxy for example; wins over GOOGLE_GEMINI_BASE_URL.",
        examples=["http://localhost:8080"],
        json_schema_extra={"allowed": "an http:// or https:// URL"},
    )
    request_timeout_s: float = Field(default=120.0, ge=1, le=3600, description="How long one model call may take.")
    max_output_tokens: int = Field(
        default=8192, ge=1, le=_MIB, description="Longest reply in tokens, including thinking."
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="Sampling temperature; the model's own default when unset.",
        examples=[0.2],
    )
    streaming: Literal["on", "off"] = Field(
        default="on", description="Whether the terminal and the growing artifact show an agent's words as they arrive."
    )
    native_tools: Literal["on", "off"] = Field(
        default="on",
        description="Whether models that support function calls also get their agents' tools as functions.",
    )
    model_attempts: int = Field(default=3, ge=1, le=10, description="Tries per model call, the first one included.")
    max_inline_wait_s: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="Longest wait for a provider inside a run; beyond it the run is parked.",
    )
    max_provider_calls: int = Field(
        default=12,  # four runs of a triad side by side, or the largest council at once
        ge=1,
        le=64,
        description="Calls to the model's provider that may be under way at once, over all runs. If a council has more "
        "members, its blind round takes longer than its slowest agent.",
    )
    max_calls_per_minute: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="Calls to the provider in any minute, over all runs; no limit when unset.",
        examples=[60],
    )
    day_max_calls: int | None = Field(
        default=None, ge=1, le=10_000_000, description="Calls of a day (UTC), all runs together.", examples=[1000]
    )
    day_max_tokens: int | None = Field(
        default=None, ge=1, le=10**12, description="Tokens of a day (UTC), all runs together.", examples=[5_000_000]
    )
    day_max_usd: float | None = Field(
        default=None, ge=0.01, le=1_000_000, description="US dollars of a day (UTC), all runs together.", examples=[5.0]
    )
    day_max_seconds: float | None = Field(
        default=None,
        ge=1,
        le=10**9,
        description="Seconds of a day (UTC) in which runs wait for their models, all runs together.",
        examples=[7200],
    )
    prices: dict[str, PriceSetting] = Field(
        default={},
        description="Prices that the bundled table lacks or has wrong, by model: input, output, cached (USD per million tokens).",
        examples=[{"gemini:my-model": {"input": 0.3, "output": 2.5}}],
        json_schema_extra={"allowed": "a table per model with input, output and, if it differs, cached"},
    )
    providers: dict[str, ProviderSetting] = Field(
        default={},
        description="A provider's own settings, or a server of your own, by name (docs/models.md).",
        examples=[{"my-server": {"base_url": "http://gpu-box:8000/v1", "context_tokens": 32768}}],
        json_schema_extra={"allowed": f"a table per provider with {', '.join(ProviderSetting.model_fields)}"},
    )
    max_parallel_runs: int = Field(
        default=4, ge=1, le=64, description="Runs that may be active at once, over all lanes."
    )
    quiet_s: float = Field(
        default=1.0, ge=0, le=3600, description="A YAML or Markdown command starts when unchanged for this long."
    )
    settle_s: float = Field(
        default=10.0, ge=0.1, le=3600, description="How long Council waits for an incomplete or missing command file."
    )
    scan_interval_s: float = Field(default=5.0, ge=0.05, le=3600, description="Scan commands/ at least this often.")
    storage_retry_s: float = Field(
        default=30.0,
        ge=0.1,
        le=3600,
        description="A run that waits for the disk or the database tries again this often; so does a daemon that cannot start.",
    )
    max_wait_s: float = Field(
        default=172_800.0, ge=0.1, le=30 * _DAY_S, description="A waiting run fails after this (48 h)."
    )
    answer_timeout_s: float = Field(
        default=7.0 * _DAY_S, ge=1, le=365 * _DAY_S, description="How long a run waits for a person's answer (7 days)."
    )
    conversation_ttl_s: float = Field(
        default=_DAY_S,
        ge=1,
        le=365 * _DAY_S,
        description="A conversation ends when nobody has asked for this long (24 h).",
    )
    verified_match: float = Field(
        default=0.85, ge=0, le=1, description="A verified agent is chosen by embedding above this similarity."
    )
    unverified_match: float = Field(
        default=0.80, ge=0, le=1, description="Your own unverified agent is chosen by embedding above this similarity."
    )
    route_confidence: float = Field(
        default=0.90, ge=0, le=1, description="The model's choice of an agent counts from this confidence on."
    )
    ask_confidence: float = Field(
        default=0.70,
        ge=0,
        le=1,
        description="From this confidence on, you are asked first. Below it, no agent is chosen.",
    )
    draft_ttl_s: float = Field(
        default=30.0 * _DAY_S,
        ge=1,
        le=3_650 * _DAY_S,
        description="A plan that nobody confirms expires after this (30 days).",
    )
    unlock_ttl_s: float = Field(
        default=900.0, ge=1, le=_DAY_S, description="A locked note stays open this long for whoever unlocked it."
    )
    max_attempts: int = Field(default=5, ge=1, le=100, description="Attempts without a new step before a run fails.")
    keep_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="Ended runs older than this are pruned; no limit when unset.",
        examples=[90],
    )
    keep_runs: int = Field(
        default=10_000, ge=1, le=10_000_000, description="Ended runs that are kept with their journals."
    )
    keep_bytes: int = Field(
        default=10 * 1024 * _MIB,
        ge=_MIB,
        le=2**50,
        description="Disk space for the journals of ended runs; the oldest go first.",
    )
    timezone: str = Field(
        default="",
        description="The time zone of this home. Prompts contain the date on which a command was admitted there. "
        "Most commands show times in it, and all read dates in it. Pages, `--json`, `council doctor` and error messages "
        "use UTC. "
        "Workspace events without a zone use it, or UTC if it is empty.",
        examples=["Europe/Berlin"],
        json_schema_extra={"allowed": "an IANA name such as Europe/Berlin; empty: the zone of the machine"},
    )
    http: str = Field(
        default="",
        pattern=r"^(?:(?:\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):[0-9]{1,5})?$",
        description="The address of the HTTP server that runs beside the daemon; none when empty.",
        examples=["127.0.0.1:8420"],
        json_schema_extra={"allowed": "host:port; empty: no server"},
    )
    http_hosts: Names = Field(
        default=(),
        max_length=64,
        description="Names by which the HTTP server may be called, besides this machine's own. An address that other "
        "machines reach needs one.",
        examples=[["council.example.org"]],
        json_schema_extra={"allowed": "a list of at most 64 host names"},
    )
    behind_tls: bool = Field(
        default=False,
        description="True where a proxy in front of the HTTP server speaks TLS: cookies are then sent over HTTPS only. An "
        "address that other machines reach needs it.",
    )
    session_ttl_s: float = Field(
        default=7.0 * _DAY_S,
        ge=60,
        le=365 * _DAY_S,
        description="A browser must sign in again after this (7 days).",
    )
    http_requests_per_minute: int = Field(
        default=300, ge=1, le=1_000_000, description="Requests that one address, and one key, may make in a minute."
    )
    max_command_bytes: int = Field(default=262_144, ge=1, le=_MIB, description="Largest command file.")
    max_file_bytes: int = Field(
        default=_MIB, ge=1, le=64 * _MIB, description="Largest file that an input or a tool reads."
    )
    max_document_bytes: int = Field(
        default=32 * _MIB,
        ge=1,
        le=256 * _MIB,
        description="Largest PDF, DOCX, HTML or mail file that an input or a tool reads.",
    )
    max_requests_per_reply: int = Field(default=8, ge=0, le=100, description="Tool requests honoured in one reply.")
    max_requests_per_task: int = Field(default=60, ge=0, le=10_000, description="Tool requests honoured in one run.")
    max_context_bytes_per_task: int = Field(
        default=2_097_152, ge=0, le=64 * _MIB, description="Text that tools may bring into one run."
    )
    max_context_bytes_per_request: int = Field(
        default=65_536, ge=1, le=16 * _MIB, description="Text that one tool request may bring."
    )
    read_roots: Names = Field(
        default=("**",),
        description=(
            "What agents may read: globs relative to the home. The default leaves out hidden files and folders "
            "(`.name`), and files as `council init` wrote them. An empty list allows nothing."
        ),
        json_schema_extra={"allowed": "globs relative to the home, without `..`"},
    )
    deny: Names = Field(
        default=(),
        description="What agents may never read, besides the list that `council config show` prints: globs relative to the home.",
        examples=[["private/**"]],
        json_schema_extra={"allowed": "globs relative to the home, without `..`"},
    )
    guardrails: Literal["on", "warn", "off"] = Field(
        default="on",
        description="`on`: a guardrail can block. `warn`: it only warns. `off`: nothing is judged (docs/guardrails.md).",
    )
    guardrail_model: str | None = Field(
        default=None,
        description="A model that gives a second opinion on tasks and decisions; none when unset.",
        examples=["gemini:gemini-2.5-flash-lite"],
        json_schema_extra={"allowed": "a model"},
    )
    scope_topics: Names = Field(
        default=(),
        max_length=64,
        description="The topics of this council: a task that contains none of these words is declined. Empty: every topic.",
        examples=[["database", "migration", "backup"]],
        json_schema_extra={"allowed": "a list of at most 64 words or phrases"},
    )
    seeds_dir: str | None = Field(
        default=None,
        min_length=1,
        description="Folder with original core_essence_<role>_awakening_seed.txt files; unset: personas/ only.",
        examples=["seeds"],
        json_schema_extra={"allowed": "a folder, absolute or relative to the home"},
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The lowest level that is logged."
    )
    log_format: Literal["auto", "human", "json"] = Field(
        default="auto", description="`auto`: lines for people on a terminal, JSON lines elsewhere."
    )
    watch: Literal["auto", "poll"] = Field(
        default="auto", description="`poll`: never rely on file events (network file systems)."
    )

    database_url: str | None = Field(
        default=None,
        description="A PostgreSQL database of this home's own (`council[postgres]`), in place of SQLite; never with a password.",
        examples=["postgresql://council@db-host/council"],
        json_schema_extra={"allowed": "a postgresql:// URL"},
    )
    key_source: Literal["auto", "keyring", "systemd", "environment", "file"] = Field(
        default="auto",
        description="Where the key is that encrypts credentials and signs the audit (docs/keys.md). `environment` is "
        "CREDENTIAL_ENCRYPTION_KEY, `systemd` the credential council-keys.",
    )
    key_file: str | None = Field(
        default=None,
        min_length=1,
        description="The file of keys, outside the home and for its owner only; unset: one below ~/.config/council/keys/.",
        examples=["/etc/council/keys.json"],
        json_schema_extra={"allowed": "a file, absolute or relative to the home"},
    )
    vault: Literal["database", "aws"] = Field(
        default="database",
        description="Where credentials are: encrypted in the home's database, or in AWS Secrets Manager (`council[aws]`).",
    )
    aws_prefix: str = Field(
        default="council",
        pattern=r"^[A-Za-z0-9_+=.@-]{1,64}$",
        description="How the names of this home's secrets in AWS begin.",
        json_schema_extra={"allowed": "1 to 64 letters, digits and _ + = . @ -"},
    )
    sandbox_workers: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Jobs of foreign code that run at once; as many as there are cores when unset.",
        examples=[4],
    )
    sandbox_bubblewrap: Literal["auto", "off"] = Field(
        default="auto",
        description="`auto`: bubblewrap adds namespaces around foreign code where it is installed (docs/sandbox.md).",
    )
    sandbox_image: str | None = Field(
        default=None,
        min_length=1,
        description="Image of containers for foreign code; unset: what `council sandbox build-image` made, else "
        "python:3.11-slim. It is never pulled.",
        examples=["python:3.12-slim"],
        json_schema_extra={"allowed": "an image that Docker has"},
    )
    allow_weak_sandbox: bool = Field(
        default=False,
        description="Also run foreign code where the system call filter does not work (L1). Not safe.",
    )
    require_docker_training: bool = Field(
        default=False,
        description="A specialist's code is trained and used only in a container. Without it, the code runs in a confined "
        "process of this machine where Docker cannot start a container.",
    )
    otel_endpoint: str | None = Field(
        default=None,
        description="Where OpenTelemetry spans go (OTLP over HTTP); else OTEL_EXPORTER_OTLP_ENDPOINT; unset: nowhere.",
        examples=["http://localhost:4318"],
        json_schema_extra={"allowed": "an http:// or https:// URL"},
    )
    otel_content: bool = Field(
        default=False,
        description="Spans also contain prompts, replies and tool results. Without it, they contain no text of a run.",
    )

    def day_of(self, moment: datetime) -> str:
        """The date of a moment in the home's zone, such as 2026-11-20."""
        return moment.astimezone(self.zone).date().isoformat()

    @property
    def zone(self) -> ZoneInfo | None:
        """The home's zone; None, as `datetime.astimezone` takes it, for that of the machine."""
        return ZoneInfo(self.timezone) if self.timezone else None

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool(cls, value: object, info: ValidationInfo) -> object:
        is_switch = cls.model_fields[str(info.field_name)].annotation is bool
        if isinstance(value, bool) and not is_switch:  # pydantic would read `true` as 1
            raise ValueError("true and false do not fit here")
        return value

    _check_model = field_validator("model")(model_spelling)

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, value: str) -> str:
        if value and value not in available_timezones():
            near = nearest_zone(value)
            raise ValueError(f"not a time zone; did you mean {near}?" if near else "not a time zone")
        return value

    @field_validator("embedding_model")
    @classmethod
    def _check_embedding_model(cls, value: str | None) -> str | None:
        if value is None or value == "gemini":
            return DEFAULT_EMBEDDING_MODEL if value else None
        if model_spelling(value).partition(":")[0] in WITHOUT_EMBEDDINGS:
            raise ValueError("it has no embeddings")
        return value.strip()

    @field_validator("fallback_models", "agent_models", mode="before")
    @classmethod
    def _split_models(cls, value: object) -> object:
        return {role: _listed(names) for role, names in value.items()} if isinstance(value, dict) else _listed(value)

    @field_validator("fallback_models")
    @classmethod
    def _check_fallbacks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return model_chain(value, may_be_offline=False) if value else ()

    @field_validator("agent_models")
    @classmethod
    def _check_agents(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {role.upper(): model_chain(names) for role, names in value.items()}

    @field_validator("guardrail_model")
    @classmethod
    def _check_guardrail_model(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if value.partition(":")[0] in SPEAK_FOR_ALL:
            raise ValueError(f"{value.split(':')[0]} has no opinion; name a language model")
        return model_spelling(value)

    _check_url = field_validator("gemini_base_url", "otel_endpoint")(_checked_url)

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, value: str | None) -> str | None:
        if value is None:
            return None
        scheme, _, rest = value.partition("://")
        if scheme not in ("postgresql", "postgres"):
            raise ValueError("not a postgresql:// URL")
        user, _, _ = rest.rpartition("@")  # up to the last one: a password may hold any character, unescaped
        if ":" in user or "password=" in unquote(rest):
            raise ValueError("a password does not belong in a setting; use PGPASSWORD or ~/.pgpass")
        return value

    @field_validator("providers")
    @classmethod
    def _check_provider_names(cls, value: dict[str, ProviderSetting]) -> dict[str, ProviderSetting]:
        for name in value:
            if not PROVIDER_NAME.fullmatch(name):
                raise ValueError(
                    f"{name[:40]!r} is not a valid name; use lower-case letters, digits, - and _, at most 32"
                )
            if name in _WITHOUT_SETTINGS:
                raise ValueError(f"{name} has no settings of its own")
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    _split_list = field_validator("read_roots", "deny", "scope_topics", "agents", mode="before")(_listed)

    @field_validator("scope_topics")
    @classmethod
    def _check_topics(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not re.search(r"[^\W_]", topic) or len(topic) > 80 for topic in value):
            raise ValueError("a topic is one or a few words, at most 80 characters")
        return value

    @field_validator("read_roots", "deny")
    @classmethod
    def _check_globs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # A glob that can match nothing inside the home would read as a rule and be none.
        if any(not g.strip() or g.startswith(("/", "~")) or ".." in PurePosixPath(g).parts for g in value):
            raise ValueError("globs are relative to the home, without `..`")
        if any(len(glob) > MAX_GLOB_CHARS for glob in value):
            raise ValueError(f"a glob has at most {MAX_GLOB_CHARS} characters")
        return value

    def chain(self, role: str, manifest: tuple[str, ...], command: str | None) -> tuple[str, ...]:
        """The models of one agent: the command's, else what is set for the role, else the manifest's, else the council's.
        Behind a single one come the fallbacks. The offline engine speaks for all, and so does a cassette."""
        if self.model.partition(":")[0] in SPEAK_FOR_ALL:
            return (self.model,)
        wanted = (command,) if command else self.agent_models.get(role) or manifest or (self.model,)
        if len(wanted) > 1 or wanted == ("offline",):
            return tuple(wanted)
        return tuple(dict.fromkeys((*wanted, *self.fallback_models)))


def allowed_values(key: str, table: type[BaseModel] = Settings) -> str:
    """The values that a setting takes, or a key of its table, in words: `a whole number from 1 to 64`."""
    field = table.model_fields[key]
    if isinstance(field.json_schema_extra, dict):
        return str(field.json_schema_extra["allowed"])
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    kind = kinds[0] if len(kinds) == 1 else field.annotation  # of one that may be unset
    if kind is bool:
        return "true or false"
    if get_origin(kind) is Literal:
        *words, last = get_args(kind)
        return f"{', '.join(words)} or {last}"
    least = next(m.ge for m in field.metadata if hasattr(m, "ge"))
    most = next((m.le for m in field.metadata if hasattr(m, "le")), None)
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    return f"{'a whole number' if kind is int else 'a number'} {bounds}"


def taken(path: Sequence[str | int]) -> str:
    """`http takes host:port; empty: no server`, of the innermost key on the path to a value."""
    key, *below = map(str, path)
    table = get_args(Settings.model_fields[key].annotation)[-1:]
    if len(below) > 1 and table and below[1] in getattr(table[0], "model_fields", ()):
        return f"{below[1]} takes {allowed_values(below[1], table[0])}"
    return f"{key} takes {allowed_values(key)}"


def council_toml_template() -> str:
    """A `council.toml` in which every setting stands as a comment, with its default or, if it has none, an example."""
    parts = [
        "# Settings of this home. Flags, COUNCIL_* variables and .env win over this file.",
        "# Provider keys (GEMINI_API_KEY) never belong here: the environment or .env holds them.",
    ]
    for key, field in Settings.model_fields.items():
        example = field.examples[0] if field.examples else field.default
        parts += ["", f"# {field.description} Takes {allowed_values(key)}.", f"# {key} = {_toml(example)}"]
    return "\n".join(parts) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)
