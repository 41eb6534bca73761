"""scidac - lattice fields with metadata and checksums, made in Python with zlib: an oracle that
shares no code with the programs."""
import random
import subprocess
import zlib

from limetest import container


def rotate(value, by):
    return (value << by | value >> (32 - by)) & 0xFFFFFFFF


def checksum(data, site_bytes, ranks=None):
    """Returns (suma, sumb). ranks: of the sites in order (default: 0, 1, 2 ...)."""
    suma = sumb = 0
    for i in range(len(data) // site_bytes):
        crc = zlib.crc32(data[i * site_bytes:(i + 1) * site_bytes])
        rank = i if ranks is None else ranks[i]
        suma ^= rotate(crc, rank % 29)
        sumb ^= rotate(crc, rank % 31)
    return suma, sumb


def cksum(data):
    """Returns the checksum that coreutils' cksum prints for these bytes."""
    return int(subprocess.run(["cksum"], input=data, capture_output=True,
                              check=True).stdout.split()[0])


def box_ranks(dims, lower, upper):
    """Returns the ranks of a hypercube's sites in the order of the file; x is the fastest."""
    ranks = [0]
    stride = 1
    strides = []
    for extent in dims:
        strides.append(stride)
        stride *= extent
    for d in reversed(range(len(dims))):  # the slowest first
        ranks = [rank + at * strides[d] for rank in ranks for at in range(lower[d], upper[d] + 1)]
    return ranks


def field(dims, site_bytes, seed=0):
    sites = 1
    for extent in dims:
        sites *= extent
    return random.Random(seed).randbytes(sites * site_bytes)


def ildg_format(dims, precision=64):
    lx, ly, lz, lt = dims
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            '<ildgFormat xmlns="http://www.lqcd.org/ildg"><version>1.0</version>'
            f"<field>su3gauge</field><precision>{precision}</precision>"
            f"<lx>{lx}</lx><ly>{ly}</ly><lz>{lz}</lz><lt>{lt}</lt></ildgFormat>").encode()


def private_record(site_bytes, datatype="QDP_F3_ColorMatrix"):
    """A record of QIO's XML for sites of site_bytes."""
    return "scidac-private-record-xml", (
        '<?xml version="1.0" encoding="UTF-8"?><scidacRecord><version>1.1</version><date>x</date>'
        f"<recordtype>0</recordtype><datatype>{datatype}</datatype><precision>F</precision>"
        f"<typesize>{site_bytes}</typesize><datacount>1</datacount></scidacRecord>").encode()


def private_file(dims, volfmt=0):
    return "scidac-private-file-xml", (
        '<?xml version="1.0" encoding="UTF-8"?><scidacFile><version>1.1</version>'
        f"<spacetime>{len(dims)}</spacetime><dims>{' '.join(map(str, dims))}</dims>"
        f"<volfmt>{volfmt}</volfmt></scidacFile>").encode()


def grid_format(dims):
    return "grid-format", ('<?xml version="1.0"?>\n<FieldMetaData>\n'
        f"  <nd>{len(dims)}</nd>\n  <dimension>\n"
        + "".join(f"    <elem>{extent}</elem>\n" for extent in dims)
        + "  </dimension>\n</FieldMetaData>\n").encode()


def checksum_xml(sums):
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<scidacChecksum>\n  <version>1.0</version>\n'
            f"  <suma>{sums[0]:x}</suma>\n  <sumb>{sums[1]:x}</sumb>\n</scidacChecksum>").encode()


def records(dims, data, site_bytes=576):
    """The message of a gauge configuration in double precision, with its checksum."""
    return [("ildg-format", ildg_format(dims)), ("ildg-binary-data", data),
            ("scidac-checksum", checksum_xml(checksum(data, site_bytes)))]


def gauge(dims, data, checksum=True):
    return container([records(dims, data)[:3 if checksum else 2]])
