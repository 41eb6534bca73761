"""What the numbers of a study say: sentences made from the data, and a choice.

Two settings are only called different where compare() tells them apart. A choice rests on clear
differences; where there are none, it says so.
"""

from . import lattices, regions

FOUND = {
    "disjoint": regions.on_pattern, "interleaved": regions.on_pattern,
    "transfer-size": regions.on_transfer, "chunk-size": regions.on_chunks,
    "alignment": regions.on_alignment, "scaling": lattices.on_scaling,
    "block-size": lattices.on_blocks, "variability": lattices.on_variability,
    "formats": lattices.on_formats, "app": lattices.on_apps,
}


def of(study, points, chosen):
    """(sentences, choice): the choice is a phrase, or empty."""
    return FOUND[study](points, chosen) if points else ([], "")
