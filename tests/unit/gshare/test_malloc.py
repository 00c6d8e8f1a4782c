"""Memory pools of the C library, counted by the library itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT_POOLS = """
import ctypes, sys, tempfile
from threading import Barrier, Thread
from gshare.malloc import share_pools

libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "shared":
    share_pools()
together = Barrier(8)

def work():
    together.wait()
    libc.malloc(ctypes.c_size_t(10_000))
    together.wait()

threads = [Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap "))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pools are glibc's")
def test_threads_share_two_pools_of_memory_where_they_would_have_one_each() -> None:
    pools = {
        how: int(subprocess.check_output([sys.executable, "-c", COUNT_POOLS, how]))
        for how in ("shared", "by themselves")
    }

    assert pools["shared"] <= 2 < pools["by themselves"]
