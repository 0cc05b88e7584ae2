"""The two scripts around the workflow: pages of the report, and progress on the terminal."""

from __future__ import annotations

import importlib.util
import os
import sys
import time

import pytest


@pytest.fixture
def script(root):
    def load(name):
        path = root / "workflow/scripts" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_a_markdown_table_becomes_a_table_and_its_html_stays_text(script):
    html = script("page").page("| a | b |\n|---|---|\n| **1** | <script>x</script> |\n")
    assert "<td><strong>1</strong></td>" in html
    assert "<script>" not in html


def test_progress_is_the_last_line_of_each_log_that_is_being_written(script, tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train/0.log").write_text("start\n 10%|# | 1/10\r 20%|## | 2/10\r\n\x1b[A")
    (tmp_path / "old.log").write_text("done long ago\n")
    os.utime(tmp_path / "old.log", (1, 1))
    words = script("progress").last_words(tmp_path, time.time() - 60)
    assert words == ["    train/0: 20%|## | 2/10"]


def test_progress_returns_what_the_command_returns(script, tmp_path):
    assert script("progress").main(tmp_path, [sys.executable, "-c", "raise SystemExit(7)"]) == 7
