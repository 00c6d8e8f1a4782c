"""Errors of the runtime: a base that carries what the edge needs, and one class per kind of fault."""

from __future__ import annotations


class GshareError(Exception):
    """Base: `code` for programs, `status` for HTTP, `retryable` for callers."""

    code = "internal"
    status = 500
    retryable = False
    retry_after_s: int | None = None
    """When to try again, where it is known; the Retry-After of the answer."""
    item: int | None = None
    """Which of several items of one request is at fault, counted from 0."""


class ConfigError(GshareError):
    """A setting of this process that cannot be used."""

    code = "bad_config"


class BadInput(GshareError):
    """The request's content cannot be used; the text says what, which value, what is allowed."""

    code = "bad_input"
    status = 400


class TooLarge(BadInput):
    """Content over a stated limit."""

    code = "too_large"
    status = 413


class UnsupportedMedia(BadInput):
    """A content type or encoding that this function does not read."""

    code = "unsupported_media_type"
    status = 415


class NotReady(GshareError):
    """Weights are still loading, or loading failed; the text has the reason."""

    code = "not_ready"
    status = 503
    retryable = True
    retry_after_s = 1


class Draining(NotReady):
    """The replica is stopping and takes nothing new."""

    code = "draining"


class Overloaded(GshareError):
    """The replica has no room for this call, or would answer it later than is of use."""

    code = "overloaded"
    status = 429
    retryable = True

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeadlineExceeded(GshareError):
    """The call was not answered within its time."""

    code = "deadline_exceeded"
    status = 504


class FunctionError(GshareError):
    """The function's own code cannot be imported, or does not keep the handler's contract."""

    code = "bad_function"


class WeightsError(GshareError):
    """Weights that cannot be found, read or do not fit the model."""

    code = "bad_weights"


class ModelFault(GshareError):
    """The handler or the model raised on input that it had accepted."""

    code = "model_fault"


class OutOfMemory(GshareError):
    """The device, or this machine, has no memory left for this input; the next may well fit."""

    code = "out_of_memory"
    status = 507


class DeviceLost(GshareError):
    """A fault after which the device answers nothing to this process any more; the process is replaced."""

    code = "device_lost"
    status = 503
    retryable = True
    retry_after_s = 1


class NonFiniteOutput(ModelFault):
    """The model gave NaN or infinity, which JSON cannot carry."""

    code = "non_finite_output"
