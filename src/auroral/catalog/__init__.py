"""The catalog of a state directory: written with the network, read by anybody at any time."""

from auroral.catalog.document import public_entity, without_secrets
from auroral.catalog.parts import merged, part_of
from auroral.catalog.reading import CatalogSnapshot, read_catalog
from auroral.catalog.recording import record_catalog

__all__ = [
    "CatalogSnapshot",
    "merged",
    "part_of",
    "public_entity",
    "read_catalog",
    "record_catalog",
    "without_secrets",
]
