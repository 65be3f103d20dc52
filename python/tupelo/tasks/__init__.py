"""Work that others do: tasks as tuples, and the workers that do them.

* `protocol`: the tuples, which any language can put and take (docs/tasks.md).
* `functions`: how a function is named, and found by its name.
* `serving`: a worker: claims a task, computes, answers. `timekeeper`: ends a task that is late.
* `mailbox`: puts tasks, and makes futures of their answers. `failures`: of failed ones.
* `crew`: the processes or threads that serve a queue, replaced when they die.
* `evaluation`: `Space.eval`.

A battery (`tupelo.batteries.Pool`, `worker`) or a command (`tupelo worker`) is made of these. A
task is a claim, and its answer is put under the claim: whatever is killed, each task is answered
exactly once.
"""
