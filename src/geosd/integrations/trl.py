"""GeoSD for TRL: a loss, a callback, a trainer, and the paper's arguments.

    from geosd.integrations.trl import PAPER_ARGUMENTS, GeoSDLoss, GeoSDTrainer, KFACCallback

Each is loaded when it is asked for: `GeoSDLoss` needs torch alone, `KFACCallback` transformers,
`GeoSDTrainer` TRL 1.13 to 1.16. examples/trl_geosd.py is a whole program.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geosd.integrations.geosd_loss import GeoSDLoss
    from geosd.integrations.geosd_trainer import GeoSDTrainer
    from geosd.integrations.kfac_callback import KFACCallback
    from geosd.integrations.paper_arguments import PAPER_ARGUMENTS

__all__ = ["GeoSDLoss", "GeoSDTrainer", "KFACCallback", "PAPER_ARGUMENTS"]
_FILES = ("geosd_loss", "geosd_trainer", "kfac_callback", "paper_arguments")
_MODULES = dict(zip(__all__, _FILES, strict=True))


def __getattr__(name: str) -> Any:
    """Import a part at its first use: the loss does not wait for TRL."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"geosd.integrations.{_MODULES[name]}"), name)
