from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from gshare.inputs.image_memory import PixelBudget


def test_pictures_in_memory_never_have_more_pixels_than_the_budget() -> None:
    budget, lock = PixelBudget(100), threading.Lock()
    inside, most = 0, 0

    def use(pixels: int) -> None:
        nonlocal inside, most
        with budget.taken(pixels):
            with lock:
                inside += pixels
                most = max(most, inside)
            with lock:
                inside -= pixels

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, [10, 100, 60, 50, 1, 99] * 200))

    assert 0 < most <= 100
    assert inside == 0


def test_a_large_picture_is_not_overtaken_by_small_ones() -> None:
    budget, order, large_waits = PixelBudget(100), list[str](), threading.Event()

    def large() -> None:
        large_waits.set()
        with budget.taken(100):
            order.append("large")

    def small() -> None:
        with budget.taken(1):
            order.append("small")

    first = threading.Thread(target=large)
    with budget.taken(10):
        first.start()
        large_waits.wait()
        while not budget.is_waited_for:
            pass
        second = threading.Thread(target=small)
        second.start()
    first.join()
    second.join()

    assert order == ["large", "small"]


def test_room_is_given_back_when_a_picture_turns_out_to_be_broken() -> None:
    budget = PixelBudget(1)
    for _ in range(3):
        try:
            with budget.taken(1):
                raise ValueError
        except ValueError:
            continue
    with budget.taken(1):
        pass
