#!/usr/bin/env python3
"""Checks how every file of a build is compiled, so that a sum has one value whatever compiler or instruction set computes it.

Usage: check_compile_commands.py BUILD_FOLDER    reads its compile_commands.json; exit code 1 if a rule is broken
       check_compile_commands.py --self-test

Rules: -ffp-contract=off and warnings as errors on every file; no option that lets the compiler reorder or approximate
floating-point arithmetic; instruction-set options only on files of a folder ggmlx/backend/cpu/isa.
"""
import json
import os
import re
import shlex
import sys

RELAXED = {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math",
           "-ffinite-math-only", "-fno-signed-zeros", "-fexcess-precision=fast", "-mrecip"}
ISA_OPTION = re.compile(r"-m(avx|fma|f16c|sse|amx|bmi|arch=|cpu=|tune=)")
ISA_FOLDER = "/ggmlx/backend/cpu/isa/"


def words_of(entry):
    return entry["arguments"] if "arguments" in entry else shlex.split(entry["command"])


def problems_of_cuda(words):
    """nvcc contracts unless told otherwise, and has its own names for the rest."""
    problems = [] if "--fmad=false" in words else ["needs --fmad=false"]
    if not any(word.startswith("-Xcompiler=") and "-Werror" in word for word in words):
        problems.append("needs -Xcompiler=...,-Werror")
    relaxed = ("--use_fast_math", "-use_fast_math", "--ftz=true", "-ftz=true", "--prec-div=false", "--prec-sqrt=false")
    return problems + [f"must not have {word}" for word in words if word in relaxed]


def problems_of(entry):
    words = words_of(entry)
    if entry["file"].endswith(".cu"):
        return problems_of_cuda(words)
    problems = []
    contract = [word for word in words if word.startswith("-ffp-contract=")]
    if not contract or contract[-1] != "-ffp-contract=off":
        problems.append(f"needs -ffp-contract=off, has {contract[-1] if contract else 'nothing'}")
    if "-Werror" not in words:
        problems.append("needs -Werror")
    problems += [f"must not have {word}" for word in words if word in RELAXED]
    if ISA_FOLDER not in os.path.abspath(os.path.join(entry["directory"], entry["file"])):
        problems += [f"must not have {word} outside {ISA_FOLDER[1:]}" for word in words if ISA_OPTION.match(word)]
    return problems


def check(entries):
    return [f"{entry['file']}: {problem}" for entry in entries for problem in problems_of(entry)]


def self_test():
    good = "g++ -O3 -Wall -Werror -ffp-contract=off -fno-fast-math -c x.cpp"

    cuda = "nvcc -O3 --fmad=false -Xcompiler=-Wall,-Werror -c a.cu"

    def entry(command, file="/p/ggmlx/core/x.cpp"):
        return {"directory": "/p/build", "file": file, "command": command}

    accepted = [entry(good), entry(good + " -mavx2 -mfma", "/p/ggmlx/backend/cpu/isa/avx2.cpp"),
                {"directory": "/p", "file": "a.cpp", "arguments": good.split()}, entry(cuda, "/p/a.cu")]
    assert not check(accepted), check(accepted)
    rejected = {
        good.replace("-ffp-contract=off", ""): "has nothing",
        good + " -ffp-contract=fast": "has -ffp-contract=fast",
        good.replace("-Werror", ""): "needs -Werror",
        good + " -ffast-math": "-ffast-math",
        good + " -Ofast": "-Ofast",
        good + " -mavx512f": "-mavx512f outside",
        good + " -march=native": "-march=native outside",
    }
    rejected_cuda = {
        cuda.replace("--fmad=false", ""): "needs --fmad=false",
        cuda.replace(",-Werror", ""): "needs -Xcompiler",
        cuda + " --use_fast_math": "--use_fast_math",
    }
    for commands, file in ((rejected, "/p/ggmlx/core/x.cpp"), (rejected_cuda, "/p/a.cu")):
        for command, expected in commands.items():
            found = check([entry(command, file)])
            assert len(found) == 1 and expected in found[0], (command, found)
    print(f"check_compile_commands: self-test passed ({len(rejected) + len(rejected_cuda)} broken rules found)")
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    with open(os.path.join(arguments[0], "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    problems = check(entries)
    for problem in problems:
        print(problem)
    print(f"check_compile_commands: {len(entries)} files, {len(problems)} problems")
    return 1 if problems or not entries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
