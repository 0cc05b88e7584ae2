"""GeoSD for TRL: a loss, a callback and a trainer, each loaded when it is asked for.

    from geosd.integrations.trl import GeoSDLoss, GeoSDTrainer, KFACCallback

`GeoSDLoss` needs torch alone, `KFACCallback` transformers, `GeoSDTrainer` TRL 1.13 to 1.16.
examples/trl_geosd.py is a whole program.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geosd.integrations.geosd_loss import GeoSDLoss
    from geosd.integrations.geosd_trainer import GeoSDTrainer
    from geosd.integrations.kfac_callback import KFACCallback

__all__ = ["GeoSDLoss", "GeoSDTrainer", "KFACCallback"]
_MODULES = dict(zip(__all__, ("geosd_loss", "geosd_trainer", "kfac_callback"), strict=True))


def __getattr__(name: str) -> Any:
    """Import a part at its first use: the loss does not wait for TRL."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"geosd.integrations.{_MODULES[name]}"), name)
