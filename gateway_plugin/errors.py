"""Errors of the plugin: a base that carries code and status, mapped to HTTP or an exit line once, at the edge."""

from __future__ import annotations


class PluginError(Exception):
    """Base: `code` for programs, `status` for HTTP, `retryable` for callers."""

    code = "internal"
    status = 500
    retryable = False


class SettingsError(PluginError):
    """One or more settings that cannot be used; the text has a line for each."""

    code = "bad_settings"


class BadRequest(PluginError):
    """The caller sent what is not accepted; the text names key, value and what is allowed."""

    code = "bad_request"
    status = 400


class Forbidden(PluginError):
    """Not for this caller; the text says why."""

    code = "forbidden"
    status = 403


class NotFound(PluginError):
    """Nothing of that name."""

    code = "not_found"
    status = 404


class Conflict(PluginError):
    """It cannot be done in the present state; the text says why."""

    code = "conflict"
    status = 409


class StackError(PluginError):
    """A stack file that cannot be used; the text names file, function, key and value, a line for each fault."""

    code = "bad_stack"


class GatewayError(PluginError):
    """The gateway cannot be reached or did not take a call; the text has its answer."""

    code = "gateway_error"


class CodeStoreError(PluginError):
    """A function's code cannot be kept under GSHARE_HOME (no room, no permission)."""

    code = "code_store"


class StoreUnavailable(PluginError):
    """Redis cannot be reached or does not answer; what runs goes on."""

    code = "store_unavailable"
    status = 503
    retryable = True


class StoreFormat(PluginError):
    """A value in Redis of an unknown version or shape; never guessed at."""

    code = "store_format"


class LeaseLost(PluginError):
    """Another loop holds the lease; this one must stop changing things."""

    code = "lease_lost"


class AgentUnavailable(PluginError):
    """The node agent cannot be reached."""

    code = "agent_unavailable"
    status = 503
    retryable = True


class AgentRefused(PluginError):
    """The node agent answered no, with its reason."""

    code = "agent_refused"


class MpsUnavailable(PluginError):
    """CUDA's Multi-Process Service cannot be used on a device; `what` names its pipe directory."""

    code = "mps_unavailable"

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


class ProbeFailed(PluginError):
    """A probe process cannot do what it was asked; the text names it and the reason."""

    code = "probe_failed"


class CannotVerify(PluginError):
    """`gshare verify` cannot judge as things are; the text says what stands in the way and what to do."""

    code = "cannot_verify"


class StartError(PluginError):
    """`gshare up` could not bring the machine up; the text says what to change."""

    code = "start_failed"
