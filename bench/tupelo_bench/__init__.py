"""The evaluation suite: the literature's experiments, on Tupelo and on what else there is.

`python3 -m tupelo_bench`, or `tupelo bench`. The way through it:

* `command/`: options, progress, and what is written where.
* `report/`: tables, CSV, figures, and the HTML page, all made from `run.json` alone.
* `experiments/`: what is done with the systems; one file per publication and case.
* `presentation/`: how figures, tables and numbers are described.
* `runner/`: runs the cells of experiments, within a budget.
* `backends/`: Tupelo and its peers behind one small interface; a file or a folder each.
* `harness/`: real processes, profiler, statistics, and the record of a run (`run.json`).

Each folder imports from those below it only; types alone may come from above.

An experiment knows no backend and a backend no experiment. A result counts after it was compared
with what a sequential program computes.
"""
