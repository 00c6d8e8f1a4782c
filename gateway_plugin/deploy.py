"""The client side of a deploy, as `gshare deploy` and `gshare up` do it: PUT, and POST where the function is new."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec
import requests

from gateway_plugin.errors import GatewayError
from gateway_plugin.model import FunctionSpec
from gateway_plugin.openfaas import headers
from gateway_plugin.settings import LOOPBACK_HOSTS

DEFAULT_GATEWAY = "http://127.0.0.1:8080"
DEPLOY_TIMEOUT_S = 60.0
PATIENCE_S = 20.0
"""How long a gateway that is not available now is asked again."""
FUNCTIONS_PATH = "/system/functions"


class Action(StrEnum):
    """What became of one function."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a deploy of one function came to."""

    function: str
    action: Action
    url: str
    """Where it is called."""
    message: str = ""
    """Why it failed, in the gateway's words; empty otherwise."""


def choose_gateway(given: str, in_stack: str, env: Mapping[str, str]) -> str:
    """The gateway's URL by faas-cli's order: given, the stack file's, OPENFAAS_URL, the default.

    One that equals the default counts as not given.

    Raises:
        GatewayError: not an http(s) URL.
    """
    candidates = (given, in_stack, env.get("OPENFAAS_URL", ""))
    normal = [candidate.strip().lower().rstrip("/") for candidate in candidates]
    url = next((candidate for candidate in normal if candidate and candidate != DEFAULT_GATEWAY), DEFAULT_GATEWAY)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise GatewayError(f"gateway: {url!r} is not a URL; write e.g. {DEFAULT_GATEWAY}")
    return url


def deploy(specs: Iterable[FunctionSpec], gateway: str, *, timeout_s: float = DEPLOY_TIMEOUT_S) -> Iterator[Outcome]:
    """One outcome for each function, as it comes; a function that fails does not keep the next from being tried."""
    with requests.Session() as session:
        session.trust_env = urlsplit(gateway).hostname not in LOOPBACK_HOSTS  # a proxy cannot reach this machine's
        for spec in specs:
            url = f"{gateway}/function/{_called(spec)}"
            try:
                yield Outcome(spec.service, _deploy_one(session, spec, gateway, timeout_s=timeout_s), url)
            except GatewayError as error:
                yield Outcome(spec.service, Action.FAILED, url, str(error))


def _deploy_one(session: requests.Session, spec: FunctionSpec, gateway: str, *, timeout_s: float) -> Action:
    body = msgspec.json.encode(spec)
    answer = _send_patiently(session, "PUT", gateway, body=body, timeout_s=timeout_s)
    action = Action.UNCHANGED if headers.UNCHANGED in answer.headers else Action.UPDATED
    if answer.status_code == 404:
        answer = _send_patiently(session, "POST", gateway, body=body, timeout_s=timeout_s)
        action = Action.CREATED
    if answer.status_code not in (200, 202):
        text = answer.text.strip() or answer.reason
        raise GatewayError(f"{gateway} answered {answer.status_code}: {text}")
    return action


def _send_patiently(
    session: requests.Session, method: str, gateway: str, *, body: bytes, timeout_s: float
) -> requests.Response:
    """`_send`, again while the gateway says 503 and when to come back, e.g. since Redis is just starting."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = _send(session, method, gateway, body=body, timeout_s=timeout_s)
        pause = answer.headers.get("Retry-After", "") if answer.status_code == 503 else ""
        if not pause.isdecimal() or time.monotonic() + int(pause) > deadline:
            return answer
        time.sleep(int(pause))


def _send(session: requests.Session, method: str, gateway: str, *, body: bytes, timeout_s: float) -> requests.Response:
    try:
        return session.request(
            method,
            gateway + FUNCTIONS_PATH,
            data=body,
            headers={"Content-Type": "application/json"},
            timeout=timeout_s,
            allow_redirects=False,
        )
    except requests.Timeout as error:
        raise GatewayError(f"{gateway} did not answer within {timeout_s:g} s") from error
    except requests.RequestException as error:
        raise GatewayError(f"{gateway} cannot be reached ({error}); is it running? `gshare up` starts it") from error


def _called(spec: FunctionSpec) -> str:
    return f"{spec.service}.{spec.namespace}" if spec.namespace else spec.service
