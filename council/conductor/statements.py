"""The conductor's statements: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

VECTORS = "SELECT agent, version, vector FROM agent_embeddings WHERE model = ?"
KEEP_VECTOR = """INSERT INTO agent_embeddings (agent, model, version, vector) VALUES (?, ?, ?, ?)
ON CONFLICT (agent, model) DO UPDATE SET version = excluded.version, vector = excluded.vector"""
PREFERENCES = "SELECT name, value FROM preferences WHERE user_id = ? ORDER BY name"
SET_PREFERENCE = """INSERT INTO preferences (user_id, name, value) VALUES (?, ?, ?)
ON CONFLICT (user_id, name) DO UPDATE SET value = excluded.value"""
FORGET_PREFERENCE = "DELETE FROM preferences WHERE user_id = ? AND name = ?"
FORGET_PREFERENCES = "DELETE FROM preferences WHERE user_id = ?"
FACTS = "SELECT fact_id, fact FROM kept_facts WHERE user_id = ? ORDER BY at_ms, fact_id"
FORGET_FACT = "DELETE FROM kept_facts WHERE user_id = ? AND fact_id = ?"
FORGET_FACTS = "DELETE FROM kept_facts WHERE user_id = ?"
PROFILES = "SELECT agent, profile FROM conversation_agents WHERE lane = ? ORDER BY agent"
KEEP_PROFILE = """INSERT INTO conversation_agents (lane, agent, profile) VALUES (?, ?, ?)
ON CONFLICT (lane, agent) DO NOTHING"""
WITH_PROFILES = "SELECT DISTINCT lane FROM conversation_agents"
END_CONVERSATION = "DELETE FROM conversation_agents WHERE lane = ?"
DROP_COPY = "DELETE FROM kept WHERE owner = ? AND name = ?"
REQUESTS_IN_LANE = "SELECT count(*) FROM runs WHERE lane = ?"
LAST_RECEIPT = """SELECT receipt FROM runs WHERE lane = ? AND receipt IS NOT NULL AND ended_ns IS NOT NULL
ORDER BY run DESC LIMIT 1"""
