"""When, by which code, in how much time and on which machine a study was run, in one line."""

from pydantic import BaseModel, ConfigDict


class RunSummary(BaseModel):
    """Five things on a study's runs, in words: a shipped study's manifest holds them.

    Attributes:
        date: Day of the last run; empty for manifests of runs without a day.
        commit: That of the package's sources in the last step.
        steps: Runs and summed time of each step, as `train 36 runs 3.8 h, ...`.
        machine: Platform and accelerators of most runs.
        cpus: CPUs of that machine.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    date: str
    commit: str
    steps: str
    machine: str
    cpus: str

    def in_one_line(self) -> str:
        """All five, as a page of the study says them."""
        words = [self.date] if self.date else []
        words += [f"commit {self.commit}", self.steps, self.machine, f"{self.cpus} CPUs"]
        return " · ".join(words)
