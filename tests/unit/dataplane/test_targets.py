"""Request targets are split on the bytes as sent (user case A15)."""

from __future__ import annotations

import pytest

from gateway_plugin.dataplane.targets import origin_form, split_function

SPLIT = {
    b"/function/f": (b"f", b"/"),
    b"/function/f/": (b"f", b"/"),
    b"/function/f/a/b": (b"f", b"/a/b"),
    b"/function/f?x=1&x=2": (b"f", b"/?x=1&x=2"),
    b"/function/f/a/b%2Fc//d?x=1&x=2&y=%E2%9C%93": (b"f", b"/a/b%2Fc//d?x=1&x=2&y=%E2%9C%93"),
    b"/function/f//a": (b"f", b"//a"),
    b"/function/f/?": (b"f", b"/?"),
    b"/function/f?u=/a/b?c": (b"f", b"/?u=/a/b?c"),
    b"/function/f.openfaas-fn/x": (b"f.openfaas-fn", b"/x"),
    b"/function/../system/functions": (b"..", b"/system/functions"),
    b"/function/": (b"", b"/"),
    b"/function/%66": (b"%66", b"/"),
    b"/function": None,
    b"/": None,
    b"/functions/f": None,
    b"//function/f": None,
    b"/system/functions": None,
    b"*": None,
}


@pytest.mark.parametrize("target", SPLIT)
def test_a_target_is_split_into_name_and_what_the_function_sees(target: bytes) -> None:
    assert split_function(target) == SPLIT[target]


ORIGIN = {
    b"/a?b": b"/a?b",
    b"http://host/function/f?x": b"/function/f?x",
    b"http://host:80": b"/",
    b"http://host?x=/y": b"/?x=/y",
    b"http://host//a": b"//a",
    b"*": b"*",
}


@pytest.mark.parametrize("target", ORIGIN)
def test_an_absolute_target_is_cut_to_its_path(target: bytes) -> None:
    assert origin_form(target) == ORIGIN[target]
