"""C3 (gunicorn 2529, 3397, 2593, 1236): kept-alive clients that send all the time lose nothing to a SIGTERM."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.replica_process import ReplicaProcess, replica

CLIENTS = 50
PACE_S = 0.5
"""Each sends twice a second: 100 requests a second in all."""
PLAIN = "def handle(event, context): return event.body"


@dataclass
class Client:
    """One kept connection until the replica says `Connection: close`; a cut is an error."""

    answered: int = 0
    closed_politely: bool = False

    def run(self, it: ReplicaProcess, begun: threading.Semaphore, offset_s: float) -> None:
        connection = it.connect()
        due_s = time.monotonic() + offset_s
        pause = threading.Event()
        while not self.closed_politely:
            pause.wait(max(0.0, due_s - time.monotonic()))
            due_s += PACE_S
            answer = connection.call("/", b"x" * 100)
            assert (answer.status, answer.body) == (200, b"x" * 100)
            self.answered += 1
            self.closed_politely = answer.header("Connection") == "close"
            begun.release()
        connection.close()


def test_fifty_kept_alive_clients_get_every_answer_and_a_polite_close() -> None:
    clients = [Client() for _ in range(CLIENTS)]
    begun = threading.Semaphore(0)
    with replica(PLAIN) as it, ThreadPoolExecutor(CLIENTS) as pool:
        it.wait_ready()
        runs = [pool.submit(client.run, it, begun, PACE_S * number / CLIENTS) for number, client in enumerate(clients)]
        for _ in range(2 * CLIENTS):
            assert begun.acquire(timeout=60)
        it.terminate()
        for run in runs:
            run.result(timeout=60)
        code = it.wait()

    assert code == 0
    assert all(client.closed_politely and client.answered > 0 for client in clients)
