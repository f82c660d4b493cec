"""A file of records, one JSON object a line, that grows by whole lines and outlives the process in any moment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable

from eman import _files
from eman.errors import FileError


class Journal:
    """The records of a file, which is made by the first of them.

    A last line without an end was cut off when it was written: it is no record, and goes with the next change.

    Parameters
    ----------
    path : Path
        The file, which may be missing.

    Raises
    ------
    FileError
        If it cannot be read, or a whole line of it is no JSON object; the message names the line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise FileError(error.errno, error.strerror, str(path)) from error
        self._end = content.rfind(b"\n") + 1
        #: In the order in which they were added; read only.
        self.records: list[dict[str, Any]] = []
        for number, line in enumerate(content[: self._end].splitlines(), 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise FileError(f"{path}, line {number}: not a record, {error}") from error
            if not isinstance(record, dict):
                raise FileError(f"{path}, line {number}: not a record, but {json.dumps(record)[:40]}")
            self.records.append(record)

    def add(self, record: dict[str, Any]) -> None:
        """Append a record; it is on the disk when this returns, and FileError where it cannot be."""
        with _files.writing(self._path), self._path.open("ab") as file:
            if file.tell() > self._end:
                file.truncate(self._end)
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._end = file.tell()
        self.records.append(record)

    def keep(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Drop the records that are not wanted."""
        kept = [record for record in self.records if wanted(record)]
        if len(kept) < len(self.records):
            content = "".join(json.dumps(record) + "\n" for record in kept).encode()
            _files.write_whole(self._path, content)
            self.records, self._end = kept, len(content)
