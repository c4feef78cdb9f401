"""What a worker process takes away from itself before it reads anything: descriptors, privileges, network, memory.

Every step that the platform may not offer (Linux calls in containers, other systems) is tried and its absence is
accepted: the walls that do not depend on the platform are the separate process, the parent's wall-clock kill, the
locked engine configuration and the fact that only generated SQL arrives.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

__all__ = ["allow_cpu_seconds", "confine", "missing_walls"]

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000
_CAPABILITY_VERSION = 0x20080522
_DESCRIPTORS_MAX = 128


def confine(*, parent: int, connection: int, address_space_bytes: int, file_bytes: int) -> None:
    """Limit this process for good. Call before any thread exists and before the engine is imported.

    `parent` is the process that must outlive this one; `connection` is the only descriptor kept beside the
    standard ones (which are closed files); `file_bytes` bounds every file that is written.
    """
    os.umask(0o077)
    for descriptor in _open_descriptors():
        if descriptor > 2 and descriptor != connection:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    dies_with_parent = _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # The maps of the new user namespace can be written only while the process is still "dumpable".
    _leave_network()
    _prctl(_PR_SET_DUMPABLE, 0)
    for kind, amount in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _DESCRIPTORS_MAX),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_AS, address_space_bytes),
    ):
        _lower(kind, amount)
    if not dies_with_parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    # The parent may have died between starting us and the request to die with it.
    if os.getppid() != parent:
        os._exit(1)


def missing_walls(*, timeout_seconds: float) -> tuple[str, ...]:
    """The walls of `confine` that the kernel does not offer here, in words; all of them outside Linux.

    Errors: OSError, subprocess.TimeoutExpired.
    """
    if not sys.platform.startswith("linux"):
        return (f"limits of the Linux kernel (this is {sys.platform})",)
    missing = []
    if "NoNewPrivs" not in Path("/proc/self/status").read_text("ascii", "replace"):
        missing.append("no_new_privs")
    # In a process of its own, for there is no way back.
    tried = subprocess.run([sys.executable, "-I", "-S", "-c", _UNSHARE], capture_output=True, timeout=timeout_seconds)
    if tried.returncode != 0:
        missing.append("an empty network for workers (unshare is not permitted)")
    return tuple(missing)


_UNSHARE = f"""
import ctypes, sys
unshare = ctypes.CDLL(None).unshare
sys.exit(0 if unshare({_CLONE_NEWNET}) == 0 or unshare({_CLONE_NEWUSER | _CLONE_NEWNET}) == 0 else 1)
"""


def allow_cpu_seconds(seconds: float) -> None:
    """Let this process use `seconds` more of processor time; the kernel ends it when they are used up."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(usage.ru_utime + usage.ru_stime + max(seconds, 0.0)) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _lower(kind: int, amount: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        amount = min(amount, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (amount, amount))


def _open_descriptors() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir(folder)]
    return list(range(3, 256))


def _prctl(option: int, argument: int) -> bool:
    try:
        return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def _leave_network() -> None:
    """Move to an empty network namespace, through a user namespace of our own where we are not root."""
    try:
        library = ctypes.CDLL(None)
        unshare, capset = library.unshare, library.capset
    except (AttributeError, OSError):
        return
    user, group = os.getuid(), os.getgid()
    # Root in a user namespace of its own could not read files of other owners any more: it stays where it is.
    if unshare(_CLONE_NEWNET) == 0 or user == 0 or unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return
    # Keep our own identity inside, so that files in the private directory still belong to us.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w") as handle:
            handle.write(text)
    # The new namespace came with every capability inside it; none is needed.
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    capset(header, nothing)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
