"""Headers that answer what the empty body of an accepted change cannot."""

from __future__ import annotations

REVISION = "X-Gshare-Revision"
"""Which revision a change led to."""
UNCHANGED = "X-Gshare-Unchanged"
"""`yes` where an update asked for what was there already. Other gateways never say so."""
