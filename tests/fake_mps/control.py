"""A stand-in for nvidia-cuda-mps-control on machines without a GPU: the same command line, the same commands.

Standard library only, since it starts often. FAKE_MPS in its environment makes it misbehave: `hang` and `exit1` where
it is to become a daemon, `late` and `refuse` where it is given a command; `UUID=hang,UUID=late` does so for some GPUs.
Beyond NVIDIA's commands it takes `connect PID` from clients, which then keep the connection, and `fault PID` from
tests. A file `hold` in the pipe directory holds `terminate_client` back. What it was told, and when clients ended, is
in the log directory's file `commands`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

PIPES = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
LOGS = Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps"))
HANG_S = 3600
LATE_S = 3600


def misbehaviour() -> str:
    for part in os.environ.get("FAKE_MPS", "").split(","):
        device, _, mode = part.rpartition("=")
        if device in ("", os.environ.get("CUDA_VISIBLE_DEVICES")):
            return mode
    return ""


class Daemon:
    """State of one control daemon, its server and its clients."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server = 0
        self.status = "ACTIVE"
        self.clients: dict[int, socket.socket] = {}
        self.percentage = float(os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", 100))

    def serve(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection: socket.socket) -> None:
        command = connection.makefile().readline().strip()
        note("commands", command)
        verb, *arguments = command.split()
        if verb == "connect":
            self.attend(int(arguments[0]), connection)
            return
        answer = getattr(self, verb, self.unknown)(*arguments)
        connection.sendall(answer.encode())
        connection.close()
        if verb == "quit":
            self.leave()

    def attend(self, pid: int, connection: socket.socket) -> None:
        """A client, until it ends."""
        with self.lock:
            if self.status == "FAULT":
                connection.close()
                return
            self.server = self.server or start_server()
            self.clients[pid] = connection
        connection.sendall(b"connected\n")
        with contextlib.suppress(ConnectionResetError):  # it ended without reading what it was told
            while connection.recv(100):
                pass
        note("commands", f"(client {pid} ended)")
        with self.lock:
            del self.clients[pid]
            if not self.clients:
                self.status = "ACTIVE"

    def unknown(self, *arguments: str) -> str:
        return "Unknown command\n"

    def get_server_list(self) -> str:
        return f"{self.server}\n" if self.server else ""

    def get_server_status(self, server: str) -> str:
        return f"{self.status}\n" if int(server) == self.server else "Server not found\n"

    def get_client_list(self, server: str) -> str:
        return "".join(f"{pid}\n" for pid in self.clients) if int(server) == self.server else "Server not found\n"

    def get_default_active_thread_percentage(self) -> str:
        return f"{self.percentage}\n"

    def terminate_client(self, server: str, pid: str) -> str:
        while (PIPES / "hold").exists():
            time.sleep(0.01)
        self.clients[int(pid)].sendall(b"terminated\n")
        return ""

    def fault(self, pid: str) -> str:
        self.status = "FAULT"
        note("server.log", f"[Server {self.server}] Client {{PID: {pid}, Context ID: 1}} fatal exception")
        return ""

    def quit(self, *_: str) -> str:
        return ""

    def leave(self) -> None:
        if self.server:
            os.kill(self.server, signal.SIGKILL)
        pid_file().unlink(missing_ok=True)
        os._exit(0)


def start_server() -> int:
    """A process that is there, as nvidia-cuda-mps-server is, until its daemon is gone."""
    daemon = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.closerange(0, 1024)  # above all the daemon's sockets
        while os.getppid() == daemon:
            time.sleep(0.2)
        os._exit(0)
    return pid


def become_daemon() -> None:
    """Return in the daemon alone, once the first process has left it to itself."""
    if os.fork():
        sys.exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    close_descriptors()


def close_descriptors() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def run_daemon() -> None:
    if misbehaviour() == "hang":
        time.sleep(HANG_S)
    if misbehaviour() == "exit1":
        sys.exit("Failed to start: the GPU is in use by another user")
    become_daemon()
    socket_path().unlink(missing_ok=True)
    pid_file().write_text(f"{os.getpid()}\n")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(socket_path()))
    listener.listen()
    daemon = Daemon()
    threading.Thread(target=daemon.serve, args=(listener,), daemon=True).start()
    while PIPES.exists():  # a test that was killed leaves nothing behind
        time.sleep(0.2)
    daemon.leave()


def send_command() -> None:
    command = sys.stdin.readline()
    if misbehaviour() == "late":
        time.sleep(LATE_S)
    if misbehaviour() == "refuse":
        sys.exit("Permission denied")
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(socket_path()))
        except OSError:
            sys.exit("Cannot find MPS control daemon process")
        connection.sendall(command.encode())
        sys.stdout.write(connection.makefile().read())


def socket_path() -> Path:
    return PIPES / "control"


def pid_file() -> Path:
    return PIPES / "nvidia-cuda-mps-control.pid"


def note(name: str, line: str) -> None:
    with (LOGS / name).open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    run_daemon() if sys.argv[1:] == ["-d"] else send_command()
