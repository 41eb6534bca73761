"""Describes the results of a study in sentences, and recommends a setting.

Two settings are called different only if compare() says so. If no difference is clear, the
recommendation states that.
"""

from . import lattices, regions

DESCRIBERS = {
    "disjoint": regions.describe_pattern, "interleaved": regions.describe_pattern,
    "transfer-size": regions.describe_transfer, "chunk-size": regions.describe_chunks,
    "alignment": regions.describe_alignment, "scaling": lattices.describe_scaling,
    "block-size": lattices.describe_blocks, "variability": lattices.describe_variability,
    "formats": lattices.describe_formats, "app": lattices.describe_apps,
}


def describe(study, points, chosen):
    """Returns (sentences, recommendation); the recommendation is a phrase or ""."""
    return DESCRIBERS[study](points, chosen) if points else ([], "")
