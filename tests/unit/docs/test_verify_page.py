"""docs/verify.md says what the command does: options, exit codes, tolerances, and the headings of its tables."""

from __future__ import annotations

import re
from pathlib import Path

from gateway_plugin.cli import verify
from gateway_plugin.verify.command import EXIT_CODES
from gateway_plugin.verify.figures import IDLE, RATIO_TOLERANCE, SHARE_TOLERANCE, Source, Verdict
from gateway_plugin.verify.passive import SOURCES
from gateway_plugin.verify.shares import ROUNDS

PAGE = (Path(__file__).parents[3] / "docs" / "verify.md").read_text()
TIMES = {2: "twice", 3: "three times", 4: "four times"}


def test_every_option_that_it_names_is_one_and_every_option_is_named() -> None:
    options = {option for parameter in verify.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) == options


def test_exit_codes_and_tolerances_are_those_of_the_code() -> None:
    assert EXIT_CODES == {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.UNCLEAR: 2}
    assert re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE) == ["0", "1", "2"]
    assert f"± {100 * SHARE_TOLERANCE:g} points" in PAGE and f"± {100 * RATIO_TOLERANCE:g} %" in PAGE
    assert f"somebody used {100 * IDLE:g} % or more" in PAGE
    assert f"**alone** first, {TIMES[ROUNDS]} in turns" in PAGE


def test_the_table_of_the_passive_report_and_its_sources_are_as_printed() -> None:
    (headings,) = (line for line in PAGE.splitlines() if line.startswith("DEVICE  REPLICA"))
    assert re.split(r"\s{2,}", headings)[2:] == [name.upper() for name in SOURCES]
    for source in Source:
        assert f"\n{source}: " in PAGE
