"""limefs - LIME containers (ILDG, SciDAC) as numpy arrays.

    import limefs

    conf = limefs.open("conf.0100")            # a container, or its directory in a limefs mount
    conf.records                               # what `lime ls` lists
    conf.fields                                # lattice, precision, checksum: `lime info`
    conf.text("xlf-info")
    u = conf.array()                           # memory map, (T, Z, Y, X, 4, 3, 3), '>c16'

    limefs.check("conf.0100")["status"]        # "good", "unverified", "bad" or "unreadable"

    runs = limefs.tree("/data/runs", "ildg-binary-data")
    runs.shape                                 # (300, T, Z, Y, X, 4, 3, 3); nothing is read
    runs[17, 0]                                # one time slice of one configuration

The package runs the program `lime` and reads its JSON output. It looks for the program in $LIME,
in the build tree or installation that this package is part of, and in PATH.
"""

from ._container import Container, Field, Record, attributes, open
from ._program import Error, NotFound, check, find_lime
from ._stack import Stack, stack, tree

__version__ = "0.1.0"
__all__ = ["Container", "Error", "Field", "NotFound", "Record", "Stack", "attributes",
           "check", "find_lime", "open", "stack", "tree"]
