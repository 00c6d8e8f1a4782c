"""In-flight numbers shared through one mmap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway_plugin.counters import SLOTS, Counters


@pytest.fixture
def counters(tmp_path: Path) -> Iterator[Counters]:
    table = Counters(tmp_path / "counters", workers=3)
    yield table
    table.close()


def test_a_new_table_is_zero(counters: Counters) -> None:
    assert [counters.in_flight(slot) for slot in (0, 1, SLOTS - 1)] == [0, 0, 0]
    assert counters.applied_version() == 0


def test_a_slot_is_summed_over_workers_and_touches_no_other(counters: Counters) -> None:
    rows = [counters.worker(number) for number in range(3)]
    for number, row in enumerate(rows):
        row.add(5, number + 1)
    rows[0].add(SLOTS - 1, 7)
    rows[1].add(5, -1)
    assert counters.in_flight(5) == 5
    assert counters.in_flight(SLOTS - 1) == 7
    assert [counters.in_flight(slot) for slot in (0, 4, 6, SLOTS - 2)] == [0, 0, 0, 0]
    for row in rows:
        row.release()


def test_a_column_follows_what_is_written_later(counters: Counters) -> None:
    row = counters.worker(2)
    column = counters.column(SLOTS - 1)
    assert len(column) == 3
    row.add(SLOTS - 1, 4)
    assert list(column) == [0, 0, 4]
    assert sum(column) == counters.in_flight(SLOTS - 1)
    column.release()
    row.release()


def test_the_applied_version_is_the_oldest_one(counters: Counters) -> None:
    rows = [counters.worker(number) for number in range(3)]
    for version, row in zip((7, 5, 6), rows, strict=True):
        row.set_applied_version(version)
    assert counters.applied_version() == 5
    rows[1].clear()
    assert counters.applied_version() == 0
    for row in rows:
        row.release()


def test_clearing_a_row_leaves_the_others(counters: Counters) -> None:
    mine, other = counters.worker(0), counters.worker(1)
    mine.add(9, 3)
    other.add(9, 2)
    mine.clear()
    assert counters.in_flight(9) == 2
    mine.release()
    other.release()


def test_another_process_sees_the_same_numbers(counters: Counters, tmp_path: Path) -> None:
    row = counters.worker(0)
    row.add(1, 41)
    program = (
        "import sys; from pathlib import Path; from gateway_plugin.counters import Counters; "
        "table = Counters(Path(sys.argv[1]), workers=3); table.worker(1).add(1, 1); sys.exit(table.in_flight(1))"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "counters")], check=False).returncode == 42
    assert counters.in_flight(1) == 42
    row.release()


def test_a_table_for_more_workers_keeps_the_rows_there_are(tmp_path: Path) -> None:
    small = Counters(tmp_path / "counters", workers=1)
    row = small.worker(0)
    row.add(1, 2)
    large = Counters(tmp_path / "counters", workers=4)
    assert large.in_flight(1) == 2
    row.release()
    small.close()
    large.close()
