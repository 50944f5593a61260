"""Names as parts of the API's addresses."""

from urllib.parse import quote


def part(name: str) -> str:
    """Return a name as one part of a path, whatever is in it."""
    quoted = quote(name, safe="")
    # Dots alone would be folded away as relative parts.
    return quoted.replace(".", "%2E") if set(quoted) <= {"."} and quoted else quoted


def parts(path: str) -> str:
    """Return the path of a file as parts of an address."""
    return "/".join(part(one) for one in path.split("/"))
