"""What a value has to be like to be a secret: it is masked in logs, and becomes a variable."""

from collections.abc import Iterator

SHORTEST_SECRET = 4  # characters: a shorter one could not be told apart in a log
LONGEST_SECRET = 32 * 1024  # bytes: it becomes an environment variable


def secret_problems(value: str) -> Iterator[str]:
    """Yield what makes a secret value unusable; the value itself is in none of the texts."""
    if len(value.strip()) < SHORTEST_SECRET:
        yield f"has less than {SHORTEST_SECRET} characters, so it could not be masked in logs"
    if len(value.encode("utf-8", "surrogatepass")) > LONGEST_SECRET:
        yield f"has more than {LONGEST_SECRET:,} bytes; keep large secrets in a store of their own"
    if any("\ud800" <= character <= "\udfff" for character in value):
        yield "holds half of a character"
