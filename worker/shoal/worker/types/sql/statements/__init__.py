"""SQL as text: taken apart by token, never parsed and never written anew.

``dialects`` say how each kind of database quotes, ``lexer`` finds the tokens, ``scripts`` the
statements (with ``blocks`` for the bodies of procedures), ``parameters`` replaces ``${name}`` by
what stands for a bound value. Every byte of a statement arrives as it was written. What is not sure
is refused with ``InvalidStatement``, which says what to write instead. Start reading in ``lexer``.
"""
