"""Records made by hand, of a few measures each."""

from tupelo_bench.harness.record import Measure, Run

SMALL = ("Null", "Integer", "Char 32", "Double 32")
MACHINE = {
    "processor": "abacus", "processors": [0, 1], "virtual": False, "memory_bytes": 1 << 30,
    "kernel": "none", "load_1min": 0.0,
}  # fmt: skip


def run_of(*measures, remarks=()):
    return Run(
        ["tupelo", "bench"], "today", 1, quick=False, machine=MACHINE, versions={"redis": "7"},
        measures=list(measures), remarks=list(remarks), notes={"redis": "a socket | a list"},
        placements={"mem": ["apart: server on 1, clients on 0"]},
    )  # fmt: skip


def mem(backend, entry, microseconds, placement="apart", *, fill=0, metric="take"):
    parameters = {"entry": entry, "fill": fill, "placement": placement}
    samples = [microseconds * 1e-6 * (1 + n / 1_000) for n in range(10)]
    return Measure("mem", backend, parameters, metric, "s", samples)


def total(backend, seconds, coordination=0.0, **parameters):
    spread = [seconds * (1 + n / 1_000) for n in range(10)]
    return (
        Measure("cases", backend, parameters, "total", "s", spread),
        Measure("cases", backend, parameters, "coordination", "", [coordination]),
    )
