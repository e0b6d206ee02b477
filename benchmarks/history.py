"""history.csv: torchlike's ratios to PyTorch by commit, so that a loss is seen.

python benchmarks/run.py --record          # measure, and append
python benchmarks/history.py               # the newest ratio of each workload beside the one before it
"""

import csv
import datetime
import subprocess

from common import HERE, median, print_table, ratios

FILE = HERE / "history.csv"
FIELDS = ("date", "commit", "workload", "step", "p10", "mean", "peak memory", "torch", "jax", "cpus", "repeats")
LOST = 1.1
"""A ratio that has grown by this factor is marked."""


def commit():
    """The checked-out commit, with a + if there are changes; "?" outside a git checkout."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"], cwd=HERE, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "?"
    return found.stdout.strip()


def record(everything, info, repeats):
    """Append a line for each workload that torchlike and PyTorch both ran."""
    lines = []
    for title, measured in everything.items():
        own, other = (measured["summary"].get(framework, {"error": ""}) for framework in ("torchlike", "torch"))
        if "error" in own or "error" in other:
            continue
        cells = [f"{median(ratios(own[k], other[k])):.3f}" for k in ("step_us", "fast_us", "mean_us", "peak_mb")]
        versions = info["versions"]
        lines.append(
            [datetime.date.today(), commit(), title, *cells, versions.get("torch"), versions.get("jax"), info["cpus"],
             repeats]
        )  # fmt: skip
    new = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerows(lines)


def compare():
    """Print the last two measurements of each workload."""
    if not FILE.exists():
        raise SystemExit("nothing has been recorded: python benchmarks/run.py --record")
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = []
    for title in dict.fromkeys(row["workload"] for row in rows):
        *_, before, now = [None, *(row for row in rows if row["workload"] == title)]
        lost = before is not None and float(now["p10"]) > LOST * float(before["p10"])
        table.append([title, now["commit"], now["step"], now["p10"], now["mean"],
                      before["commit"] if before else "-", before["step"] if before else "-",
                      before["p10"] if before else "-", "slower" if lost else ""])  # fmt: skip
    print_table(["workload", "commit", "step ×torch", "p10", "mean", "before", "step ×torch", "p10", ""], table)


if __name__ == "__main__":
    compare()
