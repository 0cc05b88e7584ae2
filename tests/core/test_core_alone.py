"""The core needs torch and nothing else: not to be imported, and not to run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cases import python

# Hides every package but torch, what torch itself requires, and geosd. Run before any import.
ONLY_TORCH = '''
import importlib.metadata as metadata, re, sys

def required(name, known):
    """A distribution and everything that it requires without an extra."""
    name = re.match(r"[\\w.-]+", name)[0]
    if name in known:
        return known
    known.add(name)
    for line in metadata.requires(name) or ():
        if "extra ==" not in line:
            try:
                required(line, known)
            except metadata.PackageNotFoundError:
                pass  # for another platform
    return known

distributions = {name.lower().replace("-", "_") for name in required("torch", set())}
owners = metadata.packages_distributions()
allowed = {"geosd", *sys.stdlib_module_names}
for module, names in owners.items():
    if any(name.lower().replace("-", "_") in distributions for name in names):
        allowed.add(module)

class Only:
    """A finder that does not see what is not allowed."""

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in allowed or top not in owners:
            return self.finder.find_spec(name, path, target)

for name in [name for name in sys.modules if name.partition(".")[0] in owners]:
    if name.partition(".")[0] not in allowed:
        del sys.modules[name]  # loaded at start-up by a .pth file
sys.meta_path[:] = [Only(finder) for finder in sys.meta_path]
'''

EVERY_MODULE = """
import importlib, pkgutil, sys
import geosd.geometry, geosd.objectives, geosd.optim
for room in (geosd.geometry, geosd.objectives, geosd.optim):
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""

ONE_STEP = """
import torch
from geosd.geometry import fisher_rao_squared, hellinger
from geosd.objectives.geosd import GeoSD
from geosd.optim.kfac import KFAC

torch.manual_seed(0)
student = torch.nn.Linear(8, 32)
inputs = torch.randn(5, 8)
teacher, anchor = torch.randn(5, 32), student(inputs).detach()
kfac = KFAC(student, blocks=2, select=lambda name, module: True)
logits = student(inputs)
loss = hellinger(logits, teacher).mean() + fisher_rao_squared(logits, anchor).mean()
loss.backward()
plain = student.weight.grad.clone()
kfac.step()
assert student.weight.grad.isfinite().all() and not torch.equal(student.weight.grad, plain)
print(GeoSD())
"""


def run(code: str, *, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a new process; `path`, if given, is where geosd is looked for first."""
    if path is not None:
        code = f"import sys; sys.path.insert(0, {str(path)!r})\n{code}"
    return python("-c", code)


HIDDEN = """
import torch, sympy
try:
    import yaml
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.slow
def test_every_module_a_step_and_the_examples_of_the_core_need_no_other_package(root):
    """In one process, which takes seconds to import torch; an error names the line."""
    examples = [str(root / f"examples/{name}_any_loop.py") for name in ("kfac", "objective")]
    code = ONLY_TORCH + HIDDEN + EVERY_MODULE + ONE_STEP
    code += f"import runpy\nfor file in {examples}: runpy.run_path(file, run_name='__main__')\n"
    done = run(code)
    assert done.returncode == 0, done.stderr
    hidden, loaded, step = done.stdout.splitlines()[:3]
    assert hidden == "No module named 'yaml'"
    assert {"geosd", "torch"} <= set(loaded.split())
    assert "drift_penalty=1.0" in step


@pytest.mark.slow
def test_a_core_import_loads_no_package_that_torch_has_not_loaded():
    code = "import torch, sys\nbefore = set(sys.modules)\nimport geosd, geosd.conformance\n"
    code += "import geosd.geometry, geosd.objectives.geosd, geosd.optim.kfac\n"
    code += "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    loaded = set(run(code).stdout.split()) - set(sys.stdlib_module_names)
    assert loaded and loaded <= {"geosd", "torch"}


@pytest.mark.slow
def test_the_wheel_runs_from_a_folder_of_its_own(root, tmp_path):
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    wheels, site, source = tmp_path / "wheels", tmp_path / "site", tmp_path / "source"
    # A copy, because setuptools leaves its build folder beside the sources.
    shutil.copytree(root / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, source)
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, source], check=True
    )
    (wheel,) = wheels.glob("geosd-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "geosd/conformance.json" in names
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "-t", site, wheel], check=True)
    installed = run(ONLY_TORCH + ONE_STEP + "import geosd; print(geosd.__file__)", path=site)
    assert installed.returncode == 0, installed.stderr
    assert str(site) in installed.stdout
