"""`Directory`: how a system offers its agents to the conductor. `app` registers one for each system that has agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol

from council.agents.handoff import ForwardKind, Handoff, Return
from council.agents.manifest import AgentManifest, by_name
from council.errors import CouncilError

_NAMED = 5  # agents in place of an unknown one: there may be a thousand


class AgentUnknown(CouncilError):
    code = "agent_unknown"
    http_status = 404


class Directory(Protocol):
    """The agents of one system, opened for a run. `forwards` names the agent for each kind of change that a Return may
    ask for. `reader` answers questions which change nothing; empty for none."""

    @property
    def forwards(self) -> Mapping[ForwardKind, str]: ...

    @property
    def reader(self) -> str: ...

    def list(self) -> Sequence[AgentManifest]:
        """The agents that the person who asks may use."""

    def get(self, name: str) -> AgentManifest | None:
        """The agent of that id, role or alias, in capitals or not."""

    async def run(self, handoff: Handoff) -> Return:
        """Whatever an agent cannot do is a Return with the status `failed`. Raises what ends or parks the whole run."""


class AgentListing:
    """A directory over manifests; a subclass adds `run`. Raises PersonaError for an alias that calls two."""

    forwards: Mapping[ForwardKind, str] = {}
    reader = ""

    def __init__(self, manifests: Sequence[AgentManifest]) -> None:
        self._manifests = tuple(manifests)
        self._called = by_name({manifest.role: manifest for manifest in manifests})

    def list(self) -> Sequence[AgentManifest]:
        return self._manifests

    def get(self, name: str) -> AgentManifest | None:
        return self._called.get(name.upper())

    def adopt(self, manifest: AgentManifest) -> None:
        """The agent as a run keeps it, whatever it has become since."""
        self._called[manifest.id.upper()] = manifest
        self._manifests = (*(one for one in self._manifests if one.id != manifest.id), manifest)


class Directories:
    """All directories of one run, the first one that knows a name first."""

    def __init__(self, directories: Sequence[Directory]) -> None:
        self._directories = tuple(directories)

    def list(self) -> Sequence[AgentManifest]:
        found: dict[str, AgentManifest] = {}
        for directory in self._directories:
            for manifest in directory.list():
                found.setdefault(manifest.id, manifest)
        return tuple(found.values())

    def of(self, name: str) -> tuple[Directory, AgentManifest]:
        for directory in self._directories:
            if (manifest := directory.get(name)) is not None:
                return directory, manifest
        offered = [manifest.id for manifest in self.list() if manifest.scope != "deliberation"]
        nearest = ", ".join(get_close_matches(name.lower(), offered, n=_NAMED, cutoff=0.0))
        raise AgentUnknown(f"There is no agent {name!r} here.", fix=nearest and f"use one such as {nearest}")

    @property
    def readers(self) -> tuple[str, ...]:
        return tuple(directory.reader for directory in self._directories if directory.reader)
