"""Costs, computed from dimensions and settings."""

from functools import partial

from geosd.claims.claim import Claim
from geosd.claims.computed_costs import ComputedNumber

claim = partial(Claim, "", study_kind="main", place="Appendix, Memory; Table kfac_memory")


def _at_8b(quantity: str, printed: str) -> ComputedNumber:
    """A computed number of a claim on costs, of Qwen3-8B."""
    return ComputedNumber(f"{quantity} of qwen3-8b", printed)


def _at_each_size(quantity: str, *printed: str) -> list[ComputedNumber]:
    """Computed numbers of a claim on costs, one of each model of the paper's ladder."""
    sizes = ("1.7b", "4b", "8b", "14b", "32b")
    return [
        ComputedNumber(f"{quantity} of qwen3-{size}", digits)
        for size, digits in zip(sizes, printed, strict=True)
    ]


CLAIMS = {
    "cost-operations": claim(
        "An update of GeoSD takes 1.27 times the operations of OPSD",
        place="Section 4.1; Table flops",
        quote="raising optimizer FLOPs by ≈27%",
        computed=[_at_8b("operations ratio", "1.27")],
    ),
    "cost-kfac-operations": claim(
        "K-FAC adds .4 model-pass units to an update",
        place="Table flops",
        quote="GeoSD & 6 & 3 & 2 & 0.4 & 11.4 & 1.27 & 1.10",
        computed=[_at_8b("K-FAC operations", "0.4")],
    ),
    "cost-memory": claim(
        "GeoSD takes 1.21 times the training memory of OPSD, 158 against 131 GB",
        place="Section 4.1; Table memory_methods",
        quote="training memory by ≈21%",
        computed=[
            _at_8b("memory ratio", "1.21"),
            _at_8b("common footprint", "131"),
            _at_8b("whole footprint", "158"),
        ],
    ),
    "cost-training-workers": claim(
        "K-FAC's state adds 8 % to the memory of the training workers",
        place="Section 4.1; Appendix, Memory",
        quote="only the K-FAC state (≈8%) resides on the training workers",
        computed=[_at_8b("K-FAC share", "8")],
    ),
    "cost-kfac-memory": claim(
        "K-FAC's state takes 2.1 to 18.3 GB over the ladder",
        quote="growing from 2.1 GB at 1.7B to 18.3 GB at 32B",
        computed=_at_each_size("K-FAC state", "2.1", "6.6", "10.9", "5.7", "18.3"),
    ),
    "cost-unblocked-covariances": claim(
        "Unblocked covariances would take up to 585 GB",
        quote="far below the unblocked EMA we never form (up to 585 GB at 32B)",
        computed=_at_each_size("unblocked covariances", "17.1", "52.6", "87.3", "183.5", "585.2"),
    ),
    "cost-anchor": claim(
        "The checkpoint takes 3.4 to 65.6 GB over the ladder",
        quote="the bf16 checkpoint adds 2N bytes on top (3.4 GB at 1.7B to 65.6 GB at 32B)",
        computed=_at_each_size("anchor", "3.4", "8.0", "16.4", "29.6", "65.6"),
    ),
    "cost-increase": claim(
        "GeoSD's state adds 15 to 23 % to the training memory over the ladder",
        place="Table kfac_memory",
        quote="its increase over the common training footprint",
        computed=[
            *_at_each_size("method's state", "5.5", "14.6", "27.3", "35.3", "83.9"),
            *_at_each_size("increase", "20", "23", "21", "15", "16"),
        ],
    ),
    "cost-logits": claim(
        "The checkpoint's truncated logits take less than 1 GB an update",
        place="Appendix, Memory",
        quote="logits (< 1 GB per batch)",
        computed=[_at_8b("logits of an update", "< 1")],
    ),
    "cost-wall-clock": claim(
        "An update of GeoSD takes 1.10 times the wall-clock time of OPSD",
        place="Section 4.1; Table flops",
        quote="Wall-clock time grows by only 1.10×",
        unmeasured="the time of updates with rollouts on inference workers of their own, which no"
        " rule measures",
    ),
}
