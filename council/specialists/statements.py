"""The statements of specialists: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

COLUMNS = (
    "id", "role", "created_by", "spec_snapshot", "status", "scope", "version", "parent", "execution_count",
    "success_count", "avg_confidence", "admin_approved_by", "admin_approved_at", "created_at", "last_used_at", "suite_at",
    "suite_model", "suite_run",
)  # fmt: skip
_SPECIALISTS = f"SELECT {', '.join(COLUMNS)} FROM dynamic_agents_view"
ALL = f"{_SPECIALISTS} ORDER BY role, created_at, id"
OF_USER = f"""{_SPECIALISTS} WHERE status <> 'deprecated' AND ((scope = 'user' AND created_by = ?) OR scope = 'global')
ORDER BY scope DESC, role"""  # one's own first

ADD = "INSERT INTO dynamic_agents (id, role, created_by, spec_snapshot, created_at, parent) VALUES (?, ?, ?, ?, ?, ?)"
OWN = "SELECT id, status FROM dynamic_agents WHERE created_by = ? AND role = ? AND scope = 'user'"
GLOBAL = "SELECT id FROM dynamic_agents WHERE role = ? AND scope = 'global' AND status <> 'deprecated'"
CHANGE = "UPDATE dynamic_agents SET spec_snapshot = ?, version = ?, status = 'unverified' WHERE id = ?"
PROMOTE = """UPDATE dynamic_agents SET status = 'verified', scope = 'global', admin_approved_by = ?, admin_approved_at = ?
WHERE id = ?"""
DEMOTE = """UPDATE dynamic_agents SET status = 'unverified', scope = 'user', admin_approved_by = NULL,
admin_approved_at = NULL WHERE id = ?"""
DEPRECATE = "UPDATE dynamic_agents SET status = 'deprecated' WHERE id = ?"

ADD_VERSION = """INSERT INTO dynamic_agent_versions
(agent_id, version, spec_snapshot, test_suite, change, run_id, plan_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
VERSIONS = """SELECT version, spec_snapshot, test_suite, change, run_id, plan_id, created_at FROM dynamic_agent_versions
WHERE agent_id = ? ORDER BY version"""

NOT_PASSED = "SELECT 1 FROM runs WHERE run_id = ? AND status IN ('failed', 'cancelled')"

TELEMETRY = (
    "run_id", "step", "agent_id", "version", "user_id", "kind", "success", "objected", "confidence", "said", "error",
    "level", "model", "duration_s", "calls", "tokens", "cost_usd", "at",
)  # fmt: skip
DROP_TELEMETRY = "DELETE FROM task_telemetry WHERE run_id = ? AND step = ?"
ADD_TELEMETRY = f"INSERT INTO task_telemetry ({', '.join(TELEMETRY)}) VALUES ({', '.join('?' * len(TELEMETRY))})"
_ROWS = f"SELECT {', '.join(TELEMETRY)} FROM task_telemetry"
ROWS_OF = f"{_ROWS} WHERE agent_id = ? ORDER BY at, run_id, step"
USES_OF_RUN = f"{_ROWS} WHERE run_id = ? AND kind = 'use' ORDER BY step"
SETTLE = """UPDATE task_telemetry SET success = success * ?, error = error || ?, level = ?, said = ?
WHERE run_id = ? AND step = ? AND kind = 'use'"""  # of a use that went on after its plan
OBJECT = "UPDATE task_telemetry SET objected = ? WHERE run_id = ? AND kind = 'use'"

DRAFTED = """INSERT INTO specialist_approvals
(id, user_id, spec_proposal, test_suite, needed_resources, provided_resources, run_id, plan_id, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
PROVIDED = "UPDATE specialist_approvals SET provided_resources = ? WHERE id = ?"
TRAINED = "UPDATE specialist_approvals SET training_results = ? WHERE id = ?"
TRAINING = """SELECT plan_id, spec_proposal, training_results FROM specialist_approvals WHERE run_id = ?
ORDER BY created_at DESC, id DESC LIMIT 1"""
APPROVALS = """SELECT id, user_id, state, needed_resources, provided_resources, run_id, plan_id, created_at, expires_at
FROM specialist_approvals_view WHERE user_id = ? ORDER BY created_at, id"""

ADMINISTRATORS = "SELECT user_id FROM roles WHERE role = 'administrator' ORDER BY user_id"
USERS = "SELECT user_id FROM users ORDER BY user_id"
