"""The code behind a step is what its module imports, finds by name and names as data; no more."""

from __future__ import annotations

from importlib import import_module

import pytest

from geosd.objectives.objective import names as objectives
from geosd.problems.sources import names as sources_of_data
from geosd.provenance.code import code_of, module_of


@pytest.fixture
def sources(tmp_path):
    """A package whose step imports a part, which imports another and names a data file."""
    files = {
        "__init__.py": "",
        "steps/__init__.py": "",
        "steps/train.py": "import geosd.config\n\ndef main():\n    from geosd.parts import first\n",
        "parts/__init__.py": "",
        "parts/first.py": "import geosd.parts.second\nSHAPES = 'shapes.yaml'\n",
        "parts/second.py": "import os\n",
        "parts/third.py": "",
        "parts/shapes.yaml": "",
        "parts/others.yaml": "",
        "config/__init__.py": "import geosd.parts.third\n",
        "objectives/__init__.py": "",
        "objectives/jsd.py": "from geosd.parts import third\n",
        "problems/__init__.py": "",
        "problems/sources/__init__.py": "",
        "problems/sources/dapo_math.py": "",
        "reporting/__init__.py": "",
        "reporting/table_main.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "geosd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(*arguments, **keywords) -> set[str]:
    paths = code_of(*arguments, **keywords)
    assert paths == sorted(set(paths))
    return {path.removeprefix("geosd/") for path in paths if not path.endswith("__init__.py")}


def test_imports_are_followed_wherever_they_stand_and_the_configuration_is_not(sources):
    settings = {"objective": {"name": "none"}, "source": "none"}
    found = names("train", settings, sources=sources)
    assert found == {"steps/train.py", "parts/first.py", "parts/second.py", "parts/shapes.yaml"}


def test_what_settings_name_belongs_to_the_step(sources):
    common = names("train", {"objective": {"name": "no"}, "source": "no"}, sources=sources)
    own = names("train", {"objective": {"name": "jsd"}, "source": "dapo-math"}, sources=sources)
    added = {"objectives/jsd.py", "parts/third.py", "problems/sources/dapo_math.py"}
    assert own - common == added


def test_further_modules_are_followed_too(sources):
    found = names("render", modules=("geosd.reporting.table_main",), sources=sources)
    assert found == {"reporting/table_main.py"}


def test_packages_on_the_way_count(sources):
    settings = {"objective": {"name": "jsd"}, "source": "no"}
    assert "geosd/objectives/__init__.py" in code_of("train", settings, sources=sources)


def test_every_objective_and_source_is_where_its_name_says():
    for key, registered in (("objective", objectives()), ("source", sources_of_data())):
        assert registered
        for name in registered:
            import_module(module_of(key, name))
