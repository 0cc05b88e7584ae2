"""What a study writes is for the group that its folder is for."""

import os

import pytest


def modes(*folders):
    """The permissions of everything in some folders."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    assert any(path.name == "model.safetensors" for path in paths)
    found = {"folders": set(), "files": set()}
    for path in paths:
        found["folders" if path.is_dir() else "files"].add(path.stat().st_mode & 0o777)
    return found


@pytest.mark.slow
def test_every_file_of_a_study_follows_the_umask(small, tmp_path):
    """Data, base model and pool were made under the umask of the tests, the rest under another."""
    usual = os.umask(0o027)
    try:
        student = small.trained(tmp_path / "study/student", snapshots=(0, 2))
        small.sampled(tmp_path / "study/samples", student)
    finally:
        os.umask(usual)
    assert modes(tmp_path / "study") == {"folders": {0o750}, "files": {0o640}}
    expected = {"folders": {0o777 & ~usual}, "files": {0o666 & ~usual}}
    assert modes(*(small.folder / name for name in ("data", "base", "drawn"))) == expected
