"""Every claim judged once, over the studies of a family."""

from collections.abc import Mapping

import pandas as pd

from geosd.claims.finding import Finding
from geosd.claims.ledger import ledger
from geosd.claims.merge import merge_ledgers


def merge(claims: Mapping[str, pd.DataFrame], kind: Mapping[str, str]) -> list[Finding]:
    """Merge the ledgers of studies of different kinds, by study."""
    return merge_ledgers(ledger(), claims, kind)
