"""`gshare verify` as it is typed: what is accepted, and what is told, with exit code 2, where nothing can be judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway_plugin.cli import main
from gateway_plugin.errors import CannotVerify
from gateway_plugin.ledger import Entry, Ledger
from gateway_plugin.model import Device
from gateway_plugin.paths import Paths
from gateway_plugin.verify.command import parse_shares, plan_of
from gateway_plugin.verify.measure import choose_device, require_idle
from tests import ledger_entries

CPU = Device(id="cpu:0", kind="cpu", units=2, memory_bytes=1, cores=(4, 5))
GPU = Device(id="GPU-1", kind="Tesla V100", units=40, memory_bytes=1)


def verify(*arguments: str, home: Path) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments], env={"GSHARE_HOME": str(home)})


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ("0.3", "at least two"),
        ("0.3,x", "'x' is no number"),
        ("0.3,", "'' is no number"),
        ("30,60", "30 is not accepted; 0.05 to 1 of the time; did you mean 0.3?"),
        ("0.01,0.5", "0.01 is not accepted; 0.05 to 1"),
        ("nan,0.5", "nan is not accepted"),
        ("0.5,0.6", "sum to 1.1, and a device has 1 to give; lower one"),
    ],
)
def test_shares_that_cannot_be_are_refused_with_value_and_rule(shares: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(CannotVerify) as refused:
        parse_shares(shares)
    assert told in str(refused.value)
    result = verify("--shares", shares, home=tmp_path)
    assert result.exit_code == 2
    assert "cannot verify: --shares" in result.output


def test_shares_that_fill_the_device_exactly_are_fine() -> None:
    assert parse_shares("0.1, 0.2,0.7") == (0.1, 0.2, 0.7)


@pytest.mark.parametrize("number", [0, 3])
def test_a_probe_that_is_none_cannot_be_let_free(number: int) -> None:
    with pytest.raises(CannotVerify, match=f"--ungated {number}: probes are numbered 1 to 2"):
        plan_of(device="", shares="0.3,0.6", seconds=1, ungated=(number,), disturb=False, pause_ms=0)


@pytest.mark.parametrize("passive", [(), ("--passive",)])
def test_without_an_agent_it_says_where_it_looked_and_what_to_start(passive: tuple[str, ...], tmp_path: Path) -> None:
    result = verify(*passive, home=tmp_path)
    assert result.exit_code == 2
    assert f"no node agent answers at {Paths(tmp_path).agent_socket}" in result.output
    assert "gshare up" in result.output


def test_usage_errors_have_the_same_exit_code(tmp_path: Path) -> None:
    assert verify("--seconds", "0", home=tmp_path).exit_code == 2
    assert verify("--no-such-option", home=tmp_path).exit_code == 2


def test_the_first_device_is_taken_unless_one_is_named() -> None:
    assert choose_device([CPU, GPU], "") is CPU
    assert choose_device([CPU, GPU], "GPU-1") is GPU
    with pytest.raises(CannotVerify, match=r"--device 'GPU-2': no such device here; there is cpu:0, GPU-1"):
        choose_device([CPU, GPU], "GPU-2")


def entry(*, share: float, units: tuple[int, ...] = (0,), waiting: bool = False) -> Entry:
    return ledger_entries.entry(replica="r", units=units, used_s=1.0, share=share, tokens=1, waiting=waiting)


@pytest.mark.parametrize(
    ("entries", "device"),
    [
        ((), CPU),
        ((entry(share=0.019),), CPU),
        ((entry(share=0.9, units=(1,)),), CPU),  # on another core
    ],
)
def test_idle_units_may_be_tested(entries: tuple[Entry, ...], device: Device) -> None:
    require_idle(Ledger(device.id, 1.0, 10.0, entries, {}), device, {0})


@pytest.mark.parametrize(
    ("one", "device", "told"),
    [
        (entry(share=0.34), CPU, r"cpu:0 is in use: in the last 10 s f.openfaas-fn \(r\) 34%; .*--disturb"),
        (entry(share=0.0, waiting=True), CPU, "0% and waits for more"),
        (entry(share=0.34, units=(1,)), GPU, "GPU-1 is in use"),  # a GPU's units are nobody's in particular
    ],
)
def test_a_device_in_use_is_left_alone_and_who_uses_it_is_told(one: Entry, device: Device, told: str) -> None:
    with pytest.raises(CannotVerify, match=told):
        require_idle(Ledger(device.id, 1.0, 10.0, (one,), {}), device, {0})
