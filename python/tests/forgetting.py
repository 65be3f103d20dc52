"""For tests that forget a claim on the way: what they show is something else."""

import pytest

forgets_a_claim = pytest.mark.filterwarnings("ignore:a claim on .* was forgotten:ResourceWarning")
