"""The first placement: first units where guaranteed shares still fit."""

from __future__ import annotations

from gshare.share import GpuShare

from gateway_plugin.model import Device, Place
from gateway_plugin.placement.first_fit import NoPlace, Occupant, place

GIB = 1024**3
CPU = Device(id="cpu:0", kind="cpu", units=2, memory_bytes=8 * GIB, cores=(0, 1))


def test_requests_that_sum_to_one_share_a_core_and_the_next_takes_another() -> None:
    occupants: list[Occupant] = []
    for request in (0.5, 0.25, 0.25):
        found = place(GpuShare(24, request, 1.0, GIB), devices=[CPU], occupants=occupants)
        assert found == Place("cpu:0", (0,))
        occupants.append(Occupant(found, request, GIB))
    assert place(GpuShare(24, 0.1, 1.0, GIB), devices=[CPU], occupants=occupants) == Place("cpu:0", (1,))


def test_ten_tenths_fit_in_spite_of_binary_fractions() -> None:
    occupants = [Occupant(Place("cpu:0", (0,)), 0.1, GIB // 4) for _ in range(9)]
    assert place(GpuShare(24, 0.1, 1.0, GIB // 4), devices=[CPU], occupants=occupants) == Place("cpu:0", (0,))


def test_a_partition_over_half_of_two_cores_takes_both() -> None:
    assert place(GpuShare(60, 0.5, 1.0, GIB), devices=[CPU], occupants=[]) == Place("cpu:0", (0, 1))


def test_what_has_no_time_left_is_told_how_much_is_missing() -> None:
    full = [Occupant(Place("cpu:0", (0, 1)), 0.9, GIB)]
    found = place(GpuShare(24, 0.2, 1.0, GIB), devices=[CPU], occupants=full)
    assert isinstance(found, NoPlace)
    assert found.reason == "cpu:0: needs 0.20 of the time on 1 of 2 units, 0 have that free"


def test_what_has_no_memory_left_is_told_how_much_is_free() -> None:
    full = [Occupant(Place("cpu:0", (0,)), 0.1, 7 * GIB)]
    found = place(GpuShare(24, 0.1, 1.0, 2 * GIB), devices=[CPU], occupants=full)
    assert found == NoPlace("cpu:0: needs 2048 MiB of memory, 1024 MiB are free")


def test_a_second_device_is_used_when_the_first_is_full() -> None:
    other = Device(id="GPU-1", kind="Tesla V100", units=40, memory_bytes=16 * GIB)
    full = [Occupant(Place("cpu:0", (0, 1)), 1.0, GIB)]
    assert place(GpuShare(24, 0.5, 1.0, GIB), devices=[CPU, other], occupants=full) == Place("GPU-1", tuple(range(10)))


def test_without_a_device_there_is_no_place() -> None:
    assert place(GpuShare(), devices=[], occupants=[]) == NoPlace("no device")
