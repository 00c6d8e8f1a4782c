"""Whether a deployment can be accepted. Pure: what a request says is judged, not what exists or runs.

Every message names the key, the value, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from gshare.config import MODEL_WEIGHTS, RESERVED_ENV_NAMES, RESERVED_ENV_PREFIXES
from gshare.share import ANNOTATIONS, PREFIX, WEIGHTS, ShareError, parse_weights

from gateway_plugin.errors import BadRequest
from gateway_plugin.model import DEFAULT_NAMESPACE, NAME_LENGTH, NAME_RULE, FunctionSpec, valid_name

PROCESS_ENV_PREFIXES = ("LD_", "PYTHON", "GUNICORN_")
"""Refused besides on the process backend: they would change the interpreter and server that the node starts."""
ENV_ENTRY_BYTES = 128 * 1024 - 2
"""Linux takes no longer `NAME=value` when it starts a process."""
ANNOTATIONS_BYTES = 256 * 1024
"""Kubernetes' limit for all annotations of an object together."""
LABEL_LENGTH = 63
PREFIX_LENGTH = 253
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,1023}")
_ENV_NAME = re.compile(r"[A-Za-z_][-._A-Za-z0-9]*")
_LABEL_RULE = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_LABEL = re.compile(_LABEL_RULE)
_SUBDOMAIN = re.compile(rf"{NAME_RULE}(\.{NAME_RULE})*")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[0-9]+)?")


def validate(spec: FunctionSpec) -> None:
    """Raises: BadRequest for the first thing that cannot be accepted."""
    _name(spec)
    _image(spec)
    _environment(spec.env_vars)
    _labels(spec.labels)
    spec.scale_range()
    _annotations(spec)
    for key, quantities in (("limits", spec.limits), ("requests", spec.requests)):
        _quantities(key, quantities)
    _secrets(spec)


def check_namespace(namespace: str) -> None:
    """Raises: BadRequest for any namespace but the default; none given means that one."""
    if namespace not in ("", DEFAULT_NAMESPACE):
        raise BadRequest(f"namespace: {namespace!r} does not exist; the only one is {DEFAULT_NAMESPACE}: leave it out")


def _name(spec: FunctionSpec) -> None:
    if not valid_name(spec.service):
        raise BadRequest(
            f"service: {spec.service!r} is not a function name; it must match {NAME_RULE}, "
            f"at most {NAME_LENGTH} characters"
        )
    check_namespace(spec.namespace)


def _image(spec: FunctionSpec) -> None:
    if not _IMAGE.fullmatch(spec.image):
        raise BadRequest(f"image: {spec.image!r} is not an image name; write [REGISTRY/]NAME[:TAG], without spaces")


def _environment(env_vars: Mapping[str, str]) -> None:
    for name, value in env_vars.items():
        if not _ENV_NAME.fullmatch(name):
            raise BadRequest(f"envVars: {name!r} is not a variable's name; it must match {_ENV_NAME.pattern}")
        if name in RESERVED_ENV_NAMES or name.startswith((*RESERVED_ENV_PREFIXES, *PROCESS_ENV_PREFIXES)):
            raise BadRequest(
                f"envVars: {name}={value!r} is not accepted; {_reserved_text()} belong to the node: choose another name"
            )
        if "\0" in value or len(f"{name}={value}".encode()) > ENV_ENTRY_BYTES:
            raise BadRequest(
                f"envVars: the value of {name} ({len(value)} characters) is not accepted; text without NUL, "
                f"name and value together at most {ENV_ENTRY_BYTES} bytes: put more into a file of the function"
            )


def _reserved_text() -> str:
    return ", ".join(
        [*RESERVED_ENV_NAMES, *(f"{prefix}*" for prefix in (*RESERVED_ENV_PREFIXES, *PROCESS_ENV_PREFIXES))]
    )


def _labels(labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        if key.startswith(PREFIX):
            near = difflib.get_close_matches(key, ANNOTATIONS, n=1, cutoff=0.0)[0]
            raise BadRequest(f"label {key}: {value!r} is not accepted among labels; write {near} under annotations")
        _metadata_key("label", key)
        if value and (len(value) > LABEL_LENGTH or not _LABEL.fullmatch(value)):
            raise BadRequest(
                f"label {key}: {value!r} is not accepted; empty, or {_LABEL_RULE} of at most {LABEL_LENGTH} "
                "characters; free text goes under annotations"
            )


def _metadata_key(kind: str, key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    prefix_good = not slash or (len(prefix) <= PREFIX_LENGTH and _SUBDOMAIN.fullmatch(prefix))
    if not prefix_good or len(name) > LABEL_LENGTH or not _LABEL.fullmatch(name):
        raise BadRequest(
            f"{kind} {key!r}: not a key; write NAME or DOMAIN/NAME, NAME matching {_LABEL_RULE}, "
            f"at most {LABEL_LENGTH} characters"
        )


def _annotations(spec: FunctionSpec) -> None:
    for key in spec.annotations:
        _metadata_key("annotation", key)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in spec.annotations.items())
    if size > ANNOTATIONS_BYTES:
        raise BadRequest(f"annotations: {size} bytes together; at most {ANNOTATIONS_BYTES}: shorten them")
    try:
        spec.share_request()
        _weights(spec)
    except ShareError as error:
        raise BadRequest(str(error)) from error


def _weights(spec: FunctionSpec) -> None:
    from_env, annotated = spec.env_vars.get(MODEL_WEIGHTS), spec.annotations.get(WEIGHTS)
    if from_env is None:
        return
    parse_weights(MODEL_WEIGHTS, from_env)
    if annotated is not None and annotated != from_env:
        raise BadRequest(
            f"{WEIGHTS}: {annotated!r} and environment variable {MODEL_WEIGHTS} ({from_env!r}) differ; "
            "leave one of them out"
        )


def _quantities(kind: str, quantities: Mapping[str, str]) -> None:
    for key, value in quantities.items():
        if value and not _QUANTITY.fullmatch(value):
            raise BadRequest(f"{kind}.{key}: {value!r} is not a quantity; write e.g. 512Mi, 2G, 500m or 1")


def _secrets(spec: FunctionSpec) -> None:
    if spec.secrets:
        raise BadRequest(
            f"secrets: no such secret: {spec.secrets[0]!r}; this release keeps no secrets, remove it from the function"
        )
