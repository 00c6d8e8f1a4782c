"""How long passes through the model take, learnt from those that ran. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

NEWEST_SHARE = 0.25
"""Weight of the newest measurement in a running mean: a single slow pass neither rules nor is lost."""
KEYS_KEPT = 512
"""A handler's keys may be without number; those not seen for longest are forgotten."""


class PassTimes:
    """Running means for each key and size, and an upper estimate for sizes that never ran."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, dict[int, float]] = OrderedDict()
        self._any_s = 0.0
        self._measured = False
        self.spread = 0.0
        """How far passes of one kind are off their mean, as a fraction of it: a running mean too."""

    def assume(self, seconds: float) -> None:
        """What every pass is taken to last until one has run: the warm-up's time."""
        self._any_s = seconds

    def record(self, key: Hashable, size: int, *, seconds: float) -> None:
        """A pass of that many items of that key took `seconds`."""
        sizes = self._known.setdefault(key, {})
        self._known.move_to_end(key)
        if len(self._known) > KEYS_KEPT:
            self._known.popitem(last=False)
        if size in sizes:
            self.spread = _mean(self.spread, min(1.0, abs(seconds / sizes[size] - 1) if sizes[size] else 0.0))
            sizes[size] = _mean(sizes[size], seconds)
        else:
            sizes[size] = seconds
        self._any_s = _mean(self._any_s, seconds) if self._measured else seconds
        self._measured = True

    def expected_s(self, key: Hashable, size: int) -> float:
        """Seconds for such a pass. From another size of the key: no less for more items, no worse than one by one."""
        sizes = self._known.get(key)
        if not sizes:
            return self._any_s
        if size in sizes:
            return sizes[size]
        return min(seconds if known > size else seconds * size / known for known, seconds in sizes.items())


def _mean(old_s: float, new_s: float) -> float:
    return old_s + NEWEST_SHARE * (new_s - old_s)
