"""Runs a command so that another process answers its fsyncs; a program, not a module.

    python fsync_gate.py SOCKET COMMAND...

A seccomp filter, inherited by everything the command starts, stops each fsync and fdatasync until
the listener, whose descriptor is sent over the Unix socket, says how it ends.
"""

import array
import ctypes
import os
import platform
import socket
import sys

PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER = 1 << 3
SECCOMP_RET_ALLOW = 0x7FFF0000
SECCOMP_RET_USER_NOTIF = 0x7FC00000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06

# By machine: the kernel's numbers of seccomp, fsync and fdatasync.
SYSCALLS = {"x86_64": (317, 74, 75), "aarch64": (277, 82, 83)}


class Instruction(ctypes.Structure):
    """struct sock_filter"""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jump_true", ctypes.c_uint8),
        ("jump_false", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction)))


def install_filter() -> int:
    """The descriptor on which this process's fsyncs, and its children's, are announced."""
    libc = ctypes.CDLL(None, use_errno=True)
    seccomp, *stopped = SYSCALLS[platform.machine()]
    steps = [(LOAD_WORD, 0, 0, 0)]  # the system call's number comes first in seccomp_data
    for left, number in zip(range(len(stopped), 0, -1), stopped, strict=True):
        steps.append((JUMP_IF_EQUAL, left, 0, number))
    steps += [(RETURN, 0, 0, SECCOMP_RET_ALLOW), (RETURN, 0, 0, SECCOMP_RET_USER_NOTIF)]
    instructions = (Instruction * len(steps))(*(Instruction(*step) for step in steps))
    program = Program(len(steps), instructions)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    listener: int = libc.syscall(
        seccomp,
        SECCOMP_SET_MODE_FILTER,
        SECCOMP_FILTER_FLAG_NEW_LISTENER,
        ctypes.byref(program),
    )
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)")
    return listener


def main() -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        descriptors = array.array("i", [install_filter()])
        connection.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        os.close(descriptors[0])
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
