"""What is wrong with a text of SQL."""

from shoal.core.errors import ShoalError


class InvalidStatement(ShoalError, ValueError):
    """A text that cannot be taken apart for sure; the message says where and what to write."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.position, self.reason = position, reason
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)
        super().__init__(f"line {self.line}, column {self.column}: {reason}")
