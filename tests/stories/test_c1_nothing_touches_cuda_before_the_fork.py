"""C1 (gunicorn 3176, 3130, 2397): CUDA used before the fork breaks the worker, and even asking for it is use."""

from __future__ import annotations

from tests.replica_process import FAILED_LINE, replica

ASKS_AT_IMPORT = """
import torch

ON_GPU = torch.cuda.is_available()

def handle(event, context):
    return {"cuda": ON_GPU}
"""


def test_preload_is_refused_at_the_start_with_the_line_it_would_break_on_and_the_fix() -> None:
    with replica(ASKS_AT_IMPORT, {"GUNICORN_CMD_ARGS": "--preload"}) as it:
        code = it.wait()
        it.wait_for_log("function/handler.py, line 4: torch.cuda.is_available() runs at import; move it into load()")

    assert code != 0
    assert "turn preload off (--preload, preload_app)" in it.log
    assert FAILED_LINE not in it.log, "the function was not imported in the parent"


def test_as_the_template_has_it_the_function_is_imported_in_the_worker_and_serves() -> None:
    with replica(ASKS_AT_IMPORT) as it:
        it.wait_ready()
        serving_pid = it.status()["pid"]

        assert it.call("/", "x").status == 200
        assert serving_pid != it.process.pid
