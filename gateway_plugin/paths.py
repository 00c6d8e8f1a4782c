"""Where everything of one machine lies. All file and socket names are here and nowhere else."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

SOCKET_PATH_LIMIT = 107
"""Bytes that fit into a unix socket's address on Linux."""
TOKENS = "tokens-"
"""Name of a token scheduler's process and socket, before the number of its device."""
SHORT_PLACE = Path("/tmp")
"""Not TMPDIR: every shell must find the same place again, and that folder may be too deep itself."""
REPLICA_ID_LENGTH = 30
_LONGEST_SOCKET_NAME = "replicas/" + "n" * REPLICA_ID_LENGTH + "/http.sock"


@dataclass(frozen=True, slots=True)
class Paths:
    """Names under one `GSHARE_HOME`."""

    home: Path

    @property
    def run(self) -> Path:
        """Sockets and pid files, 0700; under `/tmp` where `home` is too deep for a socket's name."""
        run = self.home / "run"
        if len(os.fsencode(run / _LONGEST_SOCKET_NAME)) <= SOCKET_PATH_LIMIT:
            return run
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:8]
        return SHORT_PLACE / f"gshare-{os.getuid()}-{digest}"

    @property
    def logs(self) -> Path:
        return self.home / "log"

    @property
    def code(self) -> Path:
        """Snapshots of functions' folders, by digest: `code/DIGEST/function/handler.py`."""
        return self.home / "code"

    @property
    def redis_data(self) -> Path:
        return self.home / "redis"

    @property
    def weights_cache(self) -> Path:
        return self.home / "weights-cache"

    @property
    def supervisor_lock(self) -> Path:
        return self.home / "supervisor.lock"

    @property
    def supervisor_socket(self) -> Path:
        return self.run / "supervisor.sock"

    @property
    def redis_socket(self) -> Path:
        return self.run / "redis.sock"

    @property
    def control_socket(self) -> Path:
        """The control API (`api`), reached through the data plane."""
        return self.run / "control.sock"

    @property
    def agent_socket(self) -> Path:
        """The agent's admin socket: start, stop, configure replicas."""
        return self.run / "agent.sock"

    @property
    def counters(self) -> Path:
        """In-flight numbers, one mmap shared by data plane and loop."""
        return self.run / "counters"

    @property
    def processes(self) -> Path:
        """One JSON file a supervised process: pid, start time, command."""
        return self.run / "processes"

    @property
    def replicas(self) -> Path:
        """One folder a replica: its spec, pid and sockets."""
        return self.run / "replicas"

    def replica(self, replica_id: str) -> Path:
        return self.replicas / replica_id

    def replica_http(self, replica_id: str) -> Path:
        return self.replica(replica_id) / "http.sock"

    def replica_node(self, replica_id: str) -> Path:
        return self.replica(replica_id) / "node.sock"

    def replica_tokens(self, replica_id: str) -> Path:
        """Where it asks its device's token scheduler."""
        return self.replica(replica_id) / "time.sock"

    def tokens_socket(self, number: int) -> Path:
        """The admin socket of the token scheduler of that device; only the agent asks there."""
        return self.run / f"{TOKENS}{number}.sock"

    def replica_log(self, replica_id: str) -> Path:
        return self.logs / "replicas" / f"{replica_id}.log"

    def mps_pipes(self, device_id: str) -> Path:
        """Pipe directory of that device's MPS daemon; short, since MPS makes sockets in it."""
        return self.run / "mps" / hashlib.sha256(device_id.encode()).hexdigest()[:8]

    def mps_logs(self, device_id: str) -> Path:
        return self.logs / "mps" / device_id.replace("/", "-")

    def remove_run(self) -> None:
        """Forget sockets, pid files and counters; nothing of them is needed after a stop."""
        shutil.rmtree(self.run, ignore_errors=True)

    def create(self) -> None:
        """Make the folders; the run folder belongs to this user alone. Raises: PermissionError if it does not."""
        for folder in (self.home, self.logs / "replicas", self.code, self.redis_data, self.weights_cache):
            folder.mkdir(parents=True, exist_ok=True)
        self.run.mkdir(mode=0o700, exist_ok=True)
        if self.run.stat().st_uid != os.getuid() or self.run.is_symlink():
            raise PermissionError(f"{self.run} belongs to somebody else; remove it or set GSHARE_HOME elsewhere")
        self.run.chmod(0o700)
        for folder in (self.processes, self.replicas):
            folder.mkdir(exist_ok=True)
