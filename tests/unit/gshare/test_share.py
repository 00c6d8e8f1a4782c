"""What `fastgshare/` annotations mean, and what is refused with which hint."""

from __future__ import annotations

import pytest
from gshare import share
from gshare.share import GpuShare, Kind, ShareError, parse_share


def test_the_authors_four_annotations_are_read_as_their_manifests_write_them() -> None:
    asked = parse_share(
        {
            "fastgshare/gpu_sm_partition": "24",
            "fastgshare/gpu_quota_request": "0.4",
            "fastgshare/gpu_quota_limit": "0.8",
            "fastgshare/gpu_mem": "2700000000",
        }
    )
    assert asked.kind is Kind.PINNED
    assert asked.share == GpuShare(24, 0.4, 0.8, 2_700_000_000)


def test_without_any_key_of_ours_a_function_is_plain() -> None:
    assert parse_share({"com.openfaas.health.http.path": "/x"}).kind is Kind.PLAIN


def test_memory_alone_is_no_share_so_the_autoscaler_chooses() -> None:
    asked = parse_share({share.GPU_MEM: "2Gi"})
    assert asked.kind is Kind.CHOSEN
    assert asked.share == GpuShare(100, 1.0, 1.0, 2 * 1024**3)


def test_missing_parts_default_to_the_whole_and_the_request_to_the_limit() -> None:
    assert parse_share({share.QUOTA_LIMIT: "0.8"}).share == GpuShare(100, 0.8, 0.8, None)
    assert parse_share({share.QUOTA_REQUEST: "0.2"}).share == GpuShare(100, 0.2, 1.0, None)


def test_the_rest_of_our_keys_are_read() -> None:
    asked = parse_share(
        {share.SLO_MS: "69", share.MAX_BATCH: "8", share.MAX_BATCH_DELAY_MS: "2.5", share.WEIGHTS: "random:0"}
    )
    assert (asked.slo_ms, asked.max_batch, asked.max_batch_delay_ms, asked.weights) == (69.0, 8, 2.5, "random:0")


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        (share.SM_PARTITION, "0.24", "did you mean 24?"),
        (share.SM_PARTITION, "0", "1–100"),
        (share.SM_PARTITION, "101", "1–100"),
        (share.SM_PARTITION, "24.5", "1–100"),
        (share.SM_PARTITION, "24%", "1–100"),
        (share.SM_PARTITION, "-24", "1–100"),
        (share.SM_PARTITION, "", "1–100"),
        (share.QUOTA_LIMIT, "80", "did you mean 0.8?"),
        (share.QUOTA_LIMIT, "0", "above 0"),
        (share.QUOTA_REQUEST, "nan", "above 0"),
        (share.QUOTA_REQUEST, "1e-1", "above 0"),
        (share.GPU_MEM, "2700", "did you mean 2700M?"),
        (share.GPU_MEM, "2.7", "did you mean 2.7G?"),
        (share.GPU_MEM, "63Mi", "at least 64Mi"),
        (share.GPU_MEM, "2GB", "quantity"),
        (share.GPU_MEM, "-1Gi", "quantity"),
        (share.SLO_MS, "0", "above 0"),
        (share.SLO_MS, "69ms", "milliseconds"),
        (share.MAX_BATCH, "0", "1–1024"),
        (share.MAX_BATCH, "2.5", "1–1024"),
        (share.MAX_BATCH_DELAY_MS, "-1", "0–60000"),
        (share.WEIGHTS, "s3://bucket", "random:SEED"),
        (share.WEIGHTS, "random:x", "random:SEED"),
        (share.WEIGHTS, "file:", "random:SEED"),
        ("fastgshare/gpu_quota", "0.5", share.QUOTA_LIMIT),
        ("fastgshare/sm_partition", "24", share.SM_PARTITION),
    ],
)
def test_a_value_out_of_range_is_refused_with_key_value_and_hint(key: str, value: str, hint: str) -> None:
    with pytest.raises(ShareError) as caught:
        parse_share({key: value})
    assert key in str(caught.value)
    assert repr(value) in str(caught.value)
    assert hint in str(caught.value)


def test_a_request_above_the_limit_is_refused() -> None:
    with pytest.raises(ShareError, match="at most fastgshare/gpu_quota_limit"):
        parse_share({share.QUOTA_REQUEST: "0.9", share.QUOTA_LIMIT: "0.5"})


@pytest.mark.parametrize(
    ("text", "size"),
    [("67108864", 67108864), ("500M", 500_000_000), ("2Gi", 2 * 1024**3), ("1.5Gi", 3 * 1024**3 // 2), ("1T", 10**12)],
)
def test_quantities_are_kubernetes_quantities(text: str, size: int) -> None:
    assert share.parse_memory_bytes("k", text) == size


@pytest.mark.parametrize(
    ("partition", "units", "taken"), [(24, 40, 10), (1, 2, 1), (50, 2, 1), (51, 2, 2), (100, 66, 66)]
)
def test_a_partition_takes_whole_units_rounded_up(partition: int, units: int, taken: int) -> None:
    assert GpuShare(partition).units(units) == taken
