"""Read an expression into a tree; macros (`has`, `all`, `exists`, `map`, ...) are expanded here.

The grammar is that of the language definition (cel-spec, doc/langdef.md) without messages:

    Expr    = Or ["?" Or ":" Expr]              Unary  = {"!"} Member | {"-"} Member
    Or      = And {"||" And}                    Member = Primary {"." NAME ["(" List ")"] | "[" Expr "]"}
    And     = Rel {"&&" Rel}                    Primary = ["."] NAME ["(" List ")"] | "(" Expr ")"
    Rel     = Add {("<" | "<=" | ">=" | ">"             | "[" List "]" | "{" Pairs "}" | LITERAL
              | "==" | "!=" | "in") Add}
    Add     = Mul {("+" | "-") Mul}
    Mul     = Unary {("*" | "/" | "%") Unary}

Long chains of `&&` and `||` become balanced trees; any other tree is at most `MAX_DEPTH` deep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkstream.core.cel.ast import (
    AND,
    CONDITION,
    INDEX,
    NEGATE,
    NOT,
    OR,
    Call,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    balanced,
)
from checkstream.core.cel.lexer import RESERVED, Token, tokens
from checkstream.core.cel.macros import expand
from checkstream.core.cel.values import INT_MAX
from checkstream.errors import ExpressionError

MAX_CHARS: Final = 4000
MAX_DEPTH: Final = 48
"""Levels of the tree, and of brackets and conditionals within each other."""

_CHAINS: Final = (("||", OR), ("&&", AND))
"""Operators of which a whole row is joined at once; their ranks are their places."""
_FUNCTIONS: Final = {mark: f"_{mark}_" for mark in ("<", "<=", ">=", ">", "==", "!=", "+", "-", "*", "/", "%")} | {
    "in": "@in"
}
_OTHER_LANGUAGES: Final = {"and": "write `&&`", "or": "write `||`", "not": "write `!`"}
_RANKS: Final = {"||": 0, "&&": 1} | dict.fromkeys(_FUNCTIONS, 2) | {"+": 3, "-": 3} | dict.fromkeys("*/%", 4)


def parse(text: str, *, max_chars: int = MAX_CHARS) -> Expr:
    """Read an expression.

    Args:
        text: The expression as its author wrote it.
        max_chars: Its greatest length in code points.

    Raises:
        ExpressionError: it is too long, too deep or not in the language.
    """
    if len(text) > max_chars:
        raise ExpressionError(f"an expression of {len(text)} characters", 0, f"it may have {max_chars}")
    reader = _Reader(tokens(text))
    expr = reader.expression()
    if reader.token.kind != "end":
        raise reader.unexpected("an operator or the end")
    return expr


class _Reader:
    """Where we are in the tokens, and how deep the trees read so far are."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._place = 0
        self._open = 0
        self._depths: dict[int, int] = {}
        self._made: list[Expr] = []
        """Keeps every node, so that their identities stay theirs."""

    @property
    def token(self) -> Token:
        return self._tokens[self._place]

    def unexpected(self, wanted: str) -> ExpressionError:
        """Return the error that the next token is not what was wanted."""
        if self.token.kind == "end":
            return ExpressionError("the expression ends too early", self.token.position, f"{wanted} is missing")
        advice = _OTHER_LANGUAGES.get(self.token.text, "")
        return ExpressionError(
            f"`{self.token.text[:40]}` stands where {wanted} is expected", self.token.position, advice
        )

    def _next(self) -> Token:
        token = self.token
        self._place += token.kind != "end"
        return token

    def _take(self, *marks: str) -> Token | None:
        """Read the next token if it is one of `marks`."""
        return self._next() if self.token.kind == "mark" and self.token.text in marks else None

    def _want(self, mark: str) -> Token:
        """Read `mark`.

        Raises:
            ExpressionError: something else stands there.
        """
        token = self._take(mark)
        if token is None:
            raise self.unexpected(f"`{mark}`")
        return token

    def _node(self, node: Expr, parts: Sequence[Expr]) -> Expr:
        """Return the node, made of `parts`.

        Raises:
            ExpressionError: the tree is too deep with it.
        """
        return self._measured(node, 1 + max((self._depths.get(id(part), 1) for part in parts), default=0))

    def _measured(self, node: Expr, depth: int) -> Expr:
        """Return the node, `depth` levels deep.

        Raises:
            ExpressionError: that is too deep.
        """
        if depth > MAX_DEPTH:
            raise _too_deep(node.position)
        self._depths[id(node)] = depth
        self._made.append(node)
        return node

    def _call(self, function: str, position: int, target: Expr | None, arguments: tuple[Expr, ...]) -> Expr:
        call = Call(position, function, target, arguments)
        parts = arguments if target is None else (target, *arguments)
        # What a macro makes of its arguments is a few levels deeper than they are.
        expanded = expand(call)
        return self._node(expanded, parts)

    def expression(self) -> Expr:
        """Expr = Or ["?" Or ":" Expr].

        Raises:
            ExpressionError: something else stands here.
        """
        self._enter()
        expr = self._operation(0)
        mark = self._take("?")
        if mark is not None:
            chosen = self._operation(0)
            self._want(":")
            other = self.expression()
            expr = self._call(CONDITION, mark.position, None, (expr, chosen, other))
        self._open -= 1
        return expr

    def _enter(self) -> None:
        """Go one level down.

        Raises:
            ExpressionError: that is too deep.
        """
        self._open += 1
        if self._open > 2 * MAX_DEPTH:
            raise _too_deep(self.token.position)

    def _operation(self, least: int) -> Expr:
        """Or, And, Rel, Add and Mul: operands joined by operators of at least this rank, from left to right.

        Raises:
            ExpressionError: something else stands here.
        """
        self._enter()
        expr = self._unary()
        while self.token.kind == "mark" and (rank := _RANKS.get(self.token.text, -1)) >= least:
            if rank < len(_CHAINS):
                expr = self._chain(expr, rank)
            else:
                token = self._next()
                expr = self._call(_FUNCTIONS[token.text], token.position, None, (expr, self._operation(rank + 1)))
        self._open -= 1
        return expr

    def _chain(self, first: Expr, rank: int) -> Expr:
        """Join all operands of one row of `||` or `&&`.

        Raises:
            ExpressionError: something else stands here.
        """
        mark, function = _CHAINS[rank]
        operands = [first]
        positions: list[int] = []
        while (token := self._take(mark)) is not None:
            positions.append(token.position)
            operands.append(self._operation(rank + 1))
        made = balanced(function, operands, positions)
        depth = max(self._depths.get(id(part), 1) for part in operands) + len(operands).bit_length()
        return self._measured(made, depth)

    def _unary(self) -> Expr:
        """Unary = {"!"} Member | {"-"} Member. The last minus before a number belongs to the number.

        Raises:
            ExpressionError: something else stands here.
        """
        signs: list[Token] = []
        while (sign := self._take("!", "-")) is not None:
            if signs and signs[0].text != sign.text:
                raise ExpressionError("`!` and `-` stand together", sign.position, "put brackets around the inner one")
            signs.append(sign)
        number = self.token.value if self.token.kind == "literal" else None
        if signs and signs[-1].text == "-" and type(number) in {int, float}:
            sign = signs.pop()
            self._next()
            expr = self._members(self._node(Literal(sign.position, -number), ()))  # type: ignore[operator]
        else:
            expr = self._members(self._primary())
        for sign in reversed(signs):
            expr = self._call(NOT if sign.text == "!" else NEGATE, sign.position, None, (expr,))
        return expr

    def _members(self, expr: Expr) -> Expr:
        """Member = Primary {"." NAME ["(" List ")"] | "[" Expr "]"}.

        Raises:
            ExpressionError: something else stands here.
        """
        while (token := self._take(".", "[")) is not None:
            if token.text == "[":
                index = self.expression()
                self._want("]")
                expr = self._call(INDEX, token.position, None, (expr, index))
                continue
            name = self._next()
            if name.kind not in {"name", "quoted"}:
                self._place -= name.kind != "end"
                raise self.unexpected("the name of a field")
            if name.kind == "name" and self._take("("):
                expr = self._call(name.text, name.position, expr, self._listed(")"))
            else:
                expr = self._node(Select(name.position, expr, name.text), (expr,))
        if self.token.kind == "mark" and self.token.text == "{" and isinstance(expr, Ident | Select):
            raise ExpressionError("messages can't be made", self.token.position, "write a map as `{'key': value}`")
        return expr

    def _primary(self) -> Expr:
        """Primary = ["."] NAME ["(" List ")"] | "(" Expr ")" | "[" List "]" | "{" Pairs "}" | LITERAL.

        Raises:
            ExpressionError: something else stands here.
        """
        token = self._next()
        position = token.position
        if token.kind == "literal":
            if type(token.value) is int and token.value > INT_MAX:
                raise ExpressionError("a number passes the range of int", position, f"the greatest is {INT_MAX}")
            return self._node(Literal(position, token.value), ())
        if token.text == "(" and token.kind == "mark":
            expr = self.expression()
            self._want(")")
            return expr
        if token.text == "[" and token.kind == "mark":
            elements = self._listed("]")
            return self._node(ListExpr(position, elements), elements)
        if token.text == "{" and token.kind == "mark":
            return self._map(position)
        absolute = token.text == "." and token.kind == "mark"
        name = self._next() if absolute else token
        if name.kind != "name":
            self._place -= name.kind != "end"
            raise self.unexpected("a value")
        if name.text in RESERVED:
            raise ExpressionError(f"`{name.text}` is a reserved word", name.position, "a variable has another name")
        full = f".{name.text}" if absolute else name.text
        if self._take("("):
            return self._call(full, position, None, self._listed(")"))
        return self._node(Ident(position, full), ())

    def _listed(self, closing: str) -> tuple[Expr, ...]:
        """List = [Expr {"," Expr} [","]], to the closing mark.

        Raises:
            ExpressionError: something else stands here.
        """
        found: list[Expr] = []
        while not self._take(closing):
            found.append(self.expression())
            if not self._take(","):
                self._want(closing)
                break
        return tuple(found)

    def _map(self, position: int) -> Expr:
        """Pairs = [Expr ":" Expr {"," Expr ":" Expr} [","]], to the closing mark.

        Raises:
            ExpressionError: something else stands here.
        """
        pairs: list[tuple[Expr, Expr]] = []
        while not self._take("}"):
            key = self.expression()
            self._want(":")
            pairs.append((key, self.expression()))
            if not self._take(","):
                self._want("}")
                break
        return self._node(MapExpr(position, tuple(pairs)), [part for pair in pairs for part in pair])


def _too_deep(position: int) -> ExpressionError:
    return ExpressionError(f"the expression nests deeper than {MAX_DEPTH} levels", position, "split it up")
