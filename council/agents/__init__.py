"""Agents: manifests (`manifest`), memory across tasks (`memory`), one turn with a model (`turn`)."""
