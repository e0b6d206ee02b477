"""Counters: what the engine did, for `torchlike.stats()` and the tests."""

COUNTS: dict[str, float] = {
    "records": 0,
    "nodes": 0,
    "flushes": 0,
    "launches": 0,
    "compiles": 0,
    "disk_hits": 0,
    "cold_runs": 0,
    "host_runs": 0,
    "copies": 0,
    "compile_seconds": 0.0,
    "trace_seconds": 0.0,
}


def counts() -> dict[str, float]:
    """What the engine did so far: records, flushes, launches, compiles, disk_hits, cold_runs, host_runs, seconds."""
    return dict(COUNTS)
