"""The system calls that foreign code may make: the filter of a zygote's children, and the profile of containers.

The filter allows computing, and writing to what is open already. It lets nobody open a file, make a process, thread or socket,
send a signal, or make memory executable.
"""

from __future__ import annotations

import struct
from typing import Any

# name: its number on x86-64 and on aarch64
ALLOWED = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62), "munmap": (11, 215),
    "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233), "nanosleep": (35, 101), "getpid": (39, 172),
    "exit": (60, 93), "gettimeofday": (96, 169), "sigaltstack": (131, 132), "gettid": (186, 178), "futex": (202, 98),
    "clock_gettime": (228, 113), "clock_nanosleep": (230, 115), "exit_group": (231, 94), "getrandom": (318, 278),
    "rseq": (334, 293),
}  # fmt: skip
WITHOUT_EXECUTION = {"mmap": (9, 222), "mprotect": (10, 226)}  # allowed unless the memory is to be executable
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of the tables, the kernel's AUDIT_ARCH

_PROT_EXEC = 4
_X32 = 0x40000000  # system calls of this second numbering end the process
_ARCH, _NUMBER, _THIRD_ARGUMENT = 4, 0, 32  # offsets in struct seccomp_data; the low half of the argument comes first
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # REFUSE is EPERM


def filter_program(machine: str) -> bytes:
    """The allow list as a program of the kernel's packet filter. Empty for a machine without a table."""
    if machine not in MACHINES:
        return b""
    column, audit_arch = MACHINES[machine]
    plain = [numbers[column] for numbers in ALLOWED.values()]
    guarded = [numbers[column] for numbers in WITHOUT_EXECUTION.values()]
    count = len(plain) + len(guarded)
    steps = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, audit_arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
    ]
    # After the comparisons: refuse, allow, then the look at the third argument.
    steps += [(_EQUAL, count - at, 0, number) for at, number in enumerate(plain)]
    steps += [(_EQUAL, len(guarded) - at + 1, 0, number) for at, number in enumerate(guarded)]
    steps += [
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _THIRD_ARGUMENT),
        (_ANY_BIT, 0, 1, _PROT_EXEC),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


# What an interpreter in a container needs beyond that. No socket (a pair is none), namespace, mount, tracing, key ring,
# io_uring, bpf, userfaultfd, or changing of identity.
_IN_CONTAINERS = """
access arch_prctl capget capset chdir chmod clock_getres clone close_range copy_file_range creat dup dup2 dup3 epoll_create
epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 execve faccessat faccessat2 fadvise64 fallocate fchdir fchmod
fchmodat fcntl fdatasync flock fork fstatfs fsync ftruncate getcwd getdents getdents64 getegid geteuid getgid getgroups
getitimer getpgid getpgrp getppid getpriority getresgid getresuid getrlimit getrusage getsid getuid ioctl kill link linkat
lstat membarrier mincore mkdir mkdirat mlock mmap mprotect msync munlock newfstatat open openat pause pidfd_open
pidfd_send_signal pipe pipe2 poll ppoll prctl pread64 preadv prlimit64 pselect6 pwrite64 pwritev readlink readlinkat
readv recvfrom recvmsg rename renameat renameat2 restart_syscall rmdir rt_sigpending rt_sigqueueinfo rt_sigsuspend
rt_sigtimedwait sched_getaffinity select sendfile sendmsg sendto set_robust_list set_tid_address setgid setgroups setitimer
setpgid setrlimit setsid setuid shutdown socketpair splice stat statfs statx symlink symlinkat sysinfo tee tgkill time
times truncate umask uname unlink unlinkat utime utimensat utimes vfork wait4 waitid writev
"""
_NAMESPACES = 0x7E020000  # the flags of `clone` that make one
_ENOSYS = 38


def container_profile() -> dict[str, Any]:
    """The same as Docker spells it: an allow list for a whole interpreter, with threads and files of its own."""
    names = sorted({*ALLOWED, *_IN_CONTAINERS.split()} - {"clone"})
    no_namespace = {"index": 0, "value": _NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [
            {"names": names, "action": "SCMP_ACT_ALLOW"},
            {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [no_namespace]},
            # The C library falls back to `clone`, whose flags can be read.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
        ],
    }
