"""The tables of specialists, with the source's names and columns (source: Kingdom, section 4). Times are milliseconds since
the epoch. Counters and the state of an approval are computed: they stand in the views.

`spec_snapshot` is the truth about a specialist: nothing else says what it is. The vault holds the values of credentials, and
`provided_resources` their names alone.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Float, Index, Integer, String, Table, Text, text

from council.storage.tables import NO_WORDS, JsonWords, Words, add_view, metadata

_OWN = text("scope = 'user'")
_GLOBAL = text("scope = 'global' AND status <> 'deprecated'")

dynamic_agents = Table(
    "dynamic_agents",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("role", String(100), nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("spec_snapshot", JsonWords, nullable=False),
    Column("status", String(50), nullable=False, server_default="unverified"),
    Column("scope", String(50), nullable=False, server_default="user"),
    Column("admin_approved_by", String(255)),
    Column("admin_approved_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("parent", String(64), nullable=False, server_default=""),  # the specialist that it was made from
    CheckConstraint("status IN ('unverified', 'verified', 'deprecated')", name="status"),
    CheckConstraint("scope IN ('user', 'global')", name="scope"),
    CheckConstraint("scope = 'user' OR status <> 'unverified'", name="unverified_is_never_global"),
    Index("idx_dynamic_agents_status", "status", "scope"),
    Index("idx_dynamic_agents_user", "created_by"),
    Index("uq_dynamic_agents_own", "created_by", "role", unique=True, postgresql_where=_OWN),
    Index("uq_dynamic_agents_global", "role", unique=True, postgresql_where=_GLOBAL),
)

dynamic_agent_versions = Table(  # what each version was; `change` says in a few words why it came
    "dynamic_agent_versions",
    metadata,
    Column("agent_id", String(64), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("spec_snapshot", JsonWords, nullable=False),
    Column("test_suite", JsonWords, nullable=False),
    Column("change", Words, nullable=False),
    Column("run_id", String(64), nullable=False, server_default=""),
    Column("plan_id", String(64), nullable=False, server_default=""),
    Column("created_at", BigInteger, nullable=False),
)

specialist_approvals = Table(  # `needed_resources` and `provided_resources` are names of credentials
    "specialist_approvals",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(255), nullable=False),
    Column("spec_proposal", JsonWords, nullable=False),
    Column("test_suite", JsonWords, nullable=False),
    Column("needed_resources", Text, nullable=False, server_default="[]", info=NO_WORDS),
    Column("provided_resources", Text, nullable=False, server_default="[]", info=NO_WORDS),
    Column("training_results", JsonWords, nullable=False, server_default="[]"),
    Column("run_id", String(64), nullable=False),
    Column("plan_id", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index("idx_specialist_approvals_user_state", "user_id", "created_at"),
)

task_telemetry = Table(  # `kind`: training or use. `said` is the specialist's own confidence, which decides nothing
    "task_telemetry",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("step", String(200), primary_key=True),
    Column("agent_id", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("user_id", String(255), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("success", Integer, nullable=False),
    Column("objected", Integer, nullable=False, server_default="0"),
    Column("confidence", Float),
    Column("said", Float),
    Column("error", Words, nullable=False, server_default=""),
    Column("level", String(8), nullable=False, server_default=""),
    Column("model", Text, nullable=False, server_default="", info=NO_WORDS),
    Column("duration_s", Float, nullable=False, server_default="0"),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("at", BigInteger, nullable=False),
    CheckConstraint("kind IN ('training', 'use')", name="kind"),
    Index("ix_task_telemetry_agent_id", "agent_id", "version", "kind"),
)

_USES = "(SELECT COUNT(*) FROM task_telemetry t WHERE t.agent_id = a.id AND t.version = a.version AND t.kind = 'use'"
add_view(  # the source's columns, then ours; the figures are those of the present version
    "dynamic_agents_view",
    f"""
SELECT a.id, a.role, a.created_by, a.spec_snapshot, a.status, a.scope,
  {_USES}) AS execution_count,
  {_USES} AND t.success = 1 AND t.objected = 0) AS success_count,
  s.avg_confidence, a.admin_approved_by, a.admin_approved_at, a.created_at,
  (SELECT MAX(t.at) FROM task_telemetry t WHERE t.agent_id = a.id AND t.kind = 'use') AS last_used_at,
  a.version, a.parent, s.suite_at, s.suite_model, s.run_id AS suite_run
FROM dynamic_agents a LEFT JOIN (
  SELECT agent_id, version, run_id, AVG(confidence) AS avg_confidence, MAX(at) AS suite_at, MAX(model) AS suite_model
  FROM task_telemetry WHERE kind = 'training' GROUP BY agent_id, version, run_id
) s ON s.agent_id = a.id AND s.version = a.version AND s.run_id = (
  SELECT t.run_id FROM task_telemetry t WHERE t.agent_id = a.id AND t.version = a.version AND t.kind = 'training'
  ORDER BY t.at DESC, t.run_id DESC LIMIT 1
)
""",  # noqa: S608  our own constant
)
add_view(
    "specialist_approvals_view",
    """
SELECT s.id, s.user_id, s.spec_proposal, s.test_suite,
  CASE
    WHEN p.state IN ('applied', 'undone') THEN 'completed'
    WHEN r.status IN ('failed', 'cancelled') THEN 'rejected'
    WHEN p.state = 'confirmed' AND p.handed_ms IS NOT NULL THEN 'training'
    WHEN p.state = 'confirmed' AND p.confirmed_ms + 600000 >= {now_ms}
      AND s.provided_resources <> s.needed_resources THEN 'awaiting_resources'
    WHEN p.state = 'confirmed' AND p.confirmed_ms + 600000 >= {now_ms} THEN 'awaiting_confirmation'
    WHEN p.state IN ('draft', 'confirmed') AND p.expires_ms >= {now_ms} THEN 'awaiting_confirmation'
    ELSE 'rejected'
  END AS state,
  s.provided_resources, s.training_results, s.created_at, s.expires_at, s.needed_resources, s.run_id, s.plan_id
FROM specialist_approvals s LEFT JOIN plans p ON p.plan_id = s.plan_id LEFT JOIN runs r ON r.run_id = s.run_id
""",
)
