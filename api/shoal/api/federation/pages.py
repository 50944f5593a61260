"""The two pages that a browser sees at the end of a sign-in.

The session's cookie is sent with what pages of ours ask for, and not with what another site has
led to: so the provider's redirect ends at a page, which leads on.
"""

from html import escape
from urllib.parse import urlencode

from shoal.api.federation.flow import CommandLine

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Shoal</title>{head}</head>
<body>{body}</body>
</html>
"""


def leads_on(path: str) -> str:
    """Return a page that leads to a path of ours."""
    to = escape(path, quote=True)
    return _PAGE.format(
        head=f'<meta http-equiv="refresh" content="0;url={to}">',
        body=f'<p>You are signed in. <a href="{to}">Go on</a></p>',
    )


def asks(command_line: CommandLine, code: str) -> str:
    """Return a page that gives a command its code, if the person says that it is theirs.

    Another user of the machine could have begun it, and have led the browser here.
    """
    query = urlencode({"code": code, "state": command_line.state})
    to = escape(f"http://127.0.0.1:{command_line.port}/?{query}", quote=True)
    return _PAGE.format(
        head="",
        body="<p>A command on this machine wants to sign in as you. Go on only if you have just "
        "begun <code>shoal login</code>, and it shows the number "
        f'<b>{command_line.shown}</b>.</p><p><a href="{to}">Sign the command in</a></p>',
    )
