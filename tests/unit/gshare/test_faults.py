from __future__ import annotations

import errno

import pytest
import torch
from gshare.errors import BadInput, DeviceLost, GshareError, ModelFault, OutOfMemory
from gshare.faults import release_memory, translate


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"), OutOfMemory),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
            OutOfMemory,
        ),
        (MemoryError(), OutOfMemory),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), OutOfMemory),
        (RuntimeError("CUDA error: out of memory"), OutOfMemory),
        (RuntimeError("CUDA error: device-side assert triggered\nCompile with TORCH_USE_CUDA_DSA"), DeviceLost),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), DeviceLost),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm"), DeviceLost),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ModelFault),
        (ValueError("CUDA error in the author's own words"), ModelFault),
        (OSError(errno.ENOENT, "gone"), ModelFault),
    ],
)
def test_an_exception_of_the_model_is_told_apart_by_what_can_be_done_about_it(
    error: Exception, kind: type[GshareError]
) -> None:
    fault = translate(error)

    assert type(fault) is kind
    assert fault.__cause__ is error
    assert "\n" not in str(fault)


def test_a_real_allocation_that_is_too_large_is_out_of_memory() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)

    assert isinstance(translate(caught.value), OutOfMemory)


def test_errors_of_the_contract_are_themselves() -> None:
    error = BadInput("no")

    assert translate(error) is error


def test_releasing_memory_needs_no_gpu() -> None:
    release_memory()
