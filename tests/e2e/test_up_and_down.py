"""`gshare up` and `gshare down`, as a user types them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.machine_under_test import MachineUnderTest

pytestmark = pytest.mark.e2e


def processes_of(machine: MachineUnderTest) -> list[str]:
    """Command lines of all processes, replicas too, that carry this machine's home in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or folder.name == str(os.getpid()):
            continue
        try:
            environment = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(machine.paths.home) in environment:
            found.append(command.replace(b"\0", b" ").decode())
    return found


def test_up_serves_and_down_leaves_nothing_and_up_again_needs_no_deploy(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    machine.write_stack(echo={})
    shared_memory = set(Path("/dev/shm").iterdir())
    printed = machine.up()
    assert f"{machine.url}/function/echo" in printed
    assert machine.post("echo", b"abc").json()["size"] == 3
    again = machine.up()
    assert "already running" in again
    assert "echo: unchanged" in again
    assert machine.gshare("status").returncode == 0

    down = machine.gshare("down")
    assert (down.returncode, down.stdout.strip()) == (0, "everything is stopped")
    assert processes_of(machine) == []
    assert not machine.paths.run.exists()
    assert set(Path("/dev/shm").iterdir()) <= shared_memory
    assert machine.gshare("down").stdout.strip() == "nothing was running"

    machine.write_function("other", "def handle(event, context):\n    return 'other'\n")
    machine.write_stack(other={})
    printed = machine.up()
    assert "deployed earlier and left as they are: echo" in printed
    machine.wait(lambda: machine.post("echo").status_code == 200, "echo came back without a deploy")


def test_only_the_named_functions_are_deployed(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    machine.write_function("other", "def handle(event, context):\n    return 'other'\n")
    machine.write_stack(echo={}, other={})
    assert "other:" not in machine.up("--functions", "echo")
    assert machine.post("other").status_code == 404


def refused(machine: MachineUnderTest, *words: str) -> None:
    """`up` must fail with one message that has these words, and leave nothing."""
    done = machine.gshare("up")
    assert done.returncode != 0
    for word in words:
        assert word in done.stdout
    assert "Traceback" not in done.stdout
    assert processes_of(machine) == []


def test_a_taken_port_is_told_and_nothing_is_started(fresh_machine: MachineUnderTest) -> None:
    fresh_machine.write_stack(echo={})
    with socket.socket() as other:
        other.bind(("127.0.0.1", fresh_machine.port))
        other.listen()
        refused(fresh_machine, f"127.0.0.1:{fresh_machine.port} is taken", "GSHARE_PORT")


def test_a_home_that_cannot_be_made_is_told(fresh_machine: MachineUnderTest) -> None:
    fresh_machine.write_stack(echo={})
    fresh_machine.env["GSHARE_HOME"] = "/dev/null/home"
    refused(fresh_machine, "GSHARE_HOME='/dev/null/home' cannot be used")
    fresh_machine.env["GSHARE_HOME"] = str(fresh_machine.paths.home)


def test_an_unreachable_redis_is_told_and_nothing_is_started(fresh_machine: MachineUnderTest) -> None:
    fresh_machine.write_stack(echo={})
    fresh_machine.env["GSHARE_REDIS_URL"] = "redis://127.0.0.1:1/0"
    refused(fresh_machine, "GSHARE_REDIS_URL", "refused")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"annotations": {"fastgshare/gpu_quota_limit": "80"}}, ("gpu_quota_limit", "'80'", "0.8?")),
        ({"image": "nowhere"}, ("nowhere", "GSHARE_FUNCTIONS_PATH")),
        ({"labels": {"com.openfaas.scale.min": "ten"}}, ("com.openfaas.scale.min", "'ten'")),
        ({"environment": {"LD_PRELOAD": "x.so"}}, ("LD_PRELOAD",)),
    ],
)
def test_a_stack_file_that_cannot_work_is_told_before_anything_starts(
    fresh_machine: MachineUnderTest, entry: dict[str, object], words: tuple[str, ...]
) -> None:
    fresh_machine.write_stack(echo=entry)
    refused(fresh_machine, "echo" if "image" not in entry else "nowhere", *words)


def test_a_broken_stack_file_is_told_with_its_line(fresh_machine: MachineUnderTest) -> None:
    (fresh_machine.folder / "stack.yml").write_text("version: 1.0\nfunctions: {\n")
    refused(fresh_machine, "stack.yml", "line")


def test_settings_that_cannot_be_used_are_told_at_once(fresh_machine: MachineUnderTest) -> None:
    fresh_machine.write_stack(echo={})
    fresh_machine.env |= {"GSHARE_WORKERS": "many", "GSHARE_PROT": "1"}
    refused(fresh_machine, "GSHARE_WORKERS='many'", "did you mean GSHARE_PORT")
    del fresh_machine.env["GSHARE_WORKERS"], fresh_machine.env["GSHARE_PROT"]


def test_the_users_own_redis_is_used_instead_of_the_embedded_one(
    fresh_machine: MachineUnderTest, redis_url: str
) -> None:
    machine = fresh_machine
    machine.env["GSHARE_REDIS_URL"] = redis_url
    machine.write_stack(echo={})
    machine.up()
    assert "redis" not in machine.process_pids()
    assert machine.post("echo").status_code == 200


def test_a_machine_whose_supervisor_was_killed_can_still_be_stopped(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    machine.write_stack(echo={})
    machine.up()
    subprocess.run(["kill", "-9", str(machine.supervisor_pid())], check=True)
    machine.wait(lambda: not machine.process_pids(), "the supervisor is gone")
    assert machine.post("echo").status_code == 200, "the rest serves on"
    assert machine.gshare("down").returncode == 0
    assert processes_of(machine) == []


def test_removing_its_home_stops_a_machine(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    machine.write_stack(echo={})
    machine.up()
    shutil.rmtree(machine.paths.home)
    shutil.rmtree(machine.paths.run, ignore_errors=True)  # elsewhere, where the test's folder is deep
    machine.wait(lambda: processes_of(machine) == [], "everything has ended")


def test_down_ends_what_functions_have_detached(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    detach = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    machine.write_function("detaching", detach + "def handle(event, context):\n    return 'x'\n")
    machine.write_stack(detaching={})
    machine.up()
    assert any(command.startswith("sleep 600") for command in processes_of(machine))
    assert machine.gshare("down").returncode == 0
    assert processes_of(machine) == []


def test_down_while_up_still_waits_ends_both_with_a_clear_message(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    machine.write_function("slow", "import threading\nthreading.Event().wait()\ndef handle(event, context): ...\n")
    machine.write_stack(slow={})
    command = [sys.executable, "-m", "gateway_plugin.cli", "up"]
    with subprocess.Popen(command, cwd=machine.folder, env=machine.env, text=True, stderr=subprocess.PIPE) as up:
        try:
            machine.wait(
                lambda: [one.state for one in machine.view("slow").replicas] == ["starting"], "the function loads"
            )
            assert machine.gshare("down").returncode == 0
            _, told = up.communicate()
        finally:
            up.kill()
    assert up.returncode == 1
    assert "stopped meanwhile" in told
    assert processes_of(machine) == []


def test_an_adopted_machine_serves_on_though_nothing_new_can_be_deployed(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    machine.write_stack(echo={})
    machine.up()
    os.kill(machine.supervisor_pid(), signal.SIGKILL)
    machine.wait(lambda: not machine.process_pids(), "the supervisor is gone")
    with (machine.functions / "echo" / "huge.bin").open("wb") as file:
        file.truncate(65 * 1024**2)
    done = machine.gshare("up")
    assert done.returncode == 1
    assert "holds more than 64 MiB" in done.stdout
    assert machine.post("echo").status_code == 200
    assert machine.process_pids()


def test_status_and_deploy_find_the_port_of_the_running_machine_by_themselves(fresh_machine: MachineUnderTest) -> None:
    machine = fresh_machine
    machine.write_stack(echo={})
    machine.up()
    port = machine.env.pop("GSHARE_PORT")
    assert f":{port}/function/echo" in machine.gshare("status").stdout
    machine.deploy()
