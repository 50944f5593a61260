"""Values of parameters that a shell could misread."""

AWKWARD = {
    "quotes": """it's "quoted" `date` \\ and \\\\""",
    "lines": "first\nsecond\r\n\n  last  \n\n",
    "commands": "$(touch ran) ; touch ran & `touch ran` | touch ran > ran",
    "expansions": "${HOME} $HOME ${x:-$(touch ran)} %s %n * ~ !!",
    "unicode": "žluťoučký 魚群 🐟 \u202e\u0000".replace("\0", "") + "\x01\x7f",
    "dash": "-rf --help",
    "empty": "",
    "just_below_100_KB": "é" * (50 * 1024),
}


def fields(text: str) -> list[str]:
    return text.split("\0")[:-1]
