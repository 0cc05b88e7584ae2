"""Parts of a manifest that stay on its machine: names that change no number and tell its place."""

from collections.abc import Mapping
from typing import Any


def platform_without_kernel(described: Mapping[str, Any]) -> str:
    """System, architecture and C library of a manifest's `device`, as Linux-x86_64-with-glibc2.36.

    The release of a kernel names the machine of a provider, and changes no number.
    """
    system = described["platform"].partition("-")[0]
    _, written, library = described["platform"].partition("-with-")
    machine = described.get("machine", "")
    return "-".join(filter(None, [system, machine])) + written + library


def without_names_of_machines(values: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without what names its machine: node, job, visible devices, release of a kernel.

    So it leaves the machine, in a capsule.
    """
    described = values["device"]
    private = ("node", "job", "visible")
    kept = {name: value for name, value in described.items() if name not in private}
    return {**values, "device": {**kept, "platform": platform_without_kernel(described)}}
