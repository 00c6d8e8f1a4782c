"""What the control API answers in OpenFaaS's own shapes."""

from __future__ import annotations

import msgspec

from gateway_plugin.model import DEFAULT_NAMESPACE, FunctionRecord, FunctionStatus


class FunctionView(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """OpenFaaS's function status (openfaas-contract §1.4): what is empty is left out, except counts."""

    name: str
    image: str
    namespace: str
    env_process: str = ""
    env_vars: dict[str, str] = {}
    constraints: list[str] = []
    secrets: list[str] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    read_only_root_filesystem: bool = False
    invocation_count: int
    replicas: int
    """Wanted."""
    available_replicas: int
    """Ready."""
    created_at: str


def function_view(record: FunctionRecord, status: FunctionStatus, *, invocations: int) -> FunctionView:
    spec = record.spec
    return FunctionView(
        name=spec.service,
        image=spec.image,
        namespace=spec.namespace or DEFAULT_NAMESPACE,
        env_process=spec.env_process,
        env_vars=spec.env_vars,
        constraints=spec.constraints,
        secrets=spec.secrets,
        labels=spec.labels,
        annotations=spec.annotations,
        limits=spec.limits,
        requests=spec.requests,
        read_only_root_filesystem=spec.read_only_root_filesystem,
        invocation_count=invocations,
        replicas=record.replicas,
        available_replicas=status.ready,
        created_at=record.created_at,
    )
