"""What an exception of the model means: the item's fault, too little memory, or a device that is lost."""

from __future__ import annotations

import errno
import sys

from gshare.errors import DeviceLost, GshareError, ModelFault, OutOfMemory

AUTHORS_ERRORS = (Exception, SystemExit)
"""What the author's code may raise: `sys.exit()` in it, or in a library of its, must end neither process nor thread."""
_HOST_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory")
_DEVICE_MEMORY = ("CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
_DEVICE_LOST = ("CUDA error", "device-side assert", "CUBLAS_STATUS_EXECUTION_FAILED", "CUDNN_STATUS_EXECUTION_FAILED")
"""After any of these every further CUDA call of the process fails too."""


def translate(error: BaseException) -> GshareError:
    """The error to answer with; those of the handler's contract are themselves."""
    if isinstance(error, GshareError):
        return error
    text = f"forward() raised {type(error).__name__}: {error}"
    if _is_out_of_memory(error):
        fault: GshareError = OutOfMemory(f"not enough memory for this input: {_first_line(error)}")
    elif isinstance(error, RuntimeError) and any(sign in str(error) for sign in _DEVICE_LOST):
        fault = DeviceLost(f"the device failed and this process cannot use it any more: {_first_line(error)}")
    else:
        fault = ModelFault(text)
    fault.__cause__ = error
    return fault


def release_memory() -> None:
    """Give back what torch keeps in reserve, so that a pass that was too large leaves nothing taken."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in (*_HOST_MEMORY, *_DEVICE_MEMORY))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
