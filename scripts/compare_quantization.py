#!/usr/bin/env python3
"""Compares our quantizers with those of the PyPI package `gguf` on normally distributed values, as a Markdown table.

    compare_quantization.py PROGRAM [--values N]

PROGRAM is tests/quantization_error of a build. Needs numpy and gguf (pip install gguf).
"""

import argparse
import subprocess
import tempfile

import numpy as np
from gguf import quants
from gguf.constants import GGMLQuantizationType

ROW = 4096
DISTRIBUTIONS = [("N(0, 1)", 1.0), ("N(0, 0.02²)", 0.02)]


def gguf_rmse(values, dtype):
    """Root-mean-square error of the package's own quantizer, or None if it has none for this type."""
    kind = getattr(GGMLQuantizationType, dtype.upper(), None)
    if kind is None:
        return None
    try:
        back = quants.dequantize(quants.quantize(values, kind), kind)
    except NotImplementedError:
        return None
    return float(np.sqrt(np.mean((back.astype(np.float64) - values) ** 2)))


def our_rows(program, values):
    """dtype, RMSE, bits per weight and MB of float32 input per second of processor time, as our program prints them."""
    with tempfile.NamedTemporaryFile(suffix=".f32") as file:
        values.tofile(file.name)
        output = subprocess.run([program, file.name, str(ROW)], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        dtype, *numbers = line.split()
        yield [dtype] + [float(n) for n in numbers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--values", type=int, default=1 << 21)
    args = parser.parse_args()
    random = np.random.default_rng(1)
    for title, scale in DISTRIBUTIONS:
        values = (random.standard_normal((args.values // ROW, ROW)) * scale).astype(np.float32)
        print(f"{title}, {values.size} values\n")
        print("| type | bits per weight | RMSE | RMSE of gguf | ratio | MB/s |\n|---|---|---|---|---|---|")
        for dtype, rmse, bits, speed in our_rows(args.program, values):
            theirs = gguf_rmse(values, dtype)
            other = f"{theirs:.4g} | {rmse / theirs:.3f}" if theirs else "– | –"
            print(f"| {dtype} | {bits:.4g} | {rmse:.4g} | {other} | {speed:.0f} |")
        print()


if __name__ == "__main__":
    main()
