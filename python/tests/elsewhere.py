"""Processes to which a space of this one is not their own: another user's, or among other pids."""

import os
import shutil
import subprocess

import pytest
from segments import SOMEBODY

BECOME_SOMEBODY = f"""
import os
os.setgroups([])
os.setgid({SOMEBODY})
os.setuid({SOMEBODY})
"""
"""Code that makes its process another user's. What is imported before, that user need not read."""

needs_superuser = pytest.mark.skipif(
    os.geteuid() != 0, reason="only the superuser can become somebody else"
)


def in_pid_namespace():
    """Return the words before a command that runs it in a pid namespace of its own.

    Where this user may not have one, the test is skipped, and says why.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no command unshare, which makes a pid namespace")
    words = [unshare, "--pid", "--fork"]
    if os.geteuid() != 0:
        # Anybody may have one in a user namespace; there they stay the user that they are.
        words[1:1] = ["--user", "--map-current-user"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"this user may not have a pid namespace: {tried.stderr.strip()}")
    return words
