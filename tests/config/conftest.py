"""Copies of params.yaml that a test may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from cases import with_studies


@pytest.fixture
def edited(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Go to a copy of params.yaml with texts replaced; each stands once.

    `studies` are those that the copy has; all, where none is named.
    """
    (tmp_path / "base_models").symlink_to(root / "base_models")

    def copy(*changes: tuple[str, str], studies: Sequence[str] = ()) -> Path:
        text = (root / "params.yaml").read_text()
        text = with_studies(text, studies) if studies else text
        for old, new in changes:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in params.yaml"
            text = text.replace(old, new)
        (tmp_path / "params.yaml").write_text(text)
        monkeypatch.chdir(tmp_path)
        return tmp_path / "params.yaml"

    return copy
