"""The evaluation suite: the literature's experiments, on Tupelo and on what else there is.

`python3 -m tupelo_bench`, or `tupelo bench`. The way through it:

* `backends/`: Tupelo and its peers behind one small interface; a file or a folder each.
* `experiments/`: what is done with them; one file per publication and case.
* `harness/`: real processes, profiler, statistics, budget, and the record of a run (`run.json`).
* `report/`: tables, CSV, figures, and the HTML page, all made from `run.json` alone.

An experiment knows no backend and a backend no experiment. A result counts after it was compared
with what a sequential program computes.
"""
