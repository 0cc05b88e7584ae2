"""Whether the hub answers this machine."""

from __future__ import annotations

import urllib.error
import urllib.request

TIMEOUT_S = 10.0


def hub_answers(endpoint: str, offline: bool, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether a request to the hub gets an answer, whatever it is; none is made offline.

    Args:
        endpoint: The hub's address (`huggingface_hub.constants.ENDPOINT`).
        offline: Whether requests are forbidden (HF_HUB_OFFLINE).
        timeout_s: How long to wait.
    """
    if offline:
        return False
    request = urllib.request.Request(endpoint, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
