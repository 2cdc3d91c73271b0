"""What the engine is asked for, where there is none: every argument of a container, and who is swept."""

from __future__ import annotations

import json
from typing import Any

import docker.errors
import pytest

from council.sandbox import containers
from council.sandbox.job import NoCage


class Engine:
    """An engine that notes what it is asked for."""

    def __init__(self, images: tuple[str, ...] = (), found: list[dict[str, Any]] | None = None) -> None:
        self._images = images
        self._found = found or []
        self.removed: list[str] = []

    def create_host_config(self, **asked: Any) -> dict[str, Any]:
        return asked

    def inspect_image(self, name: str) -> None:
        if name not in self._images:
            raise docker.errors.ImageNotFound(name)

    def containers(self, **asked: Any) -> list[dict[str, Any]]:
        assert asked == {"all": True, "filters": {"label": "council.sandbox"}}
        return self._found

    def remove_container(self, name: str, **_: Any) -> None:
        self.removed.append(name)


def test_a_container_is_made_with_every_limit_of_the_source_and_those_that_it_lacks() -> None:
    asked = containers.container_settings(Engine(), "python:3.11-slim", "specialist-sandbox-1")
    host = asked["host_config"]
    assert (host["mem_limit"], host["memswap_limit"]) == (256 << 20, 256 << 20)
    assert host["cpu_quota"] / host["cpu_period"] == 0.5
    assert host["pids_limit"] == 50
    assert (host["network_mode"], host["ipc_mode"]) == ("none", "none")
    assert host["read_only"] is True
    assert host["cap_drop"] == ["ALL"]
    assert host["auto_remove"] is True
    assert host["log_config"]["Type"] == "none"
    assert "noexec" in host["tmpfs"]["/tmp"]
    privileges, profile = host["security_opt"]
    assert privileges == "no-new-privileges"
    assert json.loads(profile.removeprefix("seccomp="))["defaultAction"] == "SCMP_ACT_ERRNO"
    assert asked["user"] == "65534:65534"
    assert asked["name"].startswith("specialist-sandbox-")
    assert asked["labels"] == {"council.sandbox": containers.owner()}
    assert asked["stdin_open"] is True
    assert asked["use_config_proxy"] is False
    assert "volumes" not in asked
    assert "binds" not in host


def test_the_image_that_was_built_here_comes_first_and_none_is_pulled() -> None:
    both = ("council-sandbox:latest", "python:3.11-slim", "own:1")
    assert containers.found_image(Engine(both), None) == "council-sandbox:latest"
    assert containers.found_image(Engine(both[1:]), None) == "python:3.11-slim"
    assert containers.found_image(Engine(both), "own:1") == "own:1"
    for there, wanted in (((), None), (both[:2], "own:1")):
        with pytest.raises(NoCage) as raised:
            containers.found_image(Engine(there), wanted)
        assert raised.value.fix == "council sandbox build-image"


def test_only_containers_whose_process_is_gone_are_swept() -> None:
    host, boot, pid, started = containers.owner().split(" ")
    labels = {
        "ours": containers.owner(),
        "of an earlier start of the machine": f"{host} other-boot {pid} {started}",
        "of a dead process": f"{host} {boot} {pid} 1",
        "of another machine": f"elsewhere other-boot {pid} {started}",
    }
    found = [
        {"Id": name, "Names": [f"/{name}"], "Labels": {"council.sandbox": label}} for name, label in labels.items()
    ]
    engine = Engine(found=found)
    assert containers.sweep(engine) == engine.removed == ["of an earlier start of the machine", "of a dead process"]
