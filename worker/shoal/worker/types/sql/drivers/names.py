"""Names in statements, quoted."""


def quoted(identifier: str, mark: str = '"') -> str:
    """Return a name in quotes, standard SQL's if no other; the parts of ``a.b`` on their own."""
    return ".".join(mark + part.replace(mark, mark * 2) + mark for part in identifier.split("."))
