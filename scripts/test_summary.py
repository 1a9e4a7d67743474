#!/usr/bin/env python3
"""Counts the results of ctest --output-junit files.

Usage: test_summary.py RESULTS.xml...
Prints failed tests, skipped tests with their reasons, and as the last line "N passed, N failed". Exit code 1 if a test
failed, if none ran, or if a file is missing (ctest did not get that far).
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def read(path):
    """[(name, 'passed' | 'failed' | 'skipped', output)] of one file."""
    cases = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        cases.append((case.get("name"), status_of(case), case.findtext("system-out") or ""))
    return cases


def status_of(case):
    """A test that ctest could not even start is "notrun" like a skipped one, but has failed."""
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    by_itself = skipped is not None and skipped.get("message", "").startswith("SKIP_")
    return "skipped" if by_itself or case.get("status") == "disabled" else "failed"


def skip_reason(output):
    """What GTEST_SKIP() << reason printed: the lines between the place of the skip and the summary of the test; of a
    script, its line "skipped: reason"."""
    found = re.search(r"Skipped\n(.*?)\n*\[  SKIPPED \]", output, re.DOTALL)
    found = found or re.search(r"^skipped: (.*)$", output, re.MULTILINE)
    return " ".join(found.group(1).split()) if found and found.group(1).strip() else "no reason given"


def main(paths):
    cases = []
    for path in paths:
        try:
            cases += read(path)
        except (OSError, ElementTree.ParseError) as error:
            print(f"no test results: {error}")
            print("0 passed, 1 failed")
            return 1
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name, status, output in cases:
        count[status] += 1
        if status == "failed":
            print(f"failed: {name}")
        elif status == "skipped":
            print(f"skipped: {name}: {skip_reason(output)}")
    if count["skipped"]:
        print(f"{count['skipped']} skipped")
    print(f"{count['passed']} passed, {count['failed']} failed")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
