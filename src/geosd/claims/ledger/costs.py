"""Costs, computed from dimensions and settings."""

from __future__ import annotations

from functools import partial

from geosd.claims.claim import Claim, ComputedNumber

claim = partial(Claim, study_kind="main")

CLAIMS = (
    claim(
        "cost-operations",
        "An update of GeoSD takes 1.27 times the operations of OPSD",
        place="Section 4.1; Table flops",
        quote="raising optimizer FLOPs by ≈27%",
        published="1.27",
        computed=[
            ComputedNumber("operations ratio of qwen3-8b", "1.27"),
        ],
    ),
    claim(
        "cost-kfac-operations",
        "K-FAC adds .4 model-pass units to an update",
        place="Table flops",
        quote="GeoSD & 6 & 3 & 2 & 0.4 & 11.4 & 1.27 & 1.10",
        published="0.4",
        computed=[
            ComputedNumber("K-FAC operations of qwen3-8b", "0.4"),
        ],
    ),
    claim(
        "cost-memory",
        "GeoSD takes 1.21 times the training memory of OPSD, 158 against 131 GB",
        place="Section 4.1; Table memory_methods",
        quote="training memory by ≈21%",
        published="1.21",
        computed=[
            ComputedNumber("memory ratio of qwen3-8b", "1.21"),
            ComputedNumber("common footprint of qwen3-8b", "131"),
            ComputedNumber("whole footprint of qwen3-8b", "158"),
        ],
    ),
    claim(
        "cost-training-workers",
        "K-FAC's state adds 8 % to the memory of the training workers",
        place="Section 4.1; Appendix, Memory",
        quote="only the K-FAC state (≈8%) resides on the training workers",
        published="8 %",
        computed=[
            ComputedNumber("K-FAC share of qwen3-8b", "8"),
        ],
    ),
    claim(
        "cost-kfac-memory",
        "K-FAC's state takes 2.1 to 18.3 GB over the ladder",
        place="Appendix, Memory; Table kfac_memory",
        quote="growing from 2.1 GB at 1.7B to 18.3 GB at 32B",
        published="2.1, 6.6, 10.9, 5.7, 18.3",
        computed=[
            ComputedNumber("K-FAC state of qwen3-1.7b", "2.1"),
            ComputedNumber("K-FAC state of qwen3-4b", "6.6"),
            ComputedNumber("K-FAC state of qwen3-8b", "10.9"),
            ComputedNumber("K-FAC state of qwen3-14b", "5.7"),
            ComputedNumber("K-FAC state of qwen3-32b", "18.3"),
        ],
    ),
    claim(
        "cost-unblocked-covariances",
        "Unblocked covariances would take up to 585 GB",
        place="Appendix, Memory; Table kfac_memory",
        quote="far below the unblocked EMA we never form (up to 585 GB at 32B)",
        published="17.1, 52.6, 87.3, 183.5, 585.2",
        computed=[
            ComputedNumber("unblocked covariances of qwen3-1.7b", "17.1"),
            ComputedNumber("unblocked covariances of qwen3-4b", "52.6"),
            ComputedNumber("unblocked covariances of qwen3-8b", "87.3"),
            ComputedNumber("unblocked covariances of qwen3-14b", "183.5"),
            ComputedNumber("unblocked covariances of qwen3-32b", "585.2"),
        ],
    ),
    claim(
        "cost-anchor",
        "The checkpoint takes 3.4 to 65.6 GB over the ladder",
        place="Appendix, Memory; Table kfac_memory",
        quote="the bf16 checkpoint adds 2N bytes on top (3.4 GB at 1.7B to 65.6 GB at 32B)",
        published="3.4, 8.0, 16.4, 29.6, 65.6",
        computed=[
            ComputedNumber("anchor of qwen3-1.7b", "3.4"),
            ComputedNumber("anchor of qwen3-4b", "8.0"),
            ComputedNumber("anchor of qwen3-8b", "16.4"),
            ComputedNumber("anchor of qwen3-14b", "29.6"),
            ComputedNumber("anchor of qwen3-32b", "65.6"),
        ],
    ),
    claim(
        "cost-increase",
        "GeoSD's state adds 15 to 23 % to the training memory over the ladder",
        place="Table kfac_memory",
        quote="its increase over the common training footprint",
        published="5.5 (+20 %), 14.6 (+23 %), 27.3 (+21 %), 35.3 (+15 %), 83.9 (+16 %)",
        computed=[
            ComputedNumber("method's state of qwen3-1.7b", "5.5"),
            ComputedNumber("method's state of qwen3-4b", "14.6"),
            ComputedNumber("method's state of qwen3-8b", "27.3"),
            ComputedNumber("method's state of qwen3-14b", "35.3"),
            ComputedNumber("method's state of qwen3-32b", "83.9"),
            ComputedNumber("increase of qwen3-1.7b", "20"),
            ComputedNumber("increase of qwen3-4b", "23"),
            ComputedNumber("increase of qwen3-8b", "21"),
            ComputedNumber("increase of qwen3-14b", "15"),
            ComputedNumber("increase of qwen3-32b", "16"),
        ],
    ),
    claim(
        "cost-logits",
        "The checkpoint's truncated logits take less than 1 GB an update",
        place="Appendix, Memory",
        quote="logits (< 1 GB per batch)",
        published="< 1 GB",
        computed=[
            ComputedNumber("logits of an update of qwen3-8b", "< 1"),
        ],
    ),
    claim(
        "cost-wall-clock",
        "An update of GeoSD takes 1.10 times the wall-clock time of OPSD",
        place="Section 4.1; Table flops",
        quote="Wall-clock time grows by only 1.10×",
        published="1.10",
        unmeasured=(
            "the time of updates with rollouts on inference workers of their own, which no rule"
            " measures"
        ),
    ),
    claim(
        "support-holds-the-teacher",
        "The union of top-K supports holds more than 99.9 % of the teacher's mass",
        place="Appendix, Training",
        quote="preserves >99.9% of the teacher's mass at the loss-driving states",
        published="> 99.9 %",
        unmeasured=(
            "the teacher's mass on the union at K = 1024 of the paper's vocabularies, which no "
            "rule records"
        ),
    ),
)
