#!/usr/bin/python3
"""Draws the particles of one layer of cells, as strokes along their velocity.

usage: particles.py MOUNT LAYER FIGURE.svg
"""
import subprocess
import sys
import zlib

import numpy as np

HEADER = np.dtype([("magic", "S8"), ("version", ">u4"), ("bytes", ">u4"), ("particles", ">u8"),
                   ("particle_bytes", ">u8"), ("cells", ">u8", 3), ("origin", ">f8", 3),
                   ("length", ">f8", 3), ("flags", ">u4"), ("fields", ">u4"), ("step", ">i8"),
                   ("time", ">f8"), ("entries_crc", ">u4"), ("crc", ">u4")])
FIELD = np.dtype([("name", "S64"), ("type", ">u4"), ("count", ">u4"), ("offset", ">u8")])
ENTRY = np.dtype([("first", ">u8"), ("count", ">u8"), ("crc", ">u4"), ("zero", ">u4")])
TYPES = {1: "i4", 2: "u4", 3: "i8", 4: "u8", 5: "f4", 6: "f8"}

mount, layer, figure = sys.argv[1], int(sys.argv[2]), sys.argv[3]

# The index: what a particle is, and where the cells are. cells[x, y, z] is an entry.
index = np.memmap(f"{mount}/lemon-cells-index", np.uint8, "r")
header = index[:HEADER.itemsize].view(HEADER)[0]
fields = index[HEADER.itemsize:header["bytes"]].view(FIELD)
cells = index[header["bytes"]:].view(ENTRY).reshape(header["cells"])
order = ">" if header["flags"] & 8 else "<"
particle = np.dtype({"names": [f["name"].decode() for f in fields],
                     "formats": [(order + TYPES[f["type"]], (f["count"],)) for f in fields],
                     "offsets": [int(f["offset"]) for f in fields],
                     "itemsize": int(header["particle_bytes"])})

# The data: mapped, so that only the cells that are picked are read.
data = np.memmap(f"{mount}/lemon-cells-data", particle, "r")


def particles_of(cell):
    found = data[int(cell["first"]):int(cell["first"] + cell["count"])]
    if zlib.crc32(found.tobytes()) != cell["crc"]:
        raise ValueError("a cell has a wrong checksum")
    return found


picked = np.concatenate([particles_of(cell) for cell in cells[:, :, layer].flat])
x, y = picked["position"][:, 0], picked["position"][:, 1]
speed = np.sqrt((picked["velocity"].astype("f8") ** 2).sum(axis=1))
print(f"{len(picked)} of {header['particles']} particles, mean speed {speed.mean():.3f}")

# One series for each quarter of the speeds; a stroke is as long as its particle is fast.
colours = ["#2c7bb6", "#55a868", "#e69138", "#c0392b"]
limits = np.quantile(speed, [0, 0.25, 0.5, 0.75, 1])
quarter = np.searchsorted(limits[1:-1], speed, side="right")
scale = 0.4 / np.sqrt(len(picked)) * header["length"][:2] / speed.mean()
low, high = header["origin"], header["origin"] + header["length"]
step = header["length"] / header["cells"]
series, points = [], []
for i, colour in enumerate(colours):
    chosen = np.flatnonzero(quarter == i)
    dx, dy = (picked["velocity"][chosen, :2] * scale).T
    series.append(f"'-' with vectors nohead lw 2 lc rgb '{colour}' "
                  f"title 'speed {limits[i]:.2f} to {limits[i + 1]:.2f}'")
    points += [f"{a:.4f} {b:.4f} {c:.4f} {d:.4f}\n"
               for a, b, c, d in zip(x[chosen], y[chosen], dx, dy)] + ["e\n"]
subprocess.run(["gnuplot"], check=True, text=True, input=f"""
set terminal svg size 640,560 rounded font 'sans,13' background '#ffffff'
set output '{figure}'
set title 'cells of layer {layer} at step {header["step"]}'
set size ratio {header["length"][1] / header["length"][0]}
set xrange [{low[0]}:{high[0]}]
set yrange [{low[1]}:{high[1]}]
set xtics {low[0]},{step[0]}
set ytics {low[1]},{step[1]}
set grid
set key outside bottom center horizontal
plot {", ".join(series)}
{"".join(points)}""")
