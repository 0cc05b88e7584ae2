"""The rooms of src/geosd import only lower rooms, as the contracts of pyproject.toml say."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

from cases import python


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of a folder's pyproject.toml on its src/geosd."""
    code = (
        "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports_command"
    )
    return python("-c", f"{code}; lint_imports_command()", "--no-cache", cwd=root)


def test_every_contract_is_kept(root):
    checked = lint_imports(root)
    assert checked.returncode == 0, checked.stdout
    assert "0 broken" in checked.stdout


def test_an_import_of_an_upper_room_is_reported(root, tmp_path):
    """The contracts see a violation: geometry must not import optim."""
    room = tmp_path / "src/geosd/geometry"
    for name in ("geometry", "optim"):
        (tmp_path / "src/geosd" / name).mkdir(parents=True)
        (tmp_path / "src/geosd" / name / "__init__.py").touch()
    (tmp_path / "src/geosd/__init__.py").touch()
    (room / "wrong.py").write_text("import geosd.optim\n")
    contract = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contract["contracts"][0]["layers"]
    optional = ", ".join(
        f'"({layer})"' for layer in layers if "|" not in layer and "(" not in layer
    )
    (tmp_path / "pyproject.toml").write_text(
        '[tool.importlinter]\nroot_package = "geosd"\n[[tool.importlinter.contracts]]\n'
        f'name = "layers"\ntype = "layers"\ncontainers = ["geosd"]\nlayers = [{optional}]\n'
    )
    checked = lint_imports(tmp_path)
    assert checked.returncode != 0
    assert "geosd.geometry is not allowed to import geosd.optim" in checked.stdout
