"""Addresses of pylance that also say where the writers of a table agree on its versions:
`s3+ddb://bucket/path?ddbTableName=commits`.

They are URLs: `%20` in the path is a space, unlike in any other address.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from boathouse.errors import InvalidArgumentError

_SCHEME = "s3+ddb://"
DYNAMODB = "dynamodb://"


def external(text: str) -> tuple[str, str | None]:
    """The plain address and the name of the manifest store, which is None for all other addresses.

    Raises InvalidArgumentError if the name of the DynamoDB table is missing, or something else is given.
    """
    if text[: len(_SCHEME)].lower() != _SCHEME:
        return text, None
    place, _, query = text[len(_SCHEME) :].partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    if [name for name, _ in given] != ["ddbTableName"] or not given[0][1]:
        raise InvalidArgumentError(
            "An s3+ddb address names one DynamoDB table, and nothing else.",
            where=text,
            advice=f"write {_SCHEME}{place.rstrip('/') or 'bucket/path'}?ddbTableName=TABLE",
        )
    return f"s3://{unquote(place)}", DYNAMODB + given[0][1]
