"""A folder's path that DVC, Snakemake or make cannot bear is named with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import python

from geosd.prerequisites.folder_name import check_folder, refuse_folder

RIGHT = ["/a/b", "/a b/c", "/it's a $HOME & 100% x é", "/a#b", "/a[b]*", "/a;b,c=d@e!", "/a\nb"]


@pytest.mark.parametrize("path", RIGHT)
def test_most_characters_are_right(path):
    assert check_folder(Path(path)).state == "ok"
    refuse_folder(Path(path))


@pytest.mark.parametrize("path", ["/a{x}b", "/a{/b", "/a/b}", "/{}/b"])
def test_braces_are_named_and_dvcs_programs_refused(path):
    check = check_folder(Path(path))
    assert check.state == "note" and "DVC" in check.found and path in check.found and check.cure
    with pytest.raises(SystemExit, match=r"DVC(.|\n)*\nHint: "):
        refuse_folder(Path(path))


@pytest.mark.parametrize(
    ("path", "who"), [("/a:b", "make"), ("/a{0}b", "Snakemake"), ("/{a b}", "Snakemake")]
)
def test_what_no_run_can_bear_is_missing(path, who):
    check = check_folder(Path(path))
    assert check.state == "missing" and who in check.found and check.cure
    with pytest.raises(SystemExit, match=who):
        refuse_folder(Path(path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("workflow/dvc/generate.py", "--study", "quick"),
        ("workflow/dvc/experiment.py", "--name", "x", "--set", "seeds=[0]"),
        ("-m", "geosd", "dvc-commit", "--study", "quick"),
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_a_program_of_dvc_says_so_and_changes_nothing(root, tmp_path, command):
    folder = tmp_path / "my {x} folder"
    folder.mkdir()
    for name in ("workflow", "src", "base_models"):
        (folder / name).symlink_to(root / name)
    text = (root / "params.yaml").read_text()
    (folder / "params.yaml").write_text(text)
    done = python(*command, environment={"PYTHONPATH": str(root / "src")}, cwd=folder)
    assert done.returncode
    assert "{x}" in done.stderr and "takes the braces for its own format" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Hint: ") and "Traceback" not in done.stderr
    assert (folder / "params.yaml").read_text() == text and not (folder / "dvc.yaml").exists()
