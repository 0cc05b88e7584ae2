"""Shipped checkpoints are the pinned bytes, or they are refused by name."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest
from cases import python

from geosd.models.shipped_base_models import (
    ShippedCheckpointError,
    check_shipped_base_model,
    shipped_base_model_files,
)

FILES = {"config.json": b"{}", "model.safetensors": b"weights", "tokenizer.json": b"[]"}


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Two draws of a model, and one of another, pinned by the program sha256sum."""
    if shutil.which("sha256sum") is None:
        pytest.skip("the program sha256sum is absent")
    folder = tmp_path / "base_models"
    for draw in ("small/0", "small/1", "smaller/1"):
        (folder / draw).mkdir(parents=True)
        for name, content in FILES.items():
            (folder / draw / name).write_bytes(content + draw.encode())
    names = sorted(str(file.relative_to(folder)) for file in folder.glob("*/*/*"))
    pinned = subprocess.run(["sha256sum", *names], cwd=folder, capture_output=True, check=True)
    (folder / "SHA256SUMS").write_bytes(pinned.stdout)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_files_of_a_draw_are_read_as_sha256sum_wrote_them():
    expected = {
        name: hashlib.sha256(content + b"small/1").hexdigest() for name, content in FILES.items()
    }
    assert shipped_base_model_files("base_models/small/1") == expected
    check_shipped_base_model("base_models/small/1", expected)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("model.safetensors", b"other", "its SHA-256 is [0-9a-f]{64}, in .* it is [0-9a-f]{64}"),
        ("tokenizer.json", None, "it is missing"),
        ("generation_config.json", b"{}", "base_models/SHA256SUMS does not name it"),
    ],
)
def test_another_file_is_refused_by_its_name(project, name, content, problem):
    file = project / "base_models/small/1" / name
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(ShippedCheckpointError, match=f"small/1/{name}: {problem}(.|\n)*Hint: "):
        check_shipped_base_model(
            "base_models/small/1", shipped_base_model_files("base_models/small/1")
        )
    check_shipped_base_model("base_models/small/0", shipped_base_model_files("base_models/small/0"))


def test_a_draw_that_is_not_pinned_is_refused():
    with pytest.raises(ShippedCheckpointError, match="no file of base_models/small/2.\nHint: "):
        shipped_base_model_files("base_models/small/2")


def test_a_damaged_line_is_named_and_an_absent_file(project):
    sums = project / "base_models/SHA256SUMS"
    lines = sums.read_text().splitlines()
    sums.write_text("\n".join([lines[0], lines[1][1:], *lines[2:]]))
    with pytest.raises(ShippedCheckpointError, match="SHA256SUMS:2: (.|\n)*Hint: "):
        shipped_base_model_files("base_models/small/0")
    sums.unlink()
    with pytest.raises(ShippedCheckpointError, match="SHA256SUMS is absent(.|\n)*Hint: "):
        shipped_base_model_files("base_models/small/0")


def test_the_hashes_are_read_without_torch():
    code = "import sys, geosd.models.shipped_base_models; sys.exit('torch' in sys.modules)"
    assert python("-c", code).returncode == 0
