"""Whether losses are what their formulas say: geosd's own, or a function of any program.

geosd conformance                                          # every loss of geosd
geosd conformance my_package.losses:jsd_loss --loss jsd    # a function; see geosd.conformance
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from geosd import geometry
from geosd.conformance import check, table
from geosd.integrations.geosd_loss import GeoSDLoss


def _on_union(name: str, student: Tensor, teacher: Tensor, top_k: int, **settings: Any) -> Tensor:
    """A divergence [B, T] on the union of the models' top-K tokens."""
    logits = student.flatten(0, 1), teacher.detach().flatten(0, 1)
    support = geometry.union_support(logits, top_k)
    divergence: Callable[..., Tensor] = getattr(geometry, name)
    return divergence(*map(support.restrict, logits), **settings).view(student.shape[:2])


DIVERGENCES = "forward_kl reverse_kl jsd skew_kl alpha_divergence hellinger fisher_rao"
LOSSES = {name: partial(_on_union, name) for name in f"{DIVERGENCES} fisher_rao_squared".split()}
LOSSES["geosd"] = lambda student, teacher, anchor, mask, top_k, drift_penalty: GeoSDLoss(
    top_k, drift_penalty
)(student, teacher, anchor, mask)


def main(arguments: list[str] | None = None) -> int:
    """Check losses, geosd's own or any function, against values of 40 digits."""
    parser = argparse.ArgumentParser(prog="geosd conformance", description=main.__doc__)
    parser.add_argument("function", nargs="?", help="MODULE:FUNCTION; without it geosd's losses")
    parser.add_argument("--loss", default="geosd", help="which loss the function claims to be")
    given = parser.parse_args(arguments)
    losses, wrong = LOSSES, 0
    if given.function:
        sys.path.insert(0, os.getcwd())
        module, _, function = given.function.partition(":")
        losses = {given.loss: getattr(importlib.import_module(module), function)}
    for name, loss in losses.items():
        try:
            print(f"{name}\n{table(check(loss, name))}\n")
        except AssertionError as error:
            print(f"{error}\n")
            wrong += 1
    return wrong
