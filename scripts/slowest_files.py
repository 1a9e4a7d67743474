#!/usr/bin/env python3
"""Prints the files that took longest in the last ninja build of a folder. Usage: slowest_files.py BUILD_FOLDER [N]"""
import os
import sys


def main(folder, n=12):
    seconds = {}
    with open(os.path.join(folder, ".ninja_log"), encoding="utf-8") as log:
        for line in log:
            if line.startswith("#"):
                continue
            start, end, _, output, _ = line.rstrip("\n").split("\t")
            seconds[output] = (int(end) - int(start)) / 1000
    total = sum(seconds.values())
    print(f"{len(seconds)} build steps, {total:.0f} s of work; the longest:")
    for output, took in sorted(seconds.items(), key=lambda item: -item[1])[:n]:
        print(f"{took:8.1f} s  {output.replace('.dir/', '/')}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
