"""The forms in which a secret may show up in a log, all of which are masked there."""

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

SHORTEST = 4  # characters; anything shorter would be found everywhere


def forms(values: Iterable[str]) -> list[str]:
    """Return the texts to mask: each value as it is, each line of a value with several, and the
    value as it stands in JSON, in URLs, in hexadecimal digits and in base64, also with the line
    end that ``echo`` adds. None of them is shorter than ``SHORTEST``.
    """
    found: set[str] = set()
    for value in values:
        found |= {value, *(line.rstrip("\r") for line in value.split("\n"))}
        found |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        found |= {quote(value), quote(value, safe=""), quote_plus(value)}
        content = value.encode()
        found |= {content.hex(), content.hex().upper()}
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            for encoded in (encode(content).decode(), encode(content + b"\n").decode()):
                found |= {encoded, encoded.rstrip("=")}
    return sorted(text for text in found if len(text) >= SHORTEST)
