"""The paper's claims as data, and their verdicts."""
