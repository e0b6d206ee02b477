"""The README's table of what is compared with PyTorch: `python -m compat_tests.table`."""

import collections

from compat_tests.harness import case_files, load_cases


def rows() -> list[tuple[str, int, int]]:
    """(area, cases, known differences), by area."""
    cases: collections.Counter = collections.Counter()
    known: collections.Counter = collections.Counter()
    for path in case_files([]):
        for one in load_cases(path).values():
            cases[path.parent.name] += 1
            known[path.parent.name] += bool(one.settings["xfail"])
    return [(area, cases[area], known[area]) for area in sorted(cases)]


def main() -> None:
    print("| area | cases | known differences |\n| --- | --- | --- |")
    found = rows()
    for area, count, known in found:
        print(f"| {area} | {count:,} | {known or ''} |")
    print(f"| all | {sum(r[1] for r in found):,} | {sum(r[2] for r in found)} |")


if __name__ == "__main__":
    main()
