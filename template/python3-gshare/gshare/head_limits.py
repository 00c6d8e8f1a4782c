"""How large a request's head may be: the same at the gateway and at a replica, so that neither lets in what the other
refuses."""

from __future__ import annotations

HEAD_LIMIT_BYTES = 64 * 1024
"""Of request line and headers together."""
HEADERS_LIMIT = 1_000
GATEWAY_BYTES = 8 * 1024
GATEWAY_HEADERS = 16
"""Room at a replica for what a gateway adds: call id, who asks, when it came."""


def too_large_text() -> str:
    """What a client is told with 431 or 414."""
    return (
        f"the request's head is over {HEAD_LIMIT_BYTES} bytes or {HEADERS_LIMIT} headers; send fewer or shorter headers"
    )
