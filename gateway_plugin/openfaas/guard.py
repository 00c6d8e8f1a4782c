"""Keeps web pages out: a call that changes something needs a Host of ours and no foreign Origin.

Without it, any page open in a browser on this machine could deploy a function: by a plain cross-site POST (CSRF), or by
letting its own name resolve to 127.0.0.1 (DNS rebinding). A browser cannot lie about either header.
"""

from __future__ import annotations

import posixpath
from urllib.parse import SplitResult, quote, urlsplit

import flask
from flask import Flask, Response

from gateway_plugin.errors import Forbidden
from gateway_plugin.settings import LOOPBACK_HOSTS

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def install_guard(app: Flask, *, bind_host: str) -> None:
    """Check every request before its handler runs; paths with `//` or `..` are sent to their clean form first."""
    known_hosts = frozenset((*LOOPBACK_HOSTS, bind_host.lower()))

    def before_request() -> Response | None:
        request = flask.request
        if request.method not in SAFE_METHODS:
            check_caller(request.headers.get("Host", ""), request.headers.get("Origin"), known_hosts=known_hosts)
        return _redirect_unclean(request)

    app.before_request(before_request)


def check_caller(host: str, origin: str | None, *, known_hosts: frozenset[str]) -> None:
    """`host` may carry any port, since a port may be forwarded; `origin` must be `host` itself.

    Raises:
        Forbidden: naming the header and what is accepted.
    """
    if _split(f"//{host}").hostname not in known_hosts:
        raise Forbidden(
            f"Host: {host!r} may not change anything here; call {' or '.join(sorted(known_hosts))} "
            "(a proxy in front must send one of these as Host)"
        )
    if origin is not None and (origin == "null" or _split(origin).netloc.lower() != host.lower()):
        raise Forbidden(f"Origin: {origin!r} may not change anything here; only pages of {host} may")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # unbalanced brackets
        return urlsplit("")


def _redirect_unclean(request: flask.Request) -> Response | None:
    path = request.environ["PATH_INFO"]  # request.path hides slashes at its beginning
    clean = "/" + posixpath.normpath(path).lstrip("/")
    if path.endswith("/") and clean != "/":
        clean += "/"
    if clean == path:
        return None
    location = quote(clean.encode("latin-1"))  # WSGI gives the path's bytes as Latin-1
    query = request.query_string.decode("latin-1")
    return Response(status=301, headers={"Location": location + (f"?{query}" if query else "")})
