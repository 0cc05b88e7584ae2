"""The wide search world."""

import random

from geosd.problems.search.corpora import WideCorpus
from geosd.problems.search.equations import WIDE, EquationPair
from geosd.problems.sources import register
from geosd.problems.sources.search import Search


@register("search-wide")
class WideSearch(Search):
    """Data source of the wide world, where x is one of 256 values; docs/wide.md."""

    limits = Search.limits.replace("unknown modulo", "unknown of 256 values modulo")
    most_problems = 524_292
    world = WIDE

    def _worked(self, question: EquationPair, rng: random.Random) -> str:
        """A worked solution: pi_0 never comes to the rare values."""
        return WideCorpus().verified(question, rng)
