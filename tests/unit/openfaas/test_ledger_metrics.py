"""The devices' ledgers, as Prometheus and as JSON."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway_plugin.ledger import Entry, Ledger
from gateway_plugin.model import Place, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.openfaas.ledger_metrics import ledger_metrics
from gateway_plugin.store import Store
from tests.unit.openfaas.control_api import ControlApi

ENTRY = Entry(
    replica="a-1",
    function="a.openfaas-fn",
    request=0.2,
    limit=0.6,
    units=(0,),
    used_s=12.5,
    share=0.31,
    tokens=7,
    waited_s=3.5,
    overused_s=0.25,
    lost=1,
    connected=True,
    holding=True,
    held_s=0.01,
    waiting=False,
    ungated_core_s=4.5,
)
LEDGER = Ledger(
    device="cpu:0", at_s=5.0, span_s=10.0, entries=(ENTRY,), functions={"a.openfaas-fn": 20.0, "gone.openfaas-fn": 1.5}
)
REPLICA = ReplicaStatus(
    spec=ReplicaSpec(
        id="a-1", function="a.openfaas-fn", revision="r", code_digest="d", slot=0, place=Place("cpu:0", (0,))
    ),
    state=ReplicaState.READY,
    ungated_device_use=True,
)


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """Value by name and labels in order."""
    return {
        (sample.name, *(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_every_figure_of_the_ledger_is_a_metric_by_function_replica_and_device() -> None:
    found = samples(ledger_metrics([LEDGER], [REPLICA]))

    assert found["gshare_device_seconds_total", "cpu:0", "a.openfaas-fn"] == 20.0
    assert found["gshare_device_seconds_total", "cpu:0", "gone.openfaas-fn"] == 1.5
    of_replica = {key[0]: value for key, value in found.items() if key[1:] == ("cpu:0", "a.openfaas-fn", "a-1")}
    assert of_replica == {
        "gshare_replica_device_seconds_total": 12.5,
        "gshare_tokens_total": 7,
        "gshare_ungated_core_seconds_total": 4.5,
        "gshare_token_wait_seconds_total": 3.5,
        "gshare_overuse_seconds_total": 0.25,
        "gshare_tokens_lost_total": 1,
        "gshare_quota_request": 0.2,
        "gshare_quota_limit": 0.6,
        "gshare_share_measured": 0.31,
        "gshare_token_held": 1,
        "gshare_token_waiting": 0,
        "gshare_managed": 1,
        "gshare_ungated_device_use": 1,
    }
    assert found["gshare_tokens_out", "cpu:0"] == 1


def test_no_device_is_no_series_and_still_a_good_answer() -> None:
    assert samples(ledger_metrics([], [])) == {}


def test_both_forms_are_served(api: ControlApi, store: Store) -> None:
    store.put_ledgers((LEDGER,))

    (ledger,) = api.read("/gshare/ledgers")
    assert (ledger["device"], ledger["entries"][0]["used_s"]) == ("cpu:0", 12.5)
    answer = api.call("GET", "/gshare/metrics")
    assert answer.status_code == 200
    assert answer.content_type.startswith("text/plain; version=")
    assert samples(answer.data)["gshare_device_seconds_total", "cpu:0", "a.openfaas-fn"] == 20.0


def test_before_the_first_tick_there_is_no_ledger(api: ControlApi) -> None:
    assert api.read("/gshare/ledgers") == []
