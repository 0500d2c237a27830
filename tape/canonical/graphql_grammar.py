"""The grammar of executable GraphQL documents, over their tokens.

Source: GraphQL specification (October 2021), appendix B; type system definitions are no requests, and so none of it.
"""

from collections.abc import Sequence

_KINDS = frozenset({"query", "mutation", "subscription"})


class Syntax(Exception):
    """The tokens are no document."""


class Reader:
    """Reads definitions, one after the other; nested as deeply as a text likes, without recursion."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """Read from the first token."""
        self._tokens = tokens
        self._at = 0

    @property
    def has_more(self) -> bool:
        """Whether there is another definition, or something else."""
        return self._at < len(self._tokens)

    def definition(self) -> tuple[str, str]:
        """Read a definition; give its kind, `{` for a query that does not say so, and its name, empty without one. Raises: Syntax."""
        kind = self._peek()
        if kind == "{":
            self._selections()
            return kind, ""
        self._at += 1
        if kind in _KINDS:
            name = self._name() if self._is_name() else ""
            if self._peek() == "(":
                self._variables()
        elif kind == "fragment":
            name = self._name()
            self._expect("on")
            self._name()
            if name == "on":
                raise Syntax
        else:
            raise Syntax
        self._directives()
        self._selections()
        return kind, name

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, token: str) -> bool:
        found = self._peek() == token
        self._at += found
        return found

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise Syntax

    def _is_name(self) -> bool:
        first = self._peek()[:1]
        return first.isalpha() or first == "_"

    def _name(self) -> str:
        if not self._is_name():
            raise Syntax
        self._at += 1
        return self._tokens[self._at - 1]

    def _selections(self) -> None:
        self._expect("{")
        filled = [False]
        """Of each set that is open, whether it selects something."""
        while filled:
            if self._take("}"):
                if not filled.pop():
                    raise Syntax
                continue
            filled[-1] = True
            if self._take("..."):
                if self._is_name() and self._peek() != "on":
                    self._at += 1
                    self._directives()
                    continue
                if self._take("on"):
                    self._name()
                self._directives()
                self._expect("{")
                filled.append(False)
                continue
            self._name()
            if self._take(":"):
                self._name()
            self._arguments()
            self._directives()
            if self._take("{"):
                filled.append(False)

    def _arguments(self) -> None:
        if not self._take("("):
            return
        while True:
            self._name()
            self._expect(":")
            self._value()
            if self._take(")"):
                return

    def _directives(self) -> None:
        while self._take("@"):
            self._name()
            self._arguments()

    def _variables(self) -> None:
        self._expect("(")
        while True:
            self._expect("$")
            self._name()
            self._expect(":")
            self._type()
            if self._take("="):
                self._value()
            self._directives()
            if self._take(")"):
                return

    def _type(self) -> None:
        lists = 0
        while self._take("["):
            lists += 1
        self._name()
        self._take("!")
        for _ in range(lists):
            self._expect("]")
            self._take("!")

    def _value(self) -> None:
        open_: list[str] = []
        while True:
            token = self._peek()
            if token == "$":
                self._at += 1
                self._name()
            elif token in ("[", "{"):
                self._at += 1
                open_.append("]" if token == "[" else "}")
            elif self._is_name() or token[:1] == '"' or token[:1] == "-" or token[:1].isdigit():
                self._at += 1
            else:
                raise Syntax
            while open_ and self._take(open_[-1]):
                open_.pop()
            if not open_:
                return
            if open_[-1] == "}":
                self._name()
                self._expect(":")
