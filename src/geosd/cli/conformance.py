"""Whether losses are what their formulas say: geosd's own, or a function of any program.

geosd conformance                                          # every loss of geosd
geosd conformance my_package.losses:jsd_loss --loss jsd    # a function; see geosd.conformance
"""

import argparse
import importlib
import os
import sys


def main(words: list[str] | None = None) -> int:
    """Check losses, geosd's own or any function, against values of 40 digits."""
    parser = argparse.ArgumentParser(prog="geosd conformance", description=main.__doc__)
    parser.add_argument("function", nargs="?", help="MODULE:FUNCTION; without it geosd's losses")
    parser.add_argument("--loss", default="geosd", help="which loss the function claims to be")
    given = parser.parse_args(words)
    # Here, because they load torch, which a help text does without.
    from geosd.cli.union_losses import LOSSES
    from geosd.conformance import check, conformance_table

    losses, wrong = LOSSES, 0
    if given.function:
        sys.path.insert(0, os.getcwd())
        module, _, function = given.function.partition(":")
        losses = {given.loss: getattr(importlib.import_module(module), function)}
    for name, loss in losses.items():
        try:
            print(f"{name}\n{conformance_table(check(loss, name))}\n")
        except AssertionError as error:
            print(f"{error}\n")
            wrong += 1
    return wrong
