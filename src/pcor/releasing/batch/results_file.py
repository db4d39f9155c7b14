"""The results file: one line of JSON for each record, on the disk before anybody sees the answer.

Public: everything in it. While a run goes on, each answer is added as a line and the disk is waited
for. At its end the file is put in the order asked, with a line for each record, in one step. So a
run that is killed leaves whole lines, but for the last one perhaps, which is cut off: its answer
was shown to nobody. An answer that stands in the file is never drawn again. Where a ledger pays,
its answers decide, and a file that says anything else is refused; without one the file is believed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pcor.errors import PcorError, WriteError, sendable
from pcor.releasing.answers import Answer, write_answer
from pcor.releasing.payment import Payer
from pcor.releasing.request import Request
from pcor.support import locks
from pcor.support.files import check_target, write_whole
from pcor.support.locks import sync_folder, try_lock

FORMAT = "pcor-result/1"

# Windows would otherwise end each line in two bytes.
_AS_IT_IS = getattr(os, "O_BINARY", 0)


class ResultsFile:
    """The open results file of a run, or nothing where the run has none.

    Attributes:
        answers: what the file held when it was opened, by the fingerprint of the request.
    """

    def __init__(self, path: Path | None, handle: int, paid_by: Mapping[str, str] | None) -> None:
        self._path, self._handle, self._paid_by = path, handle, paid_by
        self.answers: dict[str, Answer] = {}

    def read(self, asked: set[str]) -> None:
        """Read the answers that are there; refuse a file that is not of this run."""
        content = _content(self._handle)
        whole = content.rfind(b"\n") + 1
        for line in content[:whole].splitlines():
            found = _parsed(line, self._path)
            same = found["request"] in asked and found["paid_by"] == self._paid_by
            if found["charged"] and not same:
                raise WriteError(
                    f"{str(self._path)!r} holds answers to other requests: other records, settings,"
                    " schema, dataset or analyst. They are kept; name another file"
                )
            if found["charged"]:
                self.answers[found["request"]] = found["answer"]
        os.ftruncate(self._handle, whole)

    def compare(self, ledger: Payer, requests: Sequence[Request]) -> None:
        """Refuse a line that the ledger does not say: what is stored there is the answer."""
        for request in requests:
            written = self.answers.get(request.fingerprint)
            if written is None:
                continue
            claim = ledger.answered(request)
            if claim is None or claim.answer != written:
                raise WriteError(
                    f"{str(self._path)!r} has another answer for record "
                    f"{request.to_dict()['record']!r} than the ledger, which decides: the file was "
                    "edited, or the ledger restored from a copy. The file is kept, and nothing was "
                    "charged; name another file, and the same call writes the ledger's answers"
                )

    def add(self, request: Request, answer: Answer) -> None:
        """Add an answer, and wait until it is on the disk."""
        if self._path is None:
            return
        line = self._line(request, answer, charged=True)
        size = os.fstat(self._handle).st_size
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._handle, left) :]
            os.fsync(self._handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, size)
            raise WriteError(
                f"cannot write {str(self._path)!r}; the lines in it are whole. Make room, and the "
                "same call goes on from there"
            ) from None

    def arrange(self, results: Sequence[tuple[Request, Answer | PcorError]]) -> None:
        """Put the file in order, in one step; an error is a refusal that cost nothing."""
        if self._path is None:
            return
        lines = [
            self._line(request, write_answer(found), charged=False)
            if isinstance(found, PcorError)
            else self._line(request, found, charged=True)
            for request, found in results
        ]
        if not locks.OPEN_FILES_CAN_GO:
            self.close()  # a run that opens it now makes the next line fail: the lines stay
        write_whole(self._path, lambda part: _write(part, b"".join(lines)))
        sync_folder(self._path.parent)

    def close(self) -> None:
        """Let go of the file, and of its lock."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _line(self, request: Request, answer: Answer, *, charged: bool) -> bytes:
        content = {
            "format": FORMAT,
            "record": request.to_dict()["record"],
            "charged": charged,
            "answer": answer,
            "paid_by": self._paid_by,
            "request": request.fingerprint,
        }
        return sendable(json.dumps(content, ensure_ascii=False)).encode() + b"\n"


@contextmanager
def results_file(
    path: str | Path | None, requests: Sequence[Request], paid_by: Mapping[str, str] | None
) -> Iterator[ResultsFile]:
    """Open the results file of a run, for this process alone; go on from what is in it."""
    if path is None:
        yield ResultsFile(None, -1, paid_by)
        return
    target = Path(path).resolve()
    check_target(target, (".jsonl",), "out (--out)")
    kept = ResultsFile(target, _open(target), paid_by)
    try:
        kept.read({request.fingerprint for request in requests})
        yield kept
    finally:
        kept.close()


def _open(path: Path) -> int:
    """Open and lock a file; the lock ends with the process, however that ends."""
    if path.exists() and not path.is_file():
        raise WriteError(f"{str(path)!r} is not a plain file; name one that ends in .jsonl")
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _AS_IT_IS, 0o666)
    except OSError:
        raise WriteError(f"cannot write {str(path)!r}: not allowed") from None
    try:
        # Whoever had it may just have put another file in its place.
        ours = try_lock(handle) and os.fstat(handle).st_ino == path.stat().st_ino
        sync_folder(path.parent)
    except OSError:
        os.close(handle)
        raise WriteError(
            f"{str(path)!r} cannot be locked for this run: the folder is gone, or its file system "
            "has no locks; name a file on a local disk"
        ) from None
    if not ours:
        os.close(handle)
        raise WriteError(
            f"{str(path)!r} is being written by another run; wait for it, or name another file"
        )
    return handle


def _content(handle: int) -> bytes:
    with open(os.dup(handle), "rb") as stream:
        stream.seek(0)
        return stream.read()


def _parsed(line: bytes, path: Path | None) -> dict[str, Any]:
    try:
        found = json.loads(line)
        if found["format"] == FORMAT and found.keys() >= {"charged", "answer", "paid_by"}:
            found["request"] = str(found["request"])
            return dict(found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise WriteError(f"{str(path)!r} is not a results file of pcor; it is kept. Name another file")


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
