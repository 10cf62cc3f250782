"""Items as parts (see ef.log.items)."""

from ..log.items import quote_of as quote_of
from ..log.items import reading_of as reading_of
