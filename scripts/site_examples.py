"""Tells the site that the ``Example:`` of a docstring is the section that griffe calls Examples."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class Examples(Extension):
    """Else the example would be quoted text, and no code."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename the section, before the docstring is parsed."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE
            )
