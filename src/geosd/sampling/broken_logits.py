"""Logits that are no distribution, and the problem at which a sampler met them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from geosd.problems.records import Problem


class NonFiniteLogitsError(FloatingPointError):
    """A model gave broken logits, a row that is no distribution; the response is not at fault.

    `place` is the prompt's in the call of the sampler, `position` the token's, from 1.
    """

    def __init__(self, place: int, position: int, problem: str | None = None) -> None:
        """Say where; `problem` is what the prompt at the place asks, where it is known."""
        self.place, self.position = place, position
        asked = f"prompt {place}" if problem is None else f"problem {problem}"
        super().__init__(
            f"the logits of token {position} of a response to {asked} are not finite.\nHint: the"
            " weights are not finite, or the precision is too small for them: look at the training"
            " that made them, or set rollout.precision to float32."
        )


@contextmanager
def name_broken_logits(problems: Sequence[Problem]) -> Iterator[None]:
    """Context in which broken logits are reported with the problem of each prompt of a call."""
    try:
        yield
    except NonFiniteLogitsError as error:
        raise NonFiniteLogitsError(error.place, error.position, problems[error.place].id) from error
