"""Which code snapshots are still needed, and the removal of the others after a change."""

from __future__ import annotations

import logging

from gateway_plugin.errors import PluginError
from gateway_plugin.snapshots import Snapshots
from gateway_plugin.store import Store

_log = logging.getLogger(__name__)


def retire_code(store: Store, snapshots: Snapshots, *, digest: str) -> None:
    """`digest` has just lost a function; remove what nobody has needed for a while.

    The change itself is accepted already, so what goes wrong here is logged and left for the next time.
    """
    try:
        snapshots.retire(digest)
        removed = snapshots.remove_unused(digests_in_use(store))
    except (OSError, PluginError) as error:
        _log.warning("unused code is left where it is: %s", error)
    else:
        if removed:
            _log.info("removed unused code: %s", ", ".join(removed))


def digests_in_use(store: Store) -> set[str]:
    """Of what is wanted, and of what still runs."""
    wanted = {record.code_digest for record in store.functions()}
    running = {replica.spec.code_digest for status in store.statuses().values() for replica in status.replicas}
    return wanted | running
