"""What every rule reads that puts problems to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geosd.config.studies import Study


def asked(study: Study, model: str) -> dict[str, Any]:
    """Whose the problems are, how the model answers, and what samples it."""
    data, rollout = study.section("data", model), study.section("rollout", model)
    if rollout["engine"] != "vllm":  # vLLM's options are not read, so they must not cause a rerun
        rollout = {key: rollout[key] for key in ("engine", "sequences")}
    return {"source": data["source"], "thinking": data["thinking"], "rollout": rollout}
