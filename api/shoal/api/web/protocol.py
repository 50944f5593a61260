"""HTTP on a connection: a fast parser, which takes no more in than requests of this API need."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_UNREAD_BYTES = 64 * 1024  # a token and the usual headers are far below


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection whose client goes on and on without completing a head.

    The parser itself would gather header lines, and trailers, until the memory is full, before
    anybody has asked for the token. Bodies have a limit of their own: see ``body.py``.
    """

    _unread_bytes = 0  # since the last head, piece of a body, or end of a message

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        self._unread_bytes += len(data)
        super().data_received(data)
        if self._unread_bytes > MOST_UNREAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        """Count anew."""
        self._unread_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count anew."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count anew."""
        self._unread_bytes = 0
        super().on_message_complete()
