"""Entries of a ledger, for tests that care about some of their figures."""

from __future__ import annotations

import msgspec

from gateway_plugin.ledger import Entry

IDLE_ENTRY = Entry(
    replica="f-1",
    function="f.openfaas-fn",
    request=0.2,
    limit=0.5,
    units=(0,),
    used_s=0.0,
    share=0.0,
    tokens=0,
    waited_s=0.0,
    overused_s=0.0,
    lost=0,
    connected=True,
    holding=False,
    held_s=0.0,
    waiting=False,
)


def entry(**figures: object) -> Entry:
    """A replica that has done nothing yet, but for these figures."""
    return msgspec.structs.replace(IDLE_ENTRY, **figures)
