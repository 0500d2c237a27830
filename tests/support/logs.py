"""What is logged while something happens, in whatever thread."""

import logging
from typing import Self


class Logged(logging.Handler):
    """Collects what the whole process logs from WARNING up. Use as a context manager."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record)

    @property
    def lines(self) -> list[str]:
        """Messages, in order; a traceback counts as one of them."""
        return [
            f"{record.getMessage()} (with a traceback)" if record.exc_info else record.getMessage()
            for record in self.records
        ]

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)
