"""omniORB's client: a C++ program that makes the calls, and times them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.harness.lifetime import PipedProgram, ServerFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


class OmniORBClient(PipedProgram):
    """The client program, told by lines what to do; calls.cc has them all."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command)
        self._line()  # it is connected

    def exchange(
        self, request_bytes: int, answer_bytes: int, count: int, warm_up: int
    ) -> list[int]:
        """Call the first server again and again; the nanoseconds of each call."""
        self._tell(f"exchange {request_bytes} {answer_bytes} {count} {warm_up}")
        return [int(word) for word in self._line().split()]

    def sort(self, parts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Have each server sort a part, all at once; the sorted parts, and the nanoseconds."""
        import numpy as np

        counts = " ".join(str(len(part)) for part in parts)
        self._tell(f"sort {counts}", b"".join(part.tobytes() for part in parts))
        duration_ns = int(self._line())
        answers = [self._read(part.nbytes) for part in parts]
        return [np.frombuffer(answer, "i8") for answer in answers], duration_ns

    def stop(self) -> None:
        """End the servers, and the client."""
        self._tell("stop")
        self._line()
        with self.process:
            self.questions.close()

    def _tell(self, line: str, data: bytes = b"") -> None:
        self.questions.write(line.encode("ascii") + b"\n" + data)
        self.questions.flush()

    def _line(self) -> bytes:
        line = self.answers.readline()
        if not line:
            self._fail()
        return line

    def _read(self, size_bytes: int) -> bytes:
        data = self.answers.read(size_bytes)
        if len(data) < size_bytes:
            self._fail()
        return data

    def _fail(self) -> None:
        with self.process as process:  # which waits for it, and closes the pipes
            code = process.wait()
        message = f"the client program ended with code {code}: see above what it said"
        raise ServerFailedError(message)
