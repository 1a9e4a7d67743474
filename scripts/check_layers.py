#!/usr/bin/env python3
"""Checks that includes point down: reads every #include of the repository and rejects one that its room may not use.

Usage: check_layers.py [ROOT]      prints each violation as file:line: reason; exit code 1 if there is one
       check_layers.py --self-test proves on small trees that violations are found and the rest is accepted

The rooms, lowest first (a room may include itself and what its row in MAY_INCLUDE names):

    ggmlx/   core < quant < file < graph < reference < placement < backend
    src/     config < kv < arch < model < session < planner      beside them: tokenizer, chat, sampling
    convert/ sees ggmlx/ and, of src/, only arch, config and tokenizer   (arch.h itself includes kv; convert/ may not name it)
    tools/   sees all of the above
    tests/   tests of a folder see that folder and what is below it
"""
import os
import re
import sys
import tempfile

GGMLX = ["core", "quant", "file", "graph", "reference", "placement", "backend"]

# What each room of src/ may include of src/, besides itself. All of them may include ggmlx/.
SRC = {
    "config": [],
    "kv": ["config"],
    "arch": ["config", "kv"],
    "tokenizer": ["config"],
    "chat": ["config", "tokenizer"],
    "sampling": ["config", "tokenizer"],
    "model": ["config", "kv", "arch", "tokenizer", "chat"],
    "session": ["config", "kv", "arch", "tokenizer", "chat", "sampling", "model"],
    "planner": ["config", "kv", "arch", "tokenizer", "chat", "sampling", "model", "session"],
}
# Files that lie in src/ itself belong to the room of their name, with this exception.
SRC_FILES = {"weights": "model", "config_json": "config", "config_family": "config", "config_mixture": "config",
             "rope_frequencies": "config"}


def build_table():
    """room -> set of rooms it may include."""
    ggmlx = [f"ggmlx/{room}" for room in GGMLX]
    src = [f"src/{room}" for room in SRC]
    table = {room: set(ggmlx[: i + 1]) for i, room in enumerate(ggmlx)}
    table["ggmlx"] = set(ggmlx)  # ggmlx/ggmlx.h, for those above the library
    library = set(ggmlx) | {"ggmlx"}
    for room, below in SRC.items():
        table[f"src/{room}"] = library | {f"src/{room}"} | {f"src/{other}" for other in below}
    table["convert"] = library | {"convert", "src/arch", "src/config", "src/tokenizer"}
    table["tools"] = library | set(src) | {"convert", "tools"}
    table["tests/ggmlx"] = library | {"tests/ggmlx", "tests"}
    table["tests/src"] = table["tests/ggmlx"] | set(src) | {"tests/src"}
    table["tests/convert"] = table["tests/src"] | {"convert", "tests/convert"}
    table["tests"] = table["tools"] | table["tests/convert"]  # tests/tools, tests/e2e, tests/fuzz and helpers
    table["examples"] = table["tools"] | {"examples"}
    return table


MAY_INCLUDE = build_table()

# Headers of libraries and compilers that belong to one place: (what, pattern of the header, where it may be included).
RESERVED = [
    ("OpenMP", r"omp\.h$", r"ggmlx/backend/cpu/threads\.(h|cpp)$"),
    ("libnuma", r"numa(if)?\.h$", r"ggmlx/backend/cpu/numa\.cpp$"),
    ("a CUDA header", r"(cuda|cublas|curand|cudnn|nvtx3/|nvml|nccl|cub/|thrust/|mma\.h|cooperative_groups|vector_types\.h)",
     r"ggmlx/backend/cuda/"),
    ("an instruction set", r"(\w*intrin|cpuid|arm_neon|arm_sve)\.h$", r"(tests/)?ggmlx/backend/cpu/"),
]

SUFFIXES = (".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh", ".inl")
TOP_FOLDERS = ["ggmlx", "src", "convert", "tools", "tests", "examples"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)


def room_of(path):
    """The room that a file of the repository belongs to, as a key of MAY_INCLUDE, or None if it has no place."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) == 2:
        name = parts[1].split(".")[0]
        parts[1] = SRC_FILES.get(name, name)
        parts.append("")
    two = "/".join(parts[:2])
    if len(parts) > 2 and two in MAY_INCLUDE:
        return two
    if parts[0] in ("ggmlx", "src"):
        return "ggmlx" if path == "ggmlx/ggmlx.h" else None
    return parts[0] if parts[0] in MAY_INCLUDE else None


def resolve(root, path, target):
    """The included file relative to root, or None. Only tests and examples may name a file from where they are."""
    places = [""]
    if path.startswith(("tests/", "examples/")):
        places += ["tests", os.path.dirname(path)]
    for place in places:
        candidate = os.path.join(place, target)
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def check_include(root, path, bracket, target):
    """Why this include is wrong, or None."""
    for what, header, place in RESERVED:
        if re.match(header, target) and not re.match(place, path):
            return f"includes {target}: {what} stays in {place}"
    if bracket == "<":
        ours = target.split("/")[0] in TOP_FOLDERS and os.path.isfile(os.path.join(root, target))
        return f'includes <{target}>: write our own headers in quotes' if ours else None
    found = resolve(root, path, target)
    if found is None or ".." in target.split("/"):
        return f'includes "{target}": no such file from the top of the repository'
    room, included = room_of(path), room_of(found)
    if included is None:
        return f'includes "{target}", which has no room in the order'
    if included not in MAY_INCLUDE[room]:
        return f'includes "{target}": {room} may not see {included}'
    return None


def source_files(root):
    for top in TOP_FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def check(root):
    """([violation text], number of files read)"""
    violations, n_files = [], 0
    for path in source_files(root):
        n_files += 1
        if room_of(path) is None:
            violations.append(f"{path}:1: has no room in the order (see scripts/check_layers.py)")
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for match in INCLUDE.finditer(text):
            reason = check_include(root, path, match.group(1), match.group(2))
            if reason:
                line = text.count("\n", 0, match.start()) + 1
                violations.append(f"{path}:{line}: {reason}")
    return violations, n_files


# A tree that is in order: file -> what it includes.
GOOD_TREE = {
    "ggmlx/ggmlx.h": ['"ggmlx/core/dtype.h"', '"ggmlx/backend/backend.h"'],
    "ggmlx/core/dtype.h": ["<vector>"],
    "ggmlx/quant/blocks.h": ['"ggmlx/core/dtype.h"'],
    "ggmlx/graph/graph.h": ['"ggmlx/core/dtype.h"', '"ggmlx/quant/blocks.h"'],
    "ggmlx/backend/backend.h": ['"ggmlx/graph/graph.h"'],
    "ggmlx/backend/cpu/threads.h": ["<omp.h>"],
    "ggmlx/backend/cpu/simd/avx2.h": ["<immintrin.h>"],
    "ggmlx/backend/cuda/stream.h": ["<cuda_runtime.h>"],
    "src/config.h": ["<nlohmann/json_fwd.hpp>"],
    "src/kv/cache.h": ['"ggmlx/graph/graph.h"', '"src/config.h"'],
    "src/arch/arch.h": ['"src/kv/cache.h"', '"src/config.h"'],
    "src/tokenizer/tokenizer.h": ["<string>"],
    "src/sampling/sampler.h": ['"src/tokenizer/tokenizer.h"'],
    "src/weights.h": ['"src/arch/arch.h"', '"ggmlx/ggmlx.h"'],
    "src/model.h": ['"src/weights.h"', '"src/tokenizer/tokenizer.h"'],
    "src/session/session.h": ['"src/model.h"', '"src/sampling/sampler.h"'],
    "src/planner.h": ['"src/session/session.h"'],
    "convert/convert.h": ['"src/arch/arch.h"', '"src/config.h"', '"ggmlx/quant/blocks.h"'],
    "tools/run.cpp": ['"src/session/session.h"', '"convert/convert.h"', "<CLI/CLI.hpp>"],
    "src/config_json.h": ['"src/config.h"'],
    "tests/helper.h": ['"ggmlx/core/dtype.h"'],
    "tests/ggmlx/core/support.h": ['"helper.h"'],
    "tests/ggmlx/core/test_dtype.cpp": ['"ggmlx/core/dtype.h"', '"helper.h"', '"support.h"'],
    "tests/e2e/test_run.cpp": ['"tools/run.cpp"', '"helper.h"'],
}

# One more include (or file) each, and a word that the complaint must contain.
BAD_INCLUDES = [
    ("ggmlx/core/dtype.h", '"ggmlx/graph/graph.h"', "may not see ggmlx/graph"),
    ("ggmlx/graph/graph.h", '"ggmlx/backend/backend.h"', "may not see ggmlx/backend"),
    ("ggmlx/backend/backend.h", '"src/config.h"', "may not see src/config"),
    ("ggmlx/graph/graph.h", '"ggmlx/ggmlx.h"', "may not see ggmlx"),
    ("ggmlx/graph/graph.h", "<omp.h>", "OpenMP"),
    ("ggmlx/graph/graph.h", "<cuda_runtime.h>", "CUDA"),
    ("ggmlx/quant/blocks.h", "<immintrin.h>", "instruction set"),
    ("src/model.h", "<cpuid.h>", "instruction set"),
    ("src/config.h", '"src/arch/arch.h"', "may not see src/arch"),
    ("src/arch/arch.h", '"src/weights.h"', "may not see src/model"),
    ("src/tokenizer/tokenizer.h", '"src/sampling/sampler.h"', "may not see src/sampling"),
    ("src/model.h", '"convert/convert.h"', "may not see convert"),
    ("src/session/session.h", '"tools/run.cpp"', "may not see tools"),
    ("convert/convert.h", '"src/kv/cache.h"', "may not see src/kv"),
    ("convert/convert.h", '"src/sampling/sampler.h"', "may not see src/sampling"),
    ("convert/convert.h", '"tools/run.cpp"', "may not see tools"),
    ("tools/run.cpp", '"tests/helper.h"', "may not see tests"),
    ("tools/run.cpp", '"helper.h"', "no such file"),
    ("tools/run.cpp", '"../src/model.h"', "no such file"),
    ("tools/run.cpp", "<src/model.h>", "in quotes"),
    ("tests/ggmlx/core/test_dtype.cpp", '"src/model.h"', "may not see src/model"),
    ("ggmlx/misc/new.h", "<vector>", "no room"),
    ("src/misc/new.h", "<vector>", "no room"),
    ("src/misc.h", "<vector>", "no room"),
]


def write_tree(root, tree):
    for path, includes in tree.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write("#pragma once\n" + "".join(f"#include {name}\n" for name in includes))


def self_test():
    with tempfile.TemporaryDirectory() as root:
        write_tree(root, GOOD_TREE)
        violations, n_files = check(root)
        assert not violations and n_files == len(GOOD_TREE), violations
    for path, include, expected in BAD_INCLUDES:
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, {**GOOD_TREE, path: GOOD_TREE.get(path, []) + [include]})
            violations, _ = check(root)
            assert len(violations) == 1 and expected in violations[0] and violations[0].startswith(path), \
                f"{path} with {include}: {violations}"
    print(f"check_layers: self-test passed ({len(BAD_INCLUDES)} violations found, a good tree accepted)")
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    violations, n_files = check(root)
    for violation in violations:
        print(violation)
    if n_files == 0:
        print(f"check_layers: found no source files in {root}")
        return 1
    print(f"check_layers: {n_files} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
