"""Texts of strangers in a prompt: quoted as data, in tags that they cannot close."""

import hashlib
import json
from collections.abc import Mapping

TAG_DIGITS = 10


def quote_as_data(texts: Mapping[str, str]) -> str:
    """Return the texts under their names, each between tags.

    The tags bear a digest of all texts, which no text can contain: `<query-3f0c9a12be>`.
    """
    mark = hashlib.sha256(json.dumps(dict(texts)).encode()).hexdigest()[:TAG_DIGITS]
    quoted = [f"<{name}-{mark}>\n{text}\n</{name}-{mark}>" for name, text in texts.items()]
    return "\n\n".join(quoted)
