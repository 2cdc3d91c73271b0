"""Agents: their manifests (`manifest`), their memory across tasks (`memory`), and what passes between them (`handoff`,
`directory`)."""
