"""The symbols that the model writes; the blank, its "nothing new here", comes after them."""

from __future__ import annotations

from collections.abc import Iterable

SYMBOLS = " abcdefghijklmnopqrstuvwxyz'"
BLANK = len(SYMBOLS)


def text_of(symbols: Iterable[int]) -> str:
    """The text that a sequence of symbols spells, without blanks at its ends."""
    return "".join(SYMBOLS[symbol] for symbol in symbols).strip()
