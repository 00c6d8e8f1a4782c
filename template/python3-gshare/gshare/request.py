"""A request as a handler sees it: plain values, no web framework."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, TypeVar, overload

import msgspec
from werkzeug.datastructures import Headers, MultiDict

from gshare.errors import BadInput, TooLarge

T = TypeVar("T")
MAX_JSON_VALUES = 1_000_000
"""A value may take two bytes in the body and a hundred in memory, so it is values that are limited. What separates and
opens them is counted before anything is read; commas within text count too."""
_NOT_FOR_TEXT = frozenset(("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"))
"""Codecs of Python's own that are no charset of a text. Those that unpack or turn bytes, `decode` refuses itself."""
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Upload:
    """One file of a multipart form."""

    filename: str
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a function."""

    body: bytes = b""
    """The body as it was sent."""
    method: str = "POST"
    path: str = "/"
    """Decoded path behind the function's name, beginning with a slash."""
    raw_path: str = "/"
    """The same as it was sent, escapes kept."""
    query: MultiDict[str, str] = field(default_factory=MultiDict)
    headers: Headers = field(default_factory=Headers)
    files: Mapping[str, Upload] = field(default_factory=dict)
    """Files of a multipart form by field name."""

    @property
    def content_type(self) -> str:
        """Type and subtype in lower case, without parameters; empty if the client sent none."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """Charset of the content type, `utf-8` where it names none."""
        message = Message()
        message["Content-Type"] = self.headers.get("Content-Type", "")
        return message.get_content_charset("utf-8")

    def text(self) -> str:
        """The body as text, by the charset of its content type. Raises: BadInput if it is not that."""
        charset = self.charset
        try:
            if codecs.lookup(charset).name in _NOT_FOR_TEXT:
                raise LookupError(charset)
            return self.body.decode(charset)
        except UnicodeDecodeError as error:
            where = f"byte {error.start} is 0x{self.body[error.start]:02x}"
            raise BadInput(f"the body is not {charset} text: {where}; name its charset in Content-Type") from error
        except (LookupError, ValueError) as error:
            raise BadInput(f"charset {charset[:40]!r} of the content type is not known; send utf-8") from error

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, type: type[T]) -> T: ...
    def json(self, type: Any = Any) -> Any:
        """The body as JSON, checked against `type` (a msgspec struct, dataclass or plain type).

        Raises:
            BadInput: not JSON (NaN is none), or not of that shape; the text says where.
            TooLarge: more than MAX_JSON_VALUES values.
        """
        if not self.body:
            raise BadInput("the body is empty; send JSON")
        values = sum(map(self.body.count, (b",", b"[", b"{")))
        if values > MAX_JSON_VALUES:
            raise TooLarge(f"the JSON body has some {values:,} values; at most {MAX_JSON_VALUES:,}")
        raw: bytes | str = self.body if self.charset == "utf-8" else self.text()
        try:
            return msgspec.json.decode(raw, type=type)
        except msgspec.ValidationError as error:
            raise BadInput(f"the JSON body does not fit: {str(error)[:_LONGEST_REASON]}") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"the body is not JSON: {error}") from error
