"""The filter, run step by step as the kernel does, over every number there is; and the profile of containers."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from council.sandbox.system_calls import ALLOWED, MACHINES, WITHOUT_EXECUTION, container_profile, filter_program

PUBLISHED = Path("/usr/include/asm-generic/unistd.h")  # the kernel's own numbers, which aarch64 uses
ALLOW, EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000


def answer(program: bytes, number: int, *, arch: int, third: int = 0) -> int:
    """What the kernel would do with a call."""
    words = {0: number, 4: arch, 32: third & 0xFFFFFFFF}
    steps = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    held, at = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        if code == 0x06:
            return int(value)
        if code == 0x20:
            held = words[value]
            at += 1
            continue
        holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
        at += 1 + (if_true if holds else if_false)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_not_on_the_list_is_refused(machine: str) -> None:
    column, arch = MACHINES[machine]
    program = filter_program(machine)
    plain = {numbers[column] for numbers in ALLOWED.values()}
    guarded = {numbers[column] for numbers in WITHOUT_EXECUTION.values()}
    answers = {number: answer(program, number, arch=arch) for number in range(1024)}
    assert {number for number, said in answers.items() if said == ALLOW} == plain | guarded
    assert set(answers.values()) == {ALLOW, EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_never_becomes_executable(machine: str) -> None:
    column, arch = MACHINES[machine]
    program = filter_program(machine)
    for numbers in WITHOUT_EXECUTION.values():
        answers = [answer(program, numbers[column], arch=arch, third=protection) for protection in range(8)]
        assert answers == [ALLOW] * 4 + [EPERM] * 4


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machine_and_another_numbering_end_the_process(machine: str) -> None:
    column, arch = MACHINES[machine]
    program = filter_program(machine)
    assert answer(program, ALLOWED["write"][column], arch=0x40000003) == KILL
    assert answer(program, 0x40000000 | ALLOWED["write"][column], arch=arch) == KILL
    assert answer(program, 0x40000000 - 1, arch=arch) == EPERM


def test_no_two_names_have_one_number_and_an_unknown_machine_has_no_filter() -> None:
    for column, _ in MACHINES.values():
        numbers = [both[column] for both in (*ALLOWED.values(), *WITHOUT_EXECUTION.values())]
        assert len(set(numbers)) == len(numbers)
    assert filter_program("riscv64") == b""


def test_the_numbers_of_aarch64_are_those_that_the_kernel_publishes(
    require_service: Callable[[str, bool, str], None],
) -> None:
    require_service("the kernel's headers", PUBLISHED.exists(), "apt install linux-libc-dev")
    found = re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)\n", PUBLISHED.read_text())
    published = {name: int(number) for name, number in found}
    column, audit_arch = MACHINES["aarch64"]
    assert audit_arch == 183 | 0x80000000 | 0x40000000  # EM_AARCH64, 64 bits, low byte first
    ours = {name: numbers[column] for name, numbers in (ALLOWED | WITHOUT_EXECUTION).items()}
    assert ours == {name: published[name] for name in ours}


def test_the_profile_of_containers_lets_through_neither_tracing_nor_sockets_nor_namespaces() -> None:
    profile = container_profile()
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert not allowed & {
        "ptrace", "socket", "connect", "bind", "io_uring_setup", "bpf", "userfaultfd", "keyctl", "mount", "unshare", "setns",
        "process_vm_readv", "process_vm_writev", "perf_event_open", "pivot_root", "chroot", "kexec_load", "reboot", "clone3",
        "memfd_create", "personality", "mknod", "setxattr",
    }  # fmt: skip
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    [clone] = [rule for rule in profile["syscalls"] if rule["names"] == ["clone"]]
    assert clone["args"][0]["op"] == "SCMP_CMP_MASKED_EQ"
    assert allowed >= {*ALLOWED, *WITHOUT_EXECUTION}
