"""Which failures are the same one: error lines without what differs from run to run.

A line is *normalised*: numbers, ids, times, paths, addresses and quoted texts become placeholders.
Its fingerprint is a hash of that. Numbers that say what went wrong stay: ``HTTP 404``,
``ORA-00942``, ``exit code 137``. Stored fingerprints are compared with new ones, so a change of the
rules makes known failures new ones, once.
"""

import re
from hashlib import sha256

LENGTH = 16  # hexadecimal digits of a fingerprint
FINGERPRINT = re.compile(r"[0-9a-f]{16}")

# Each alternative is tried at a place once: no text takes a time that grows with its square. The
# first that fits counts, so what is made of others stands before them.
_PARTS = re.compile(
    r"""
    (?P<text>
        (?<!\w)'[^']*+(?:'(?!\w)|(?<=…)$)
      | "[^"]*+(?:"|(?<=…)$)
      | `[^`]*+(?:`|(?<=…)$)
    )
  | (?P<path>
        (?<![\w+.-])[A-Za-z][\w+.-]{1,20}://[^\s'"<>]++
      | (?<!\w)[A-Za-z]:\\[^\s'"<>|]*+
    )
  | (?P<uuid>(?<!\w)[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?!\w))
  | (?P<time>
        (?<![\w/])\d{2,4}[-/]\d{2}[-/]\d{2}
        (?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|\ ?[+-]\d{2}:?\d{2})?)?(?![\w/])
      | (?<![\w:.])\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?![\w:])
    )
  | (?P<address>
        (?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.]\w)
      | (?<![\w:])\[?(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{1,4}(?:\](?::\d{1,5})?)?(?![\w:])
    )
  | (?P<slashed>(?<![\w./~@+=%-])[\w.~-]*+(?:/[\w.@~+=%:,-]++)++/?)
  | (?P<kept>
        (?<!\w)[A-Z]{2,12}-\d{3,6}(?!\w)
      | (?i:(?<!\w)(?:http|status|errno|sqlstate|code|signal)(?:\ code)?[ :=]{1,2}\w{1,5}(?!\w))
    )
  | (?P<number>(?<![\w.,])[-+]?\d[\d.,_]*+(?:[eE][-+]?\d+)?(?!\w))
  | (?P<word>[^\W_]+)
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(r"\d+")
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]{8,}")
_TEMPORARY = re.compile(r"(?:tmp|temp)[^\W_]{6,}")
_SEVERAL = re.compile(r"<n>(?:[ ,;]{1,3}<n>)++")
_SHORTEST_ID = 5  # characters


def fingerprint(line: str) -> str:
    """Return the fingerprint of an error line: ``LENGTH`` hexadecimal digits, equal for equals."""
    return sha256(normalised(line).encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def normalised(line: str) -> str:
    """Return an error line, for people, without what differs from run to run.

    ``<n>`` stands for a number, ``<text>`` for a quoted one, and so on.
    """
    plain = _PARTS.sub(_placeholder, " ".join(line.split()))
    return _SEVERAL.sub("<n>", plain)


def _placeholder(found: re.Match[str]) -> str:
    kind, part = found.lastgroup, found.group()
    match kind:
        case "kept":
            return part
        case "number":
            return "<n>"
        case "word":
            return _word(part)
        case "slashed":
            is_path = part[0] in "/.~" or part.count("/") > 1
            return "<path>" if is_path else _PARTS.sub(_placeholder, part.replace("/", " / "))
        case _:
            return f"<{kind}>"


def _word(word: str) -> str:
    """Return what stands for letters and digits."""
    runs = len(_DIGITS.findall(word))
    if not runs:
        return word
    if word[:2] in ("0x", "0X") or (_HEXADECIMAL.fullmatch(word) and not word.isdecimal()):
        return "<id>"
    # Where digits and letters take turns, they are random: names are not made so.
    if _TEMPORARY.fullmatch(word) or (runs > 1 and len(word) >= _SHORTEST_ID):
        return "<id>"
    return _DIGITS.sub("<n>", word)
