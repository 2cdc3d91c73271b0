"""`council sandbox` from outside: a job, a refusal and its record, a cage that cannot be shut, a kill in mid-job."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.cage import below
from tests.harness import environment, faulty_environment, make_home, run_cli, wait_until

MARK = 'import os\nos.write(3, b\'{"value": "it has run"}\')\nos._exit(0)\ndef f(x): pass\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = make_home(tmp_path / "home")
    (home / "job.py").write_text(
        "def area(sides):\n    return sides[0] * sides[1]\n\n\ndef forever(x):\n    import time\n    time.sleep(99)\n"
    )
    (home / "mark.py").write_text(MARK)
    return home


def audited(home: Path) -> list[dict[str, Any]]:
    done = run_cli("audit", "tail", "--json", cwd=home)
    return [record for record in json.loads(done.stdout)["records"] if record["action"] == "sandbox_refused"]


def test_a_function_of_a_file_is_called_with_json_and_its_answer_printed(home: Path) -> None:
    done = run_cli("sandbox", "run", "job.py", "--entry", "area", "--input", "[6, 7]", cwd=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")
    told = run_cli("sandbox", "run", "job.py", "--entry", "area", "--input", "[6, 7]", "--json", cwd=home)
    result = json.loads(told.stdout)
    assert (result["status"], result["value"], result["level"]) == ("ok", 42, "L2")
    assert not (home / ".council").exists()  # a job that is run leaves nothing in the home


def test_a_job_that_fails_ends_with_one_and_says_why(home: Path) -> None:
    done = run_cli("sandbox", "run", "job.py", "--entry", "area", "--input", "5", cwd=home)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: TypeError: 'int' object is not subscriptable\n")
    assert "return sides[0] * sides[1]" in done.stderr
    slow = run_cli("sandbox", "run", "job.py", "--entry", "forever", "--wall-s", "0.2", cwd=home)
    assert (slow.returncode, slow.stderr) == (1, "timeout: Timed out after 0.2s\n")


def test_what_cannot_be_a_job_is_told_with_a_fix(home: Path) -> None:
    (home / "large.py").write_text("#" * 70_000)
    (home / "latin.py").write_bytes(b"# \xe9")
    for file, argument, fix in (
        ("job.py", "{", "--input '{\"a\": 1}'"),
        ("job.py", "[" * 5000 + "]" * 5000, "--input '{\"a\": 1}'"),
        ("none.py", "1", "name a file of Python code"),
        ("large.py", "1", "at most 65,536 bytes"),
        ("latin.py", "1", "UTF-8"),
        (".", "1", "name a file of Python code"),
    ):
        done = run_cli("sandbox", "run", file, "--entry", "area", "--input", argument, cwd=home)
        assert done.returncode == 2
        assert fix in done.stderr.partition("fix: ")[2]


def test_a_check_proves_the_cage_by_probes_and_doctor_has_a_line_of_it(home: Path) -> None:
    done = run_cli("sandbox", "check", "--json", cwd=home)
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"]) == (0, True)
    [zygote] = [each for each in told["sandboxes"] if each["name"] == "zygote"]
    assert zygote["level"] == "L2"
    assert "system calls were tried, and all refused" in zygote["message"]
    people = run_cli("sandbox", "check", cwd=home).stdout
    assert "zygote  L2" in people
    assert "L0  in the daemon's own process; never for foreign code" in people
    assert "sandbox" in run_cli("doctor", cwd=home).stdout


def denied(what: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return run_cli(what, *arguments, cwd=home, env=faulty_environment(), module="tests.denied")


@pytest.mark.parametrize(
    ("what", "bubblewrap", "reason"),
    [
        ("seccomp", "off", "system call filter: Operation not permitted"),
        ("seccomp", "auto", "system call filter: Operation not permitted"),
        ("limits", "off", "not allowed to raise maximum limit"),
        ("limits", "auto", "not allowed to raise maximum limit"),
        ("namespaces", "auto", "bwrap: "),
    ],
)
def test_a_cage_that_cannot_be_shut_refuses_the_job_and_its_code_has_not_run(
    what: str, bubblewrap: str, reason: str, home: Path, require_service: Callable[[str, bool, str], None]
) -> None:
    require_service("bubblewrap", shutil.which("bwrap") is not None, "apt install bubblewrap")
    (home / "council.toml").write_text(f'sandbox_bubblewrap = "{bubblewrap}"\n')
    job = ("sandbox", "run", "mark.py", "--entry", "f", "--json")
    control = json.loads(run_cli(*job, cwd=home).stdout)
    assert (control["status"], control["value"]) == ("ok", "it has run")
    done = denied(what, *job, home=home)
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"], result["value"]) == (6, "refused", None)
    assert reason in result["error"]
    assert " Fix: " in result["error"]
    [record] = audited(home)
    assert (record["kind"], record["detail"]["backend"]) == ("refusal", "zygote")
    assert reason in record["detail"]["reason"]
    check = denied(what, "sandbox", "check", "--json", home=home)
    [zygote] = [each for each in json.loads(check.stdout)["sandboxes"] if each["name"] == "zygote"]
    assert zygote["level"] is None
    assert zygote["fix"]


def test_a_weak_cage_is_used_when_the_steward_says_so_and_is_named(home: Path) -> None:
    (home / "council.toml").write_text("allow_weak_sandbox = true\n")
    job = ("sandbox", "run", "job.py", "--entry", "area", "--input", "[6, 7]", "--json")
    strong = json.loads(run_cli(*job, cwd=home).stdout)
    weak = json.loads(denied("seccomp", *job, home=home).stdout)
    assert (strong["value"], strong["level"]) == (42, "L2")
    assert (weak["value"], weak["level"]) == (42, "L1")
    assert denied("limits", *job, home=home).returncode == 6
    check = denied("seccomp", "sandbox", "check", "--json", home=home)
    [zygote] = [each for each in json.loads(check.stdout)["sandboxes"] if each["name"] == "zygote"]
    assert (check.returncode, zygote["level"]) == (6, "L1")
    assert "allow_weak_sandbox" in zygote["message"]


def test_without_namespaces_the_filter_alone_is_enough(home: Path) -> None:
    (home / "council.toml").write_text('sandbox_bubblewrap = "off"\n')
    done = denied("namespaces", "sandbox", "run", "job.py", "--entry", "area", "--input", "[6, 7]", home=home)
    assert (done.returncode, done.stdout) == (0, "42\n")


@pytest.mark.parametrize("bubblewrap", ["off", "auto"])
def test_a_kill_in_mid_job_leaves_no_process(bubblewrap: str, home: Path) -> None:
    (home / "council.toml").write_text(f'sandbox_bubblewrap = "{bubblewrap}"\n')
    job = ("sandbox", "run", "job.py", "--entry", "forever")
    with warm.start("council", job, cwd=home, env=environment()) as process:
        theirs = wait_until(lambda: _with_a_job(process.pid), "the job runs")
        process.kill()
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: not theirs & _all_processes(), "all of them are gone")


def _with_a_job(pid: int) -> set[int]:
    """The descendants of a process when one of them is a job: that is, has its limits."""
    found = below(pid)
    limits = [path for each in found if (path := Path(f"/proc/{each}/limits")).exists()]
    return found if any("Max open files            8 " in path.read_text() for path in limits) else set()


def _all_processes() -> set[int]:
    """Zombies apart: whoever adopted them reaps them."""
    found = set()
    for name in os.listdir("/proc"):
        try:
            found |= {int(name)} if name.isdigit() and " Z " not in Path(f"/proc/{name}/stat").read_text() else set()
        except OSError:
            continue
    return found


# ── in a real engine ─────────────────────────────────────────────────────────────────────────────────────────────────


def docker_job(home: Path, server: str, code: str, argument: Any = None) -> dict[str, Any]:
    (home / "case.py").write_text(code)
    done = run_cli(
        "sandbox", "run", "case.py", "--entry", "f", "--input", json.dumps(argument), "--docker", "--json",
        cwd=home, env=environment(DOCKER_HOST=server),
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def containers(server: str) -> dict[str, int]:
    """The name of each container of a sandbox, and the process that it belongs to."""
    import docker

    client = docker.DockerClient(base_url=server)
    found = client.containers.list(all=True, ignore_removed=True, filters={"label": "council.sandbox"})
    return {each.name: int(each.labels["council.sandbox"].split(" ")[2]) for each in found}


def left_over(server: str) -> set[str]:
    """The containers whose process is gone."""
    return {name for name, pid in containers(server).items() if pid not in _all_processes()}


GUARANTEES = """
import ctypes, errno, os, signal, socket

def tried(attempt):
    try:
        return attempt() or "done"
    except OSError as error:
        return errno.errorcode[error.errno]

def forks():
    made = 0
    try:
        while True:
            if os.fork() == 0:
                signal.pause()
            made += 1
    except BlockingIOError:
        return made

def f(target):
    libc = ctypes.CDLL(None, use_errno=True)
    said = dict(line.rstrip().split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
    raw = {}
    for name, number in (("io_uring", 425), ("bpf", 321), ("keyctl", 250), ("ptrace", 101), ("mount", 165), ("unshare", 272)):
        ctypes.set_errno(0)
        raw[name] = (libc.syscall(number, 0x10000000, 0, 0, 0, 0), errno.errorcode.get(ctypes.get_errno()))
    return {
        "network": [sorted(os.listdir("/sys/class/net")), tried(socket.socket)],
        "root": [tried(lambda: open(path, "w")) for path in ("/new", "/usr/new", "/etc/passwd", "/proc/sys/kernel/hostname")],
        "tmp": tried(lambda: open("/tmp/new", "w").write("x" * (17 << 20))),
        "exec": tried(lambda: os.execv("/tmp/new", ["new"])),
        "identity": [os.getuid(), os.getgid(), os.getgroups(), tried(lambda: os.setuid(0))],
        "held": [said[name].strip() for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")],
        "system calls": raw,
        "processes": forks(),
        "files": tried(lambda: open(target).read()),
    }
"""


def test_each_guarantee_of_a_container_holds_from_inside(home: Path, docker_server: str) -> None:
    result = docker_job(home, docker_server, GUARANTEES, str(home / "job.py"))
    assert (result["status"], result["level"]) == ("ok", "L3"), result
    found = result["value"]
    assert found["network"] == [["lo"], "EPERM"]
    assert set(found["root"]) <= {"EROFS", "EACCES", "ENOENT"}
    assert found["tmp"] == "ENOSPC"
    assert found["exec"] == "EACCES"
    assert found["identity"] == [65_534, 65_534, [65_534], "EPERM"]
    assert found["held"] == ["0" * 16, "0" * 16, "1", "2"]
    assert {name: tuple(answer) for name, answer in found["system calls"].items()} == dict.fromkeys(
        found["system calls"], (-1, "EPERM")
    )
    assert 0 < found["processes"] < 50
    assert found["files"] == "ENOENT"
    assert left_over(docker_server) == set()


def test_memory_processor_deadline_and_output_of_a_container_are_bounded(home: Path, docker_server: str) -> None:
    memory = docker_job(
        home,
        docker_server,
        "import os\ndef f(x):\n    a = []\n    while True:\n        a.append(os.urandom(1 << 20))\n",
    )
    assert memory["status"] == "memory"
    assert memory["peak_memory_bytes"] <= 256 << 20
    spin = (
        "import time\ndef f(x):\n    end = time.monotonic() + 2\n    while time.monotonic() < end:\n        pass\n"
        "    return time.process_time()\n"
    )
    half = docker_job(home, docker_server, spin)
    assert 0 < half["value"] < 1.5  # of two seconds: half a core
    flood = docker_job(home, docker_server, "import os\nwhile True:\n    os.write(3, b'x' * 4096)\n")
    assert flood["status"] == "output_cap"
    done = run_cli(
        "sandbox", "run", "job.py", "--entry", "forever", "--docker", "--wall-s", "1",
        cwd=home, env=environment(DOCKER_HOST=docker_server),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "timeout: Timed out after 1s\n")
    assert left_over(docker_server) == set()


def test_a_kill_in_mid_job_leaves_no_container(home: Path, docker_server: str) -> None:
    import docker

    api = docker.DockerClient(base_url=docker_server).api

    def works(pid: int) -> bool:
        """True when a job runs in the container of a process."""
        mine = [name for name, owner in containers(docker_server).items() if owner == pid]
        jobs = [job for name in mine for job in api.inspect_container(name)["ExecIDs"] or ()]
        return any(api.exec_inspect(job)["Running"] for job in jobs)

    command = [sys.executable, "-m", "council", "sandbox", "run", "job.py", "--entry", "forever", "--docker"]
    with subprocess.Popen(command, cwd=home, env=environment(DOCKER_HOST=docker_server)) as process:
        wait_until(lambda: works(process.pid), "the job runs")
        process.kill()
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: process.pid not in containers(docker_server).values(), "the container is gone")


def test_an_image_is_made_of_the_local_interpreter_and_runs(home: Path, docker_server: str) -> None:
    import docker

    env = environment(DOCKER_HOST=docker_server)
    done = run_cli("sandbox", "build-image", "--json", cwd=home, env=env)
    assert json.loads(done.stdout)["image"] == "council-sandbox:latest"
    version = docker_job(
        home, docker_server, "import ssl, sqlite3, sys\ndef f(x):\n    return list(sys.version_info[:3])\n"
    )
    assert version["value"] == list(sys.version_info[:3])
    check = run_cli("sandbox", "check", "--json", cwd=home, env=env)
    levels = {each["name"]: each["level"] for each in json.loads(check.stdout)["sandboxes"]}
    assert levels["docker"] == "L3"
    has_gvisor = "runsc" in docker.DockerClient(base_url=docker_server).info()["Runtimes"]
    assert levels.get("gvisor") == ("L4" if has_gvisor else None)


def test_without_an_engine_or_an_image_the_job_is_refused_with_what_mends_it(home: Path, docker_server: str) -> None:
    (home / "council.toml").write_text('sandbox_image = "none-such:1"\n')
    for server, reason, fix in (
        ("unix:///none/such.sock", "Docker cannot be reached at unix:///none/such.sock", "apt install docker.io"),
        (docker_server, "Docker has no image none-such:1", "council sandbox build-image"),
    ):
        result = docker_job(home, server, "def f(x):\n    return 1\n")
        assert result["status"] == "refused"
        assert reason in result["error"]
        assert fix in result["error"]
    assert len(audited(home)) == 2


def test_what_a_killed_daemon_left_is_swept_and_what_lives_is_not(home: Path, docker_server: str) -> None:
    import docker

    from council.sandbox.containers import LABEL, owner

    client = docker.DockerClient(base_url=docker_server)
    gone, lives = owner().rsplit(" ", 1)[0] + " 1", owner()
    made = [
        client.containers.create(
            "council-sandbox:latest", ["python", "-c", "0"], labels={LABEL: label}, network_mode="none"
        )
        for label in (gone, lives)
    ]
    try:
        assert docker_job(home, docker_server, "def f(x):\n    return 1\n")["value"] == 1
        assert made[0].name not in containers(docker_server)
        assert made[1].name in containers(docker_server)
    finally:
        made[1].remove(force=True)


def test_nothing_of_the_sandbox_is_loaded_or_started_before_it_is_needed(home: Path) -> None:
    code = (
        "import sys, council.cli.main as m\nsys.argv = ['council', 'status']\ntry:\n    m.main()\nfinally:\n"
        "    print([name for name in sys.modules if name.startswith(('council.sandbox', 'docker'))], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=home, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.stderr.strip().endswith("[]")
