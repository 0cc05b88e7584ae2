"""A policy alone casts, gathers and frees weights: nothing else in training does."""

import ast
from pathlib import Path

import geosd.training

OWNERS = {"policy.py", "fsdp.py"}
OWNED = {"weights_in_precision", "with_root_gathered", "reshard", "full_tensor"}


def names_in(path):
    """Every name and attribute that a module's code mentions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name | ast.Attribute):
            yield getattr(node, "id", None) or getattr(node, "attr", None)


def test_only_a_policy_casts_gathers_and_frees_weights():
    modules = {
        path.name: set(names_in(path)) for path in Path(geosd.training.__path__[0]).glob("*.py")
    }
    assert OWNED <= set().union(*(modules.pop(name) for name in OWNERS))
    assert not {name: found & OWNED for name, found in modules.items() if found & OWNED}
